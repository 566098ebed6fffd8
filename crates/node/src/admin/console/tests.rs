//! The console's protection and bounds, with a scripted node behind it.

use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::{Method, Request, StatusCode};
use parking_lot::Mutex;
use serde_json::Value;
use shoal_cluster::Fleet;
use shoal_ports::{
    CallId, CallReport, ErrorReport, InspectError, Inspector, Listing, NodeId, NodeReport,
    SessionDetail, SessionId, SessionReport,
};
use tower::ServiceExt as _;

use super::Console;
use crate::config::Secret;

const TOKEN: &str = "correct-horse-battery-staple";
const HOSTILE: &str = "<script>alert(1)</script>";

/// A node with one session, which notes what is done to it.
#[derive(Default)]
struct Scripted {
    limits: Mutex<Vec<usize>>,
    deeds: Mutex<Vec<String>>,
}

fn report() -> SessionReport {
    SessionReport {
        id: "s1".to_owned(),
        principal: "2bd806c97f0e".to_owned(),
        client: Some(HOSTILE.to_owned()),
        revision: None,
        single_stream: false,
        live: true,
        in_flight: 0,
        streams: 0,
        idle_ms: 1,
        epoch: 1,
    }
}

#[async_trait]
impl Inspector for Scripted {
    async fn node(&self) -> Result<NodeReport, InspectError> {
        Ok(NodeReport {
            id: "me".to_owned(),
            roles: vec!["edge".to_owned()],
            ..NodeReport::default()
        })
    }

    async fn sessions(
        &self,
        filter: &str,
        limit: usize,
    ) -> Result<Listing<SessionReport>, InspectError> {
        self.limits.lock().push(limit);
        let items = if filter == "nobody" {
            vec![]
        } else {
            vec![report()]
        };
        Ok(Listing { items, total: 900 })
    }

    async fn session(&self, session: &SessionId) -> Result<Option<SessionDetail>, InspectError> {
        Ok((session.as_str() == "s1").then(|| SessionDetail {
            session: report(),
            log_level: Some("info".to_owned()),
            subscriptions: Vec::new(),
            subscriptions_total: 0,
            streams: Vec::new(),
            calls: Vec::new(),
        }))
    }

    async fn calls(&self, limit: usize) -> Result<Listing<CallReport>, InspectError> {
        self.limits.lock().push(limit);
        Ok(Listing::default())
    }

    async fn errors(&self, limit: usize) -> Result<Listing<ErrorReport>, InspectError> {
        self.limits.lock().push(limit);
        Ok(Listing::default())
    }

    async fn end_session(&self, session: &SessionId) -> Result<bool, InspectError> {
        self.deeds.lock().push(format!("end {session}"));
        Ok(session.as_str() == "s1")
    }

    async fn cancel_call(&self, call: CallId, reason: &str) -> Result<bool, InspectError> {
        self.deeds.lock().push(format!("cancel {call}: {reason}"));
        Ok(true)
    }
}

struct Port {
    router: Router,
    node: Arc<Scripted>,
}

impl Port {
    fn listening(listen: &str, hosts: &[&str], token: Option<&str>) -> Self {
        let node = Arc::new(Scripted::default());
        let config = shoal_rpc::LinkConfig::default();
        let fleet = Fleet::new(NodeId::new("me"), node.clone(), None, config);
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        let token = token.map(Secret::new);
        let console = Console::new(Arc::new(fleet), token, listen.parse().unwrap(), &hosts);
        Self {
            router: console.router(),
            node,
        }
    }

    async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Response {
        self.send_body(method, path, headers, "").await
    }

    async fn send_body(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn get(&self, path: &str, headers: &[(&str, &str)]) -> (StatusCode, String) {
        let answer = self.send(Method::GET, path, headers).await;
        (answer.status(), text(answer).await)
    }
}

async fn text(answer: Response) -> String {
    let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await;
    String::from_utf8(body.unwrap().to_vec()).unwrap()
}

fn here() -> Port {
    Port::listening("127.0.0.1:8081", &[], None)
}

#[tokio::test]
async fn without_a_token_the_console_is_for_this_machine_only() {
    let (status, body) = here().get("/console/api/overview", &[]).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    for (listen, hosts) in [
        ("0.0.0.0:8081", &[][..]),
        ("10.0.0.1:8081", &[]),
        ("127.0.0.1:8081", &["*"]),
        ("127.0.0.1:8081", &["shoal.internal"]),
    ] {
        let port = Port::listening(listen, hosts, None);
        for path in ["/console/", "/console/main.js", "/console/api/overview"] {
            let (status, body) = port.get(path, &[]).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{listen} {path}");
            assert!(body.contains("server.admin_token"), "{body}");
        }
    }
}

#[tokio::test]
async fn a_token_that_is_set_is_asked_for() {
    for listen in ["0.0.0.0:8081", "127.0.0.1:8081"] {
        let port = Port::listening(listen, &[], Some(TOKEN));
        let (status, _) = port.get("/console/", &[]).await;
        assert_eq!(status, StatusCode::OK, "the page asks for it");
        let right = format!("Bearer {TOKEN}");
        let longer = format!("Bearer {TOKEN}x");
        let shorter = format!("Bearer {}", &TOKEN[1..]);
        let other = format!("Basic {TOKEN}");
        for wrong in ["", "Bearer", "Bearer ", TOKEN, &longer, &shorter, &other] {
            let sent = [("authorization", wrong)];
            let answer = port.send(Method::GET, "/console/api/overview", &sent).await;
            assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{wrong:?}");
            assert_eq!(answer.headers()["www-authenticate"], "Bearer");
            let deed = port.send(Method::POST, "/console/api/sessions/s1/end", &sent);
            assert_eq!(deed.await.status(), StatusCode::UNAUTHORIZED, "{wrong:?}");
        }
        assert!(port.node.deeds.lock().is_empty());
        let (status, _) = port
            .get("/console/api/overview", &[("authorization", &right)])
            .await;
        assert_eq!(status, StatusCode::OK);
    }
}

#[tokio::test]
async fn changes_need_the_header_that_only_the_page_sends() {
    let port = here();
    let path = "/console/api/sessions/s1/end";
    let forged = [
        ("content-type", "text/plain"),
        ("origin", "http://evil.example"),
    ];
    let answer = port.send(Method::POST, path, &forged).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    assert!(text(answer).await.contains("X-Shoal-Console"));
    assert!(port.node.deeds.lock().is_empty());
    let (status, _) = port.get(path, &[("x-shoal-console", "1")]).await;
    assert_eq!(
        status,
        StatusCode::METHOD_NOT_ALLOWED,
        "nothing happens by GET"
    );
    let answer = port
        .send(Method::POST, path, &[("x-shoal-console", "1")])
        .await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(*port.node.deeds.lock(), ["end s1"]);
    let gone = "/console/api/sessions/s2/end";
    let answer = port
        .send(Method::POST, gone, &[("x-shoal-console", "1")])
        .await;
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_reason_goes_along_within_bounds() {
    let port = here();
    let call = CallId::generate();
    let path = format!("/console/api/calls/{call}/cancel");
    let header = [("x-shoal-console", "1")];
    let long = format!(r#"{{"reason":"{}"}}"#, "x".repeat(1_000));
    for (body, status) in [
        ("", 200),
        (r#"{"reason":"too \u0007slow"}"#, 200),
        (long.as_str(), 200),
        (r#"{"why":"x"}"#, 400),
        ("no json", 400),
    ] {
        let answer = port.send_body(Method::POST, &path, &header, body).await;
        assert_eq!(answer.status(), status, "{body}");
    }
    let oversized = "x".repeat(5_000);
    let answer = port
        .send_body(Method::POST, &path, &header, &oversized)
        .await;
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let deeds = port.node.deeds.lock().clone();
    assert_eq!(deeds[0], format!("cancel {call}: cancelled by an operator"));
    assert!(deeds[1].ends_with(": too slow"), "{deeds:?}");
    assert!(deeds[2].len() < 350, "{deeds:?}");
    assert_eq!(deeds.len(), 3);
}

#[tokio::test]
async fn lists_are_bounded_and_say_what_was_left_out() {
    let port = here();
    for (query, status) in [
        ("sessions", 200),
        ("sessions?limit=7&filter=nobody", 200),
        ("calls?limit=100000", 200),
        ("errors?limit=-1", 400),
    ] {
        let (got, body) = port.get(&format!("/console/api/{query}"), &[]).await;
        assert_eq!(got, status, "{query}: {body}");
    }
    assert_eq!(*port.node.limits.lock(), [200, 7, 500]);
    let (_, body) = port.get("/console/api/sessions", &[]).await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (&body["total"], &body["items"][0]["node"]),
        (&900.into(), &"me".into())
    );
    let filter = "x".repeat(129);
    let (status, _) = port
        .get(&format!("/console/api/sessions?filter={filter}"), &[])
        .await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    for unknown in ["sessions/none", "sessions/%20", "nothing"] {
        let (status, _) = port.get(&format!("/console/api/{unknown}"), &[]).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{unknown}");
    }
}

#[tokio::test]
async fn what_clients_chose_is_data_and_never_markup() {
    let port = here();
    let answer = port.send(Method::GET, "/console/api/sessions", &[]).await;
    assert_eq!(answer.headers()["content-type"], "application/json");
    assert_eq!(answer.headers()["cache-control"], "no-store");
    let body: Value = serde_json::from_str(&text(answer).await).unwrap();
    assert_eq!(body["items"][0]["client"], HOSTILE);
    for path in [
        "/console/",
        "/console/console.css",
        "/console/main.js",
        "/console/api/calls",
    ] {
        let answer = port.send(Method::GET, path, &[]).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        let policy = answer.headers()["content-security-policy"]
            .to_str()
            .unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(
            answer.headers()["x-content-type-options"],
            "nosniff",
            "{path}"
        );
    }
}

#[tokio::test]
async fn the_page_brings_everything_itself_and_writes_no_markup() {
    let port = here();
    let (_, page) = port.get("/console/", &[]).await;
    assert!(
        page.contains(r#"<script type="module" src="main.js">"#),
        "{page}"
    );
    for (path, _, text) in super::assets::ASSETS {
        for outside in ["http://", "https://", "//cdn"] {
            let found = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!found.contains(outside), "{path} has {outside}");
        }
        for writes in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
        ] {
            assert!(!text.contains(writes), "{path} has {writes}");
        }
    }
    let (status, _) = port.get("/", &[]).await;
    assert_eq!(status, StatusCode::TEMPORARY_REDIRECT);
}
