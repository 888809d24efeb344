//! Room `tidy`.
