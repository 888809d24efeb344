//! Room `storage`.
