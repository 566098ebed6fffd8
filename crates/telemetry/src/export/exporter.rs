use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::logs::tonic::group_logs_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{LogBatch, LogExporter};
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use prost::Message;
use tokio::runtime::Handle;

use super::{ExportStats, Sender};

/// Sends the SDK's data to the collector. [`ExportStats`] reports failures, because the SDK could do no more about
/// them.
#[derive(Debug)]
pub(crate) struct Exporter {
    sender: Arc<Sender>,
    runtime: Handle,
    stats: Arc<ExportStats>,
    resource: ResourceAttributesWithSchema,
}

impl Exporter {
    pub(super) fn new(sender: Sender, runtime: Handle, stats: Arc<ExportStats>) -> Self {
        Self {
            sender: Arc::new(sender),
            runtime,
            stats,
            resource: ResourceAttributesWithSchema::default(),
        }
    }

    /// Runs on telemetry's own runtime, because the SDK's threads have none.
    async fn send(&self, request: impl Message, count: usize) -> OTelSdkResult {
        let (sender, stats) = (Arc::clone(&self.sender), Arc::clone(&self.stats));
        let request = request.encode_to_vec().into();
        let sent = self
            .runtime
            .spawn(async move { sender.export(&stats, request, count).await });
        let _ = sent.await;
        Ok(())
    }
}

impl LogExporter for Exporter {
    async fn export(&self, batch: LogBatch<'_>) -> OTelSdkResult {
        let count = batch.iter().count();
        let resource_logs = group_logs_by_resource_and_scope(&batch, &self.resource);
        self.send(ExportLogsServiceRequest { resource_logs }, count)
            .await
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.resource = resource.into();
    }
}

impl PushMetricExporter for Exporter {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        // Metrics are cumulative, so the next push has the values of a failed one too.
        self.send(ExportMetricsServiceRequest::from(metrics), 0)
            .await
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn temporality(&self) -> Temporality {
        Temporality::Cumulative
    }
}
