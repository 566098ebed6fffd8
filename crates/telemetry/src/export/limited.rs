//! Bounds what waits for the collector, and counts what did not fit: the processors of the SDK drop silently.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::{Context, InstrumentationScope};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{BatchLogProcessor, LogProcessor, SdkLogRecord};
use opentelemetry_sdk::trace::{BatchSpanProcessor, Span, SpanData, SpanProcessor};

use super::Tally;

/// Spans that wait.
#[derive(Debug)]
pub(crate) struct LimitedSpans {
    batches: BatchSpanProcessor,
    tally: Arc<Tally>,
}

impl LimitedSpans {
    pub(crate) fn new(batches: BatchSpanProcessor, tally: Arc<Tally>) -> Self {
        Self { batches, tally }
    }
}

impl SpanProcessor for LimitedSpans {
    fn on_start(&self, span: &mut Span, cx: &Context) {
        self.batches.on_start(span, cx);
    }

    fn on_end(&self, span: SpanData) {
        if self.tally.admit() {
            self.batches.on_end(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.batches.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.tally.close();
        self.batches.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.batches.set_resource(resource);
    }
}

/// Log lines that wait.
#[derive(Debug)]
pub(crate) struct LimitedLogs {
    batches: BatchLogProcessor,
    tally: Arc<Tally>,
}

impl LimitedLogs {
    pub(crate) fn new(batches: BatchLogProcessor, tally: Arc<Tally>) -> Self {
        Self { batches, tally }
    }
}

impl LogProcessor for LimitedLogs {
    fn emit(&self, record: &mut SdkLogRecord, scope: &InstrumentationScope) {
        if self.tally.admit() {
            self.batches.emit(record, scope);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.batches.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.tally.close();
        self.batches.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.batches.set_resource(resource);
    }
}
