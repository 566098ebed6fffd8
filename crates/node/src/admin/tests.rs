use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::Body;
use http::{Request, StatusCode};
use shoal_dispatch::{PoolStatus, Status, WorkerStatus};
use tower::ServiceExt as _;

use super::{Observed, Readiness, StatusReport, router};

struct Node {
    draining: bool,
    ready: bool,
}

impl Observed for Node {
    fn readiness(&self) -> Readiness {
        let worker = WorkerStatus {
            id: "files@n".to_owned(),
            pool: "files".to_owned(),
            node: Some("n".to_owned()),
            reachable: true,
            circuit: shoal_dispatch::CircuitState::Closed,
            ready: self.ready,
            running: 0,
            queued: 0,
            capacity: 1,
            detail: (!self.ready).then(|| "starting".to_owned()),
        };
        let pool = PoolStatus {
            name: "files".to_owned(),
            ready: self.ready,
            lingering: false,
            removed: false,
            unnamed: false,
            awaiting: 0,
            lists: shoal_ports::ListScope::Shared,
            own_lists: 0,
            tools: 0,
            prompts: 0,
            resources: 0,
            resource_templates: 0,
            left_out: Vec::new(),
            cut: Vec::new(),
            workers: vec![worker],
        };
        let status = Status {
            pools: vec![pool],
            conflicts: Vec::new(),
            degraded: Vec::new(),
            parked: 0,
            subscriptions: 0,
        };
        Readiness::of(self.draining, status, &BTreeSet::new(), false)
    }

    fn report(&self) -> StatusReport {
        panic!("not asked for here")
    }
}

async fn readyz(node: Node, host: Option<&str>) -> (StatusCode, String) {
    let router = router(Arc::new(node), None, "127.0.0.1:8081".parse().unwrap(), &[]);
    let mut request = Request::get("/readyz");
    if let Some(host) = host {
        request = request.header("host", host);
    }
    let answer = router
        .oneshot(request.body(Body::empty()).unwrap())
        .await
        .unwrap();
    let status = answer.status();
    let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await;
    (status, String::from_utf8(body.unwrap().to_vec()).unwrap())
}

#[tokio::test]
async fn a_node_is_ready_when_every_pool_is() {
    for (draining, ready, status, says) in [
        (false, true, 200, r#""status":"ready","reasons":[]"#),
        (false, false, 503, "pool files is not ready: starting"),
        (true, true, 503, "the node is shutting down"),
        (true, false, 503, r#""status":"draining""#),
    ] {
        let (code, body) = readyz(Node { draining, ready }, Some("localhost")).await;
        assert_eq!(code, status, "{body}");
        assert!(body.contains(says), "{body}");
    }
}

#[tokio::test]
async fn a_request_without_a_host_is_refused() {
    let node = Node {
        draining: false,
        ready: true,
    };
    let (code, body) = readyz(node, None).await;
    assert_eq!(code, StatusCode::BAD_REQUEST);
    assert!(body.contains("host is missing"), "{body}");
}

#[tokio::test]
async fn a_request_that_two_readers_could_understand_differently_is_refused() {
    let node = Arc::new(Node {
        draining: false,
        ready: true,
    });
    let router = router(node, None, "127.0.0.1:8081".parse().unwrap(), &[]);
    for (uri, headers, says) in [
        (
            "/readyz",
            &[("host", "localhost"), ("host", "localhost")][..],
            "twice",
        ),
        (
            "/readyz",
            &[("host", "localhost"), ("host", "evil.example")],
            "twice",
        ),
        (
            "/readyz",
            &[("host", "evil.example"), ("host", "localhost")],
            "twice",
        ),
        (
            "http://evil.example/readyz",
            &[("host", "localhost")],
            "the same host",
        ),
        (
            "/readyz",
            &[
                ("host", "localhost"),
                ("authorization", "a"),
                ("authorization", "b"),
            ],
            "twice",
        ),
    ] {
        let mut request = Request::get(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        let answer = router.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{headers:?}");
        let body = axum::body::to_bytes(answer.into_body(), 4096)
            .await
            .unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert!(body.contains(says), "{body}");
    }
}

#[tokio::test]
async fn what_no_route_takes_is_refused_in_json() {
    for (method, path, status, part) in [
        ("POST", "/livez", 405, "not allowed here"),
        ("DELETE", "/status", 405, "not allowed here"),
        ("GET", "/nothing", 404, "nothing here"),
    ] {
        let node = Arc::new(Node {
            draining: false,
            ready: true,
        });
        let router = router(node, None, "127.0.0.1:0".parse().unwrap(), &[]);
        let request = Request::builder().method(method).uri(path);
        let request = request.header("host", "localhost").body(Body::empty());
        let answer = router.oneshot(request.unwrap()).await.unwrap();
        assert_eq!(answer.status(), status, "{method} {path}");
        assert_eq!(answer.headers()["content-type"], "application/json");
        assert_eq!(answer.headers().contains_key("allow"), status == 405);
        let body = axum::body::to_bytes(answer.into_body(), 4096)
            .await
            .unwrap();
        let said: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let told = said["error"].as_str().unwrap_or_default();
        assert!(told.contains(part), "{method} {path}: {said}");
    }
}
