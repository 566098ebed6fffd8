//! A span collector: the OpenTelemetry trace service over gRPC.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tonic::codec::CompressionEncoding;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use crate::page::BOUND;

/// The collector's runtime outlives the tests' runtimes.
pub(crate) struct Collector {
    pub(crate) endpoint: String,
    spans: Arc<Mutex<Vec<Span>>>,
    _runtime: Runtime,
}

impl Collector {
    pub(crate) fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let spans = Arc::<Mutex<Vec<Span>>>::default();
        let service = TraceServiceServer::new(Keep(Arc::clone(&spans)))
            .accept_compressed(CompressionEncoding::Gzip);
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        runtime.spawn(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            let incoming = futures::stream::unfold(listener, |listener| async {
                let stream = listener.accept().await.map(|(stream, _)| stream);
                Some((stream, listener))
            });
            let serving = Server::builder().add_service(service);
            serving.serve_with_incoming(incoming).await
        });
        Self {
            endpoint,
            spans,
            _runtime: runtime,
        }
    }

    pub(crate) async fn span(&self, trace: [u8; 16], name: &str) -> Span {
        let find = || {
            let spans = self.spans.lock();
            let mut of_trace = spans.iter().filter(|span| span.trace_id == trace);
            of_trace.find(|span| span.name == name).cloned()
        };
        let found = async {
            loop {
                if let Some(span) = find() {
                    return span;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let found = tokio::time::timeout(BOUND, found).await;
        found.unwrap_or_else(|_| panic!("no {name:?} among {:#?}", self.spans.lock()))
    }
}

struct Keep(Arc<Mutex<Vec<Span>>>);

#[tonic::async_trait]
impl TraceService for Keep {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let processes = request.into_inner().resource_spans.into_iter();
        let scopes = processes.flat_map(|process| process.scope_spans);
        self.0.lock().extend(scopes.flat_map(|scope| scope.spans));
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

pub(crate) fn attribute(span: &Span, key: &str) -> String {
    let attribute = span.attributes.iter().find(|it| it.key == key);
    let value = attribute.and_then(|it| it.value.as_ref()?.value.as_ref());
    match value {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        None => String::new(),
        Some(other) => format!("{other:?}"),
    }
}
