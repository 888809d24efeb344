//! Room `cluster`.
