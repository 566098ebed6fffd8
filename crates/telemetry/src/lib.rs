//! Logs, traces and metrics: what a process tells its operator.
//!
//! Today that is logging; traces and metrics by OpenTelemetry join it behind the same set-up.

pub mod logging;
