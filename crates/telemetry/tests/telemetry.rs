//! Tests telemetry as a whole process uses it, against real collectors on loopback.

#[path = "telemetry/bad_collectors.rs"]
mod bad_collectors;
#[path = "telemetry/collector.rs"]
mod collector;
#[path = "telemetry/every_metric.rs"]
mod every_metric;
#[path = "telemetry/liars.rs"]
mod liars;
#[path = "telemetry/logs.rs"]
mod logs;
#[path = "telemetry/metrics.rs"]
mod metrics;
#[path = "telemetry/off.rs"]
mod off;
#[path = "telemetry/process.rs"]
mod process;
#[path = "telemetry/reference.rs"]
mod reference;
#[path = "telemetry/sampling.rs"]
mod sampling;
#[path = "telemetry/spans.rs"]
mod spans;
#[path = "telemetry/tls.rs"]
mod tls;
