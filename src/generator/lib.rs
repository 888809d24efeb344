//! Room `generator`.
