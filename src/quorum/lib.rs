//! Room `quorum`.
