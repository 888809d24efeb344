//! Room `testing`.
