use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1 as otlp;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use tonic::codec::CompressionEncoding;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

const LOOK_AGAIN: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) span: otlp::Span,
    pub(crate) resource: HashMap<String, String>,
    pub(crate) attributes: HashMap<String, String>,
}

pub(crate) struct Collector {
    pub(crate) endpoint: String,
    spans: Arc<Mutex<Vec<Span>>>,
    _server: AbortOnDropHandle<()>,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let spans: Arc<Mutex<Vec<Span>>> = Arc::default();
        let incoming = futures::stream::unfold(listener, |listener| async {
            let stream = listener.accept().await.map(|(stream, _)| stream);
            Some((stream, listener))
        });
        let service = TraceServiceServer::new(Keep(spans.clone()))
            .accept_compressed(CompressionEncoding::Gzip);
        let serving = Server::builder().add_service(service);
        let server = tokio::spawn(async move {
            let _ = serving.serve_with_incoming(incoming).await;
        });
        Self {
            endpoint,
            spans,
            _server: AbortOnDropHandle::new(server),
        }
    }

    pub(crate) fn of_trace(&self, trace: &[u8]) -> Vec<Span> {
        let spans = self.spans.lock();
        let of_trace = spans.iter().filter(|span| span.span.trace_id == trace);
        of_trace.cloned().collect()
    }

    pub(crate) async fn wait_for(
        &self,
        trace: &[u8],
        enough: impl Fn(&[Span]) -> bool,
    ) -> Vec<Span> {
        for _ in 0..300 {
            let spans = self.of_trace(trace);
            if enough(&spans) {
                return spans;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        panic!("these spans are not all: {}", drawn(&self.of_trace(trace)))
    }
}

impl Span {
    pub(crate) fn name(&self) -> &str {
        &self.span.name
    }

    pub(crate) fn attribute(&self, key: &str) -> &str {
        self.attributes.get(key).map_or("", String::as_str)
    }
}

/// No chain of parents and links connects these spans with `root`. Parents and links count in both
/// directions.
pub(crate) fn unconnected<'a>(spans: &'a [Span], root: &[u8]) -> Vec<&'a str> {
    let mut reached: HashSet<&[u8]> = HashSet::from([root]);
    loop {
        let before = reached.len();
        for span in spans {
            let links = span.span.links.iter().map(|link| link.span_id.as_slice());
            let mut ends: Vec<&[u8]> = links.collect();
            ends.push(&span.span.parent_span_id);
            ends.retain(|end| !end.is_empty());
            if reached.contains(span.span.span_id.as_slice()) {
                reached.extend(ends);
            } else if ends.iter().any(|end| reached.contains(end)) {
                reached.insert(&span.span.span_id);
            }
        }
        if reached.len() == before {
            break;
        }
    }
    let left = spans
        .iter()
        .filter(|span| !reached.contains(span.span.span_id.as_slice()));
    left.map(Span::name).collect()
}

pub(crate) fn drawn(spans: &[Span]) -> String {
    let line = |span: &Span| {
        let id = |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
        format!(
            "{} {} (parent {}, {} links) {:?} {:?}",
            id(&span.span.span_id),
            span.name(),
            id(&span.span.parent_span_id),
            span.span.links.len(),
            span.resource.get("service.instance.id"),
            span.attributes,
        )
    };
    spans.iter().map(line).collect::<Vec<_>>().join("\n")
}

struct Keep(Arc<Mutex<Vec<Span>>>);

#[tonic::async_trait]
impl TraceService for Keep {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let mut kept = self.0.lock();
        for process in request.into_inner().resource_spans {
            let resource = process.resource.map(|resource| texts(&resource.attributes));
            let resource = resource.unwrap_or_default();
            let spans = process
                .scope_spans
                .into_iter()
                .flat_map(|scope| scope.spans);
            kept.extend(spans.map(|span| Span {
                attributes: texts(&span.attributes),
                resource: resource.clone(),
                span,
            }));
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn texts(attributes: &[KeyValue]) -> HashMap<String, String> {
    let text = |attribute: &KeyValue| {
        let value = attribute
            .value
            .as_ref()
            .and_then(|value| value.value.as_ref());
        let text = match value {
            Some(Value::StringValue(text)) => text.clone(),
            Some(Value::BoolValue(it)) => it.to_string(),
            Some(Value::IntValue(it)) => it.to_string(),
            Some(Value::DoubleValue(it)) => it.to_string(),
            other => format!("{other:?}"),
        };
        (attribute.key.clone(), text)
    };
    attributes.iter().map(text).collect()
}
