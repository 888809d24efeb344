//! Room `protocol`.

pub mod batch;
