//! Room `coordinator`.
