use bytes::{Buf as _, BufMut as _, Bytes};
use http::uri::PathAndQuery;
use tonic::codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::{MetadataKey, MetadataMap};
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status, client};
use tonic_types::StatusExt as _;

use super::attempt::{AttemptError, Retryable};
use crate::config::{Compression, Telemetry};
use crate::metrics::Signal;

#[derive(Debug)]
pub(super) struct OtlpGrpc {
    channel: Channel,
    path: PathAndQuery,
    metadata: MetadataMap,
    is_compressed: bool,
}

impl OtlpGrpc {
    /// Must be called inside the runtime that drives the connection.
    pub(super) fn new(otlp: &Telemetry, address: &str, signal: Signal) -> Result<Self, String> {
        let mut endpoint = Endpoint::from_shared(address.to_owned())
            .map_err(|error| error.to_string())?
            .timeout(otlp.timeout.get());
        if address.starts_with("https:") {
            endpoint = endpoint
                .tls_config(ClientTlsConfig::new().with_enabled_roots())
                .map_err(|error| error.to_string())?;
        }
        Ok(Self {
            channel: endpoint.connect_lazy(),
            path: PathAndQuery::from_static(match signal {
                Signal::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
                Signal::Metrics => {
                    "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
                }
                Signal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
            }),
            metadata: metadata(otlp),
            is_compressed: otlp.compression == Compression::Gzip,
        })
    }

    pub(super) async fn send(&self, request: Bytes) -> Result<Bytes, AttemptError> {
        let mut client = client::Grpc::new(self.channel.clone());
        if self.is_compressed {
            client = client
                .send_compressed(CompressionEncoding::Gzip)
                .accept_compressed(CompressionEncoding::Gzip);
        }
        client.ready().await.map_err(|error| AttemptError {
            why: error.to_string(),
            again: Retryable::Soon,
        })?;
        let mut request = Request::new(request);
        *request.metadata_mut() = self.metadata.clone();
        let answer = client.unary(request, self.path.clone(), Raw).await;
        answer.map(tonic::Response::into_inner).map_err(refused)
    }
}

fn metadata(otlp: &Telemetry) -> MetadataMap {
    let mut metadata = MetadataMap::new();
    for (name, value) in &otlp.headers {
        let name = MetadataKey::from_bytes(name.as_bytes());
        // The check of the configuration has validated the headers.
        if let (Ok(name), Ok(value)) = (name, value.expose().parse()) {
            metadata.insert(name, value);
        }
    }
    metadata
}

fn refused(status: Status) -> AttemptError {
    let told = (status.get_details_retry_info()).and_then(|info| info.retry_delay);
    let again = match (status.code(), told) {
        (Code::ResourceExhausted | Code::Unavailable, Some(told)) => Retryable::After(told),
        (
            Code::Unavailable
            | Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::OutOfRange
            | Code::DataLoss,
            _,
        ) => Retryable::Soon,
        _ => Retryable::Never,
    };
    AttemptError {
        why: status.to_string(),
        again,
    }
}

#[derive(Debug)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(message);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}
