//! The way to the collector.
//!
//! Exports run on threads and a runtime of their own: neither a busy node delays them, nor does a collector that is
//! dead, slow or lying delay the node. Each is bounded in time, and what waits is bounded in number.

use std::collections::HashMap;
use std::sync::Arc;

use opentelemetry_otlp::{
    ExporterBuildError, LogExporter, MetricExporter, SpanExporter, WithExportConfig,
    WithHttpConfig, WithTonicConfig,
};
use opentelemetry_sdk::metrics::Temporality;
use tokio::runtime::Handle;
use tonic::metadata::{MetadataKey, MetadataMap};
use tonic::transport::ClientTlsConfig;

use crate::config::{Otlp, Protocol};
use crate::metrics::Signal;

mod background;
mod client;
mod limited;
mod tally;
mod watched;

pub(crate) use background::Background;
use client::Client;
pub(crate) use limited::{LimitedLogs, LimitedSpans};
pub(crate) use tally::Tally;
pub(crate) use watched::Watched;

/// Makes exporters to one collector.
#[derive(Debug)]
pub(crate) struct Collector<'a> {
    otlp: &'a Otlp,
    runtime: Handle,
    client: Option<Arc<Client>>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(otlp: &'a Otlp, runtime: Handle) -> Result<Self, String> {
        let client = match otlp.protocol {
            Protocol::Grpc => None,
            Protocol::Http => Some(Arc::new(Client::new(otlp, runtime.clone())?)),
        };
        Ok(Self {
            otlp,
            runtime,
            client,
        })
    }

    pub(crate) fn spans(&self, tally: Arc<Tally>) -> Result<Watched<SpanExporter>, String> {
        let builder = SpanExporter::builder();
        self.build(Signal::Traces, tally, |this| match &this.client {
            None => this.grpc(builder.with_tonic()).build(),
            Some(client) => this.http(client, "v1/traces", builder.with_http()).build(),
        })
    }

    pub(crate) fn metrics(&self, tally: Arc<Tally>) -> Result<Watched<MetricExporter>, String> {
        let builder = MetricExporter::builder().with_temporality(Temporality::Cumulative);
        self.build(Signal::Metrics, tally, |this| match &this.client {
            None => this.grpc(builder.with_tonic()).build(),
            Some(client) => this.http(client, "v1/metrics", builder.with_http()).build(),
        })
    }

    pub(crate) fn logs(&self, tally: Arc<Tally>) -> Result<Watched<LogExporter>, String> {
        let builder = LogExporter::builder();
        self.build(Signal::Logs, tally, |this| match &this.client {
            None => this.grpc(builder.with_tonic()).build(),
            Some(client) => this.http(client, "v1/logs", builder.with_http()).build(),
        })
    }

    fn build<E>(
        &self,
        signal: Signal,
        tally: Arc<Tally>,
        build: impl FnOnce(&Self) -> Result<E, ExporterBuildError>,
    ) -> Result<Watched<E>, String> {
        // A gRPC channel drives its connection on the runtime that it is made in.
        let _entered = self.runtime.enter();
        let exporter = build(self).map_err(|error| {
            format!(
                "the exporter of {} to {}: {error}",
                signal.as_str(),
                self.otlp.endpoint
            )
        })?;
        Ok(Watched::new(
            exporter,
            self.runtime.clone(),
            self.otlp.timeout,
            tally,
        ))
    }

    fn grpc<B: WithExportConfig + WithTonicConfig>(&self, builder: B) -> B {
        let mut metadata = MetadataMap::new();
        for (name, value) in &self.otlp.headers {
            let name = MetadataKey::from_bytes(name.as_bytes());
            // Both were checked with the rest of the configuration.
            if let (Ok(name), Ok(value)) = (name, value.expose().parse()) {
                metadata.insert(name, value);
            }
        }
        let builder = builder
            .with_endpoint(&self.otlp.endpoint)
            .with_protocol(opentelemetry_otlp::Protocol::Grpc)
            .with_timeout(self.otlp.timeout)
            .with_metadata(metadata);
        if self.otlp.endpoint.starts_with("https:") {
            builder.with_tls_config(ClientTlsConfig::new().with_enabled_roots())
        } else {
            builder
        }
    }

    fn http<B: WithExportConfig + WithHttpConfig>(
        &self,
        client: &Arc<Client>,
        path: &str,
        builder: B,
    ) -> B {
        let headers: HashMap<String, String> = (self.otlp.headers.iter())
            .map(|(name, value)| (name.clone(), value.expose().to_owned()))
            .collect();
        builder
            .with_endpoint(format!(
                "{}/{path}",
                self.otlp.endpoint.trim_end_matches('/')
            ))
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_timeout(self.otlp.timeout)
            .with_headers(headers)
            .with_shared_http_client(Arc::clone(client) as _)
    }
}
