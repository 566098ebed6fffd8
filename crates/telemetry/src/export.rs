//! Sends all signals on separate threads and a separate runtime, so that a busy node and a slow collector cannot delay
//! each other. Times and queues are bounded.

use std::sync::Arc;

use tokio::runtime::Handle;

use crate::config::{Protocol, Telemetry};
use crate::metrics::Signal;

mod attempt;
mod background;
mod export_stats;
mod exporter;
mod grpc;
mod http;
mod limited;
mod sender;
mod spans;

pub(crate) use background::Background;
pub(crate) use export_stats::ExportStats;
pub(crate) use exporter::Exporter;
use grpc::OtlpGrpc;
use http::OtlpHttp;
pub(crate) use limited::LimitedLogs;
use sender::OtlpClient;
pub(crate) use sender::Sender;
pub(crate) use spans::Spans;

#[derive(Debug)]
pub(crate) struct Collector<'a> {
    otlp: &'a Telemetry,
    address: &'a str,
    runtime: Handle,
    client: Option<reqwest::Client>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(
        otlp: &'a Telemetry,
        address: &'a str,
        runtime: Handle,
    ) -> Result<Self, String> {
        let client = match otlp.protocol {
            Protocol::Grpc => None,
            Protocol::Http => Some(http::client(otlp, address)?),
        };
        Ok(Self {
            otlp,
            address,
            runtime,
            client,
        })
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    pub(crate) fn sender(&self, signal: Signal) -> Result<Sender, String> {
        let (address, name) = (self.address, signal.as_str());
        // Entered, because the channel drives its connection on this runtime.
        let _entered = self.runtime.enter();
        let client = match &self.client {
            None => OtlpGrpc::new(self.otlp, address, signal).map(OtlpClient::Grpc),
            Some(client) => {
                let url = format!("{}/v1/{name}", address.trim_end_matches('/'));
                OtlpHttp::new(self.otlp, client.clone(), &url).map(OtlpClient::Http)
            }
        };
        let client =
            client.map_err(|error| format!("the exporter of {name} to {address}: {error}"))?;
        Ok(Sender::new(client, self.otlp.timeout.get()))
    }

    pub(crate) fn exporter(
        &self,
        signal: Signal,
        stats: Arc<ExportStats>,
    ) -> Result<Exporter, String> {
        let sender = self.sender(signal)?;
        Ok(Exporter::new(sender, self.runtime.clone(), stats))
    }
}
