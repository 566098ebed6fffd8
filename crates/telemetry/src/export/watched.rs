//! Exporters that end in time, and whose outcome is counted.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry_otlp::{LogExporter, MetricExporter};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::logs::LogBatch;
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use tokio::runtime::Handle;

use super::Tally;
use crate::metrics::ExportOutcome;

/// An exporter, with a limit of time and an account.
#[derive(Debug)]
pub(crate) struct Watched<E> {
    exporter: E,
    runtime: Handle,
    timeout: Duration,
    tally: Arc<Tally>,
}

impl<E> Watched<E> {
    pub(super) fn new(exporter: E, runtime: Handle, timeout: Duration, tally: Arc<Tally>) -> Self {
        Self {
            exporter,
            runtime,
            timeout,
            tally,
        }
    }

    /// Retries included, an export takes no longer than the timeout.
    async fn bounded(
        &self,
        count: usize,
        export: impl Future<Output = OTelSdkResult>,
    ) -> OTelSdkResult {
        // Made inside the runtime, whose clock it uses; it may be awaited anywhere.
        let limited = {
            let _entered = self.runtime.enter();
            tokio::time::timeout(self.timeout, export)
        };
        let result = limited
            .await
            .unwrap_or(Err(OTelSdkError::Timeout(self.timeout)));
        let (outcome, why) = match &result {
            Ok(()) => (ExportOutcome::Accepted, String::new()),
            Err(error @ OTelSdkError::Timeout(_)) => (ExportOutcome::Timeout, error.to_string()),
            Err(error) => (ExportOutcome::Failed, error.to_string()),
        };
        self.tally.exported(count, outcome, &why);
        result
    }
}

impl opentelemetry_sdk::logs::LogExporter for Watched<LogExporter> {
    async fn export(&self, batch: LogBatch<'_>) -> OTelSdkResult {
        let count = batch.iter().count();
        self.bounded(count, self.exporter.export(batch)).await
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl PushMetricExporter for Watched<MetricExporter> {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        // What a failed push of metrics did not bring, the next one brings: they are cumulative.
        self.bounded(0, self.exporter.export(metrics)).await
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.exporter.temporality()
    }
}
