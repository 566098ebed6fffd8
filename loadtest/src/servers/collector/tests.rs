use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};

use super::{Collector, Conduct};

fn connect(to: &Collector) -> std::io::Result<TcpStream> {
    TcpStream::connect(to.endpoint.strip_prefix("http://").unwrap())
}

#[tokio::test]
async fn one_that_answers_counts_every_span() {
    let collector = Collector::start(Conduct::Answers, None).unwrap();
    let scope = |spans| ScopeSpans {
        spans: vec![Span::default(); spans],
        ..ScopeSpans::default()
    };
    let request = ExportTraceServiceRequest {
        resource_spans: vec![
            ResourceSpans {
                scope_spans: vec![scope(2), scope(3)],
                ..ResourceSpans::default()
            },
            ResourceSpans {
                scope_spans: vec![scope(4)],
                ..ResourceSpans::default()
            },
        ],
    };
    let endpoint = collector.endpoint.clone();
    let mut client = TraceServiceClient::connect(endpoint).await.unwrap();
    client.export(request.clone()).await.unwrap();
    client.export(request).await.unwrap();
    assert_eq!(collector.spans(), 18);
}

#[test]
fn one_that_refuses_takes_no_connection() {
    let collector = Collector::start(Conduct::Refuses, None).unwrap();
    let refused = connect(&collector).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn one_that_hangs_takes_what_is_sent_and_says_nothing() {
    let collector = Collector::start(Conduct::Hangs, None).unwrap();
    let mut connection = connect(&collector).unwrap();
    connection
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .unwrap();
    let patience = Some(Duration::from_millis(200));
    connection.set_read_timeout(patience).unwrap();
    let silence = connection.read(&mut [0]).unwrap_err();
    assert!(
        [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&silence.kind()),
        "{silence}"
    );
    drop(collector);
    assert!(matches!(connection.read(&mut [0]), Ok(0) | Err(_)));
}
