//! The way to the collector.
//!
//! Exports run on threads and a runtime of their own: neither a busy node delays them, nor does a collector that is
//! dead, slow or lying delay the node. Each is bounded in time, and what waits is bounded in number.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use opentelemetry_otlp::{
    ExporterBuildError, LogExporter, MetricExporter, WithExportConfig, WithHttpConfig,
    WithTonicConfig,
};
use opentelemetry_sdk::metrics::Temporality;
use tokio::runtime::Handle;
use tonic::transport::ClientTlsConfig;

use crate::config::{Compression, Otlp, Protocol};
use crate::metrics::Signal;

mod background;
mod client;
mod grpc;
mod http;
mod limited;
mod sender;
mod spans;
mod tally;
mod watched;

pub(crate) use background::Background;
use client::Client;
use grpc::{Grpc, metadata};
use http::Http;
pub(crate) use limited::LimitedLogs;
pub(crate) use sender::Sender;
use sender::Way;
pub(crate) use spans::Spans;
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

    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    pub(crate) fn spans(&self) -> Result<Sender, String> {
        // A gRPC channel drives its connection on the runtime that it is made in.
        let _entered = self.runtime.enter();
        let way = match &self.client {
            None => Grpc::new(self.otlp).map(Way::Grpc),
            Some(client) => {
                Http::new(self.otlp, Arc::clone(client), &self.url("v1/traces")).map(Way::Http)
            }
        };
        let way = way.map_err(|error| self.cannot(Signal::Traces, &error))?;
        Ok(Sender::new(way, self.otlp.timeout))
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
        let exporter = build(self).map_err(|error| self.cannot(signal, &error))?;
        Ok(Watched::new(
            exporter,
            self.runtime.clone(),
            self.otlp.timeout,
            tally,
        ))
    }

    fn cannot(&self, signal: Signal, error: &dyn fmt::Display) -> String {
        let endpoint = &self.otlp.endpoint;
        format!("the exporter of {} to {endpoint}: {error}", signal.as_str())
    }

    fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.otlp.endpoint.trim_end_matches('/'))
    }

    fn grpc<B: WithExportConfig + WithTonicConfig>(&self, builder: B) -> B {
        let builder = builder
            .with_endpoint(&self.otlp.endpoint)
            .with_protocol(opentelemetry_otlp::Protocol::Grpc)
            .with_timeout(self.otlp.timeout)
            .with_metadata(metadata(self.otlp));
        let builder = match self.otlp.compression {
            Compression::None => builder,
            Compression::Gzip => builder.with_compression(opentelemetry_otlp::Compression::Gzip),
        };
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
        let builder = match self.otlp.compression {
            Compression::None => builder,
            Compression::Gzip => builder.with_compression(opentelemetry_otlp::Compression::Gzip),
        };
        builder
            .with_endpoint(self.url(path))
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_timeout(self.otlp.timeout)
            .with_headers(headers)
            .with_shared_http_client(Arc::clone(client) as _)
    }
}
