//! Room `transport`.
