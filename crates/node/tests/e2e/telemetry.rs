use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::{StatusCode, Uri};
use nix::sys::signal::Signal;
use tokio::net::TcpListener;

use crate::process::Server;

#[derive(Clone, Default)]
pub(crate) struct Collector(Arc<Mutex<Vec<(String, Bytes)>>>);

impl Collector {
    pub(crate) async fn start() -> (Self, String) {
        let collector = Self::default();
        let kept = collector.clone();
        let take = async move |uri: Uri, body: Bytes| {
            kept.0.lock().unwrap().push((uri.path().to_owned(), body));
            StatusCode::OK
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(take);
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (collector, url)
    }

    /// Whether an export contains a text, which Protobuf encodes as it is.
    pub(crate) fn has(&self, path: &str, text: &str) -> bool {
        let all = self.0.lock().unwrap();
        all.iter().any(|(to, body)| {
            to == path && body.windows(text.len()).any(|part| part == text.as_bytes())
        })
    }
}

async fn metrics(server: &Server) -> reqwest::Response {
    let get = reqwest::get(format!("{}/metrics", server.admin));
    get.await.unwrap()
}

#[tokio::test]
async fn prometheus_finds_the_node_on_the_admin_port() {
    let environment = [("SHOAL_NODE__NAME", "fish")];
    let server = Server::start_with(&["--demo"], &environment).await;
    let answer = metrics(&server).await;
    assert_eq!(answer.status(), 200);
    let kind = answer.headers()["content-type"].to_str().unwrap();
    assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
    let text = answer.text().await.unwrap();
    for line in [
        "shoal_node_ready 1",
        r#"shoal_node_roles{shoal_role="edge"} 1"#,
        r#"shoal_node_roles{shoal_role="session"} 1"#,
        r#"shoal_node_roles{shoal_role="worker"} 1"#,
        concat!(
            "shoal_build_info{service_version=\"",
            env!("CARGO_PKG_VERSION"),
            "\"} 1"
        ),
        "process_uptime_seconds ",
        r#"service_name="shoal""#,
        r#"service_instance_id="fish-"#,
        r#"shoal_roles="edge,session,worker""#,
    ] {
        assert!(text.contains(line), "{line} is not in:\n{text}");
    }
}

#[tokio::test]
async fn who_wants_no_metrics_gets_none_and_is_told_why() {
    let environment = [("OTEL_SDK_DISABLED", "true")];
    let server = Server::start_with(&["--demo"], &environment).await;
    let answer = metrics(&server).await;
    assert_eq!(answer.status(), 404);
    let text = answer.text().await.unwrap();
    assert!(text.contains("telemetry.enabled"), "{text}");
}

#[tokio::test]
async fn the_collector_gets_the_last_words_too() {
    let (collector, url) = Collector::start().await;
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "deployment.environment.name=pond",
        ),
        ("SHOAL_TELEMETRY__LOGS__OTLP", "true"),
        ("SHOAL_TELEMETRY__METRICS__OTLP", "true"),
        ("SHOAL_TELEMETRY__METRICS__INTERVAL", "1h"),
    ];
    let mut server = Server::start_with(&["--demo"], &environment).await;
    server.signal(Signal::SIGTERM);
    assert_eq!(server.exit_code().await, 0, "{}", server.log());
    assert!(collector.has("/v1/logs", "shut down"), "{}", server.log());
    assert!(collector.has("/v1/logs", "pond"), "{}", server.log());
    assert!(
        collector.has("/v1/metrics", "shoal.build.info"),
        "{}",
        server.log()
    );
}

#[tokio::test]
async fn a_collector_that_is_away_keeps_nobody() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", taken.local_addr().unwrap());
    drop(taken);
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
        ("SHOAL_TELEMETRY__LOGS__OTLP", "true"),
        ("SHOAL_SHUTDOWN__TELEMETRY", "200ms"),
    ];
    let mut server = Server::start_with(&["--demo"], &environment).await;
    server.signal(Signal::SIGTERM);
    assert_eq!(server.exit_code().await, 0, "{}", server.log());
}
