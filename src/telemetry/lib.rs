//! Room `telemetry`.
