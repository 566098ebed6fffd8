use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, Method, Request, StatusCode};
use parking_lot::Mutex;
use shoal_cluster::{Fleet, History};
use shoal_edge::Trusted;
use shoal_ports::{
    CallId, CallReport, ErrorReport, InspectError, Inspector, Listing, NodeId, NodeReport,
    Principal, RecentCalls, SessionDetail, SessionId, SessionReport, ToolDetail, ToolReport,
};
use shoal_protocol::RawJson;
use tower::ServiceExt as _;

use super::super::super::refusal::in_json;
use super::super::{ClientEndpoint, Console, OperatorCalls, OperatorEdge};
use crate::config::{Operator, Secret, Settings};

pub(super) const HOSTILE: &str = "<script>alert(1)</script>";

#[derive(Default)]
pub(super) struct Scripted {
    pub(super) limits: Mutex<Vec<usize>>,
    pub(super) deeds: Mutex<Vec<String>>,
}

fn report() -> SessionReport {
    SessionReport {
        id: "s1".to_owned(),
        principal: "2bd806c97f0e".to_owned(),
        client: Some(HOSTILE.to_owned()),
        revision: None,
        single_stream: false,
        live: true,
        task: None,
        in_flight: 0,
        streams: 0,
        streams_read: 0,
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

    async fn tools(&self, filter: &str, limit: usize) -> Result<Listing<ToolReport>, InspectError> {
        self.deeds.lock().push(format!("tools {filter} {limit}"));
        let recent = RecentCalls {
            seconds: 10,
            ..RecentCalls::default()
        };
        let tool = ToolReport {
            name: HOSTILE.to_owned(),
            title: Some(HOSTILE.to_owned()),
            pool: "p".to_owned(),
            recent,
            ..ToolReport::default()
        };
        let items = vec![tool];
        Ok(Listing { items, total: 1 })
    }

    async fn tool(&self, name: &str) -> Result<Option<ToolDetail>, InspectError> {
        let definition = RawJson::from_static(
            r#"{"name":"regional","description":"<script>","inputSchema":{"type":"object",
               "properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}"#,
        );
        let pool = "p".to_owned();
        Ok((name == "regional/ä").then_some(ToolDetail { pool, definition }))
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

pub(super) struct Port {
    router: Router,
    pub(super) node: Arc<Scripted>,
    pub(super) edge: Arc<Mutex<Vec<Came>>>,
}

pub(super) type Came = (Option<Principal>, HeaderMap, String);

impl Port {
    pub(super) fn listening(listen: &str, hosts: &[&str], token: Option<&str>) -> Self {
        let edge = Arc::default();
        let calls = OperatorEdge::new(scripted_edge(&edge), "/mcp");
        Self::with_calls(Ok(calls), edge, (listen, hosts, token), &[])
    }

    pub(super) fn of(operators: &[Operator]) -> Self {
        let edge = Arc::default();
        let calls = OperatorEdge::new(scripted_edge(&edge), "/mcp");
        Self::with_calls(Ok(calls), edge, ("0.0.0.0:8081", &[], None), operators)
    }

    pub(super) fn without_calls(why: &'static str) -> Self {
        Self::with_calls(Err(why), Arc::default(), ("127.0.0.1:8081", &[], None), &[])
    }

    fn with_calls(
        calls: OperatorCalls,
        edge: Arc<Mutex<Vec<Came>>>,
        (listen, hosts, token): (&str, &[&str], Option<&str>),
        operators: &[Operator],
    ) -> Self {
        let node = Arc::new(Scripted::default());
        let config = shoal_rpc::LinkConfig::default();
        let fleet = Fleet::new(
            NodeId::new("me"),
            node.clone(),
            None,
            History::default(),
            config,
        );
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        let token = token.map(Secret::new);
        let listen = listen.parse().unwrap();
        let console = Console::new(
            Arc::new(fleet),
            calls,
            ClientEndpoint::new(&Settings::default(), None),
            token,
            operators,
            listen,
            &hosts,
        );
        Self {
            router: console
                .router()
                .layer(axum::middleware::map_response(in_json)),
            node,
            edge,
        }
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Response {
        self.send_body(method, path, headers, "").await
    }

    pub(super) async fn send_body(
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

    pub(super) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> (StatusCode, String) {
        let answer = self.send(Method::GET, path, headers).await;
        (answer.status(), text(answer).await)
    }
}

fn scripted_edge(came: &Arc<Mutex<Vec<Came>>>) -> Router {
    let came = came.clone();
    let serve = move |request: Request<Body>| async move {
        let (head, body) = request.into_parts();
        let body = axum::body::to_bytes(body, 1 << 21).await.unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap();
        let whose = head.extensions.get::<Trusted>();
        let whose = whose.map(|Trusted(principal)| principal.clone());
        came.lock().push((whose, head.headers, body));
        let parts = ["data: {}\n\n", "data: <script>\n\n"].map(Ok::<_, std::io::Error>);
        let body = Body::from_stream(futures::stream::iter(parts));
        ([("content-type", "text/event-stream")], body)
    };
    Router::new().route("/mcp", axum::routing::post(serve))
}

pub(super) async fn text(answer: Response) -> String {
    let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await;
    String::from_utf8(body.unwrap().to_vec()).unwrap()
}

pub(super) fn here() -> Port {
    Port::listening("127.0.0.1:8081", &[], None)
}
