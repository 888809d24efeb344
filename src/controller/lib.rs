//! Room `controller`.
