//! Bounds the log queue and counts dropped lines, because the SDK drops them silently.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::InstrumentationScope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{BatchLogProcessor, LogProcessor, SdkLogRecord};

use super::ExportStats;

#[derive(Debug)]
pub(crate) struct LimitedLogs {
    batches: BatchLogProcessor,
    stats: Arc<ExportStats>,
}

impl LimitedLogs {
    pub(crate) fn new(batches: BatchLogProcessor, stats: Arc<ExportStats>) -> Self {
        Self { batches, stats }
    }
}

impl LogProcessor for LimitedLogs {
    fn emit(&self, record: &mut SdkLogRecord, scope: &InstrumentationScope) {
        if self.stats.admit() {
            self.batches.emit(record, scope);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.batches.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.stats.close();
        self.batches.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.batches.set_resource(resource);
    }
}
