use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_sdk::logs::{SdkLogger, SdkLoggerProvider};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// These crates carry exports. Exporting their log lines would cause more lines.
const CARRIERS: [&str; 7] = [
    "h2",
    "hyper",
    "hyper_util",
    "opentelemetry",
    "reqwest",
    "tonic",
    "tower",
];

pub(super) struct LogBridge(OpenTelemetryTracingBridge<SdkLoggerProvider, SdkLogger>);

impl LogBridge {
    pub(super) fn new(loggers: &SdkLoggerProvider) -> Self {
        Self(OpenTelemetryTracingBridge::new(loggers))
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LogBridge {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let target = event.metadata().target();
        let owner = target.split("::").next().unwrap_or(target);
        if !CARRIERS.contains(&owner) && !owner.starts_with("opentelemetry_") {
            self.0.on_event(event, context);
        }
    }
}
