use std::collections::HashMap;
use std::io::Read as _;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_server::{
    LogsService, LogsServiceServer,
};
use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsServiceRequest, ExportLogsServiceResponse,
};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::trace::v1::Span;
use parking_lot::Mutex;
use prost::Message as _;
use shoal_telemetry::config::Protocol;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tonic::codec::CompressionEncoding;
use tonic::service::Routes;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic::{Request, Response, Status};

#[derive(Debug, Default)]
pub(crate) struct Got {
    pub(crate) traces: Vec<ExportTraceServiceRequest>,
    pub(crate) metrics: Vec<ExportMetricsServiceRequest>,
    pub(crate) logs: Vec<ExportLogsServiceRequest>,
    pub(crate) authorization: Vec<String>,
    pub(crate) is_compressed: bool,
    pub(crate) rejects: i64,
}

impl Got {
    fn answer(&self) -> ExportTraceServiceResponse {
        ExportTraceServiceResponse {
            partial_success: (self.rejects != 0).then(|| ExportTracePartialSuccess {
                rejected_spans: self.rejects,
                error_message: "too old".to_owned(),
            }),
        }
    }
}

pub(crate) struct Collector {
    pub(crate) endpoint: String,
    got: Arc<Mutex<Got>>,
    _runtime: Runtime,
}

impl Collector {
    pub(crate) fn start(protocol: Protocol) -> Self {
        Self::serve(protocol, Server::builder(), "http")
    }

    pub(crate) fn secure(protocol: Protocol, identity: Identity) -> Self {
        // A build with several crypto providers has no default provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let tls = ServerTlsConfig::new().identity(identity);
        let server = Server::builder().tls_config(tls);
        Self::serve(protocol, server.expect("a good identity"), "https")
    }

    fn serve(protocol: Protocol, server: Server, scheme: &str) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let got: Arc<Mutex<Got>> = Arc::default();
        let listener = runtime
            .block_on(TcpListener::bind("127.0.0.1:0"))
            .expect("a free port");
        let address = listener.local_addr().expect("its address");
        let incoming = futures::stream::unfold(listener, |listener| async {
            let stream = listener.accept().await.map(|(stream, _)| stream);
            Some((stream, listener))
        });
        let routes = match protocol {
            Protocol::Grpc => {
                let service = Grpc(Arc::clone(&got));
                let traces = TraceServiceServer::new(service.clone());
                Routes::new(traces.accept_compressed(CompressionEncoding::Gzip))
                    .add_service(MetricsServiceServer::new(service.clone()))
                    .add_service(LogsServiceServer::new(service))
            }
            Protocol::Http => Router::new()
                .route("/v1/{signal}", post(take))
                .with_state(Arc::clone(&got))
                .into(),
        };
        let server = server.accept_http1(true).add_routes(routes);
        runtime.spawn(server.serve_with_incoming(incoming));
        Self {
            endpoint: format!("{scheme}://{address}"),
            got,
            _runtime: runtime,
        }
    }

    pub(crate) fn got(&self) -> parking_lot::MutexGuard<'_, Got> {
        self.got.lock()
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        let mut spans: Vec<Span> = (self.got().traces.iter())
            .flat_map(|it| &it.resource_spans)
            .flat_map(|it| &it.scope_spans)
            .flat_map(|it| it.spans.clone())
            .collect();
        spans.sort_by(|a, b| a.name.cmp(&b.name));
        spans
    }

    pub(crate) fn span(&self, name: &str) -> Span {
        let spans = self.spans();
        let mut found = spans.iter().filter(|span| span.name == name);
        let span = found.next().unwrap_or_else(|| panic!("{name}: {spans:?}"));
        assert!(found.next().is_none(), "{name} is there twice");
        span.clone()
    }

    pub(crate) fn resource(&self) -> HashMap<String, String> {
        let got = self.got();
        let resource = (got.traces.iter())
            .flat_map(|it| &it.resource_spans)
            .find_map(|it| it.resource.clone())
            .expect("a resource");
        texts(&resource.attributes)
    }

    pub(crate) fn metrics(&self) -> Vec<Metric> {
        (self.got().metrics.iter())
            .flat_map(|it| &it.resource_metrics)
            .flat_map(|it| &it.scope_metrics)
            .flat_map(|it| it.metrics.clone())
            .collect()
    }

    pub(crate) fn log_lines(&self) -> Vec<LogRecord> {
        (self.got().logs.iter())
            .flat_map(|it| &it.resource_logs)
            .flat_map(|it| &it.scope_logs)
            .flat_map(|it| it.log_records.clone())
            .collect()
    }
}

pub(crate) fn texts(attributes: &[KeyValue]) -> HashMap<String, String> {
    (attributes.iter())
        .map(|it| (it.key.clone(), text(it.value.as_ref())))
        .collect()
}

pub(crate) fn text(value: Option<&AnyValue>) -> String {
    match value.and_then(|it| it.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::BoolValue(it)) => it.to_string(),
        Some(Value::IntValue(it)) => it.to_string(),
        Some(Value::DoubleValue(it)) => it.to_string(),
        other => format!("{other:?}"),
    }
}

#[derive(Clone)]
struct Grpc(Arc<Mutex<Got>>);

impl Grpc {
    fn seen<T>(&self, request: Request<T>) -> T {
        let header = request.metadata().get("authorization");
        let header = header.and_then(|it| it.to_str().ok()).map(str::to_owned);
        let mut got = self.0.lock();
        got.authorization.extend(header);
        got.is_compressed |= request.metadata().contains_key("grpc-encoding");
        request.into_inner()
    }
}

#[tonic::async_trait]
impl TraceService for Grpc {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let request = self.seen(request);
        let mut got = self.0.lock();
        got.traces.push(request);
        Ok(Response::new(got.answer()))
    }
}

#[tonic::async_trait]
impl MetricsService for Grpc {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        let request = self.seen(request);
        self.0.lock().metrics.push(request);
        Ok(Response::new(Default::default()))
    }
}

#[tonic::async_trait]
impl LogsService for Grpc {
    async fn export(
        &self,
        request: Request<ExportLogsServiceRequest>,
    ) -> Result<Response<ExportLogsServiceResponse>, Status> {
        let request = self.seen(request);
        self.0.lock().logs.push(request);
        Ok(Response::new(Default::default()))
    }
}

async fn take(
    State(got): State<Arc<Mutex<Got>>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, Vec<u8>) {
    let mut got = got.lock();
    let header = headers.get("authorization");
    let header = header.and_then(|it| it.to_str().ok()).map(str::to_owned);
    got.authorization.extend(header);
    let is_compressed = headers
        .get("content-encoding")
        .is_some_and(|it| it == "gzip");
    got.is_compressed |= is_compressed;
    let body = if is_compressed {
        let mut read = Vec::new();
        let mut gzip = flate2::read::GzDecoder::new(&*body);
        gzip.read_to_end(&mut read).expect("the body is compressed");
        read.into()
    } else {
        body
    };
    match uri.path() {
        "/v1/traces" => got.traces.push(decoded(body)),
        "/v1/metrics" => got.metrics.push(decoded(body)),
        "/v1/logs" => got.logs.push(decoded(body)),
        _ => return (StatusCode::NOT_FOUND, Vec::new()),
    }
    (StatusCode::OK, got.answer().encode_to_vec())
}

fn decoded<T: prost::Message + Default>(body: Bytes) -> T {
    T::decode(body).expect("the body is what OTLP says")
}
