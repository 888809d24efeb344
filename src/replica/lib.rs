//! Room `replica`.
