use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use shoal_ports::{
    CallId, CallReport, CallState, ErrorReport, InspectError, Inspector, Listing, NodeId,
    NodeReport, Outcomes, PoolReport, RecentCalls, Remembered, SessionDetail, SessionId,
    SessionReport, Step, StreamReport, ToolAnnotations, ToolDetail, ToolReport, WorkerReport,
};
use shoal_protocol::RawJson;
use shoal_rpc::proto::node::v1::node_console_server::{NodeConsole, NodeConsoleServer};
use shoal_rpc::proto::node::v1::{ActAnswer, ActRequest, InspectAnswer, InspectRequest};
use shoal_rpc::{ClusterServer, RemoteInspector, serve_inspector};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::setting::{Node, config, within};

#[derive(Default)]
struct Scripted {
    asked: Mutex<Vec<String>>,
}

fn node() -> NodeReport {
    let worker = WorkerReport {
        id: "p@w".to_owned(),
        ready: true,
        reachable: true,
        circuit_open: true,
        running: 1,
        queued: 2,
        capacity: 3,
        detail: Some("degraded".to_owned()),
    };
    let pool = PoolReport {
        name: "p".to_owned(),
        ready: true,
        tools: 4,
        prompts: 5,
        resources: 6,
        left_out: vec!["GET /a: why".to_owned()],
        cut: vec!["b: how".to_owned()],
        workers: vec![worker],
    };
    let step = Step {
        at: 1_700_000_005,
        outcomes: Outcomes {
            ok: 1,
            rejected: 2,
            failed: 3,
            cancelled: 4,
        },
        latency: vec![5, 0, 6],
        sessions: 7,
        streams: 8,
        calls: 9,
    };
    NodeReport {
        id: "node-1".to_owned(),
        version: "0.1.0".to_owned(),
        roles: vec!["edge".to_owned(), "session".to_owned()],
        uptime_ms: 10,
        draining: true,
        waits_for: vec!["a pool".to_owned()],
        store_trouble: Some("away".to_owned()),
        live_sessions: 11,
        sleeping_sessions: 12,
        streams: 13,
        requests: 14,
        calls: 15,
        parked: 16,
        pools: vec![pool],
        steps: vec![step.clone()],
        remembered: vec![Remembered {
            node: "node-0".to_owned(),
            steps: vec![step],
        }],
    }
}

fn session() -> SessionReport {
    SessionReport {
        id: "s1".to_owned(),
        principal: "2bd806c97f0e".to_owned(),
        client: Some("client 1".to_owned()),
        revision: Some("2025-11-25".to_owned()),
        single_stream: true,
        live: true,
        task: Some("working".to_owned()),
        in_flight: 1,
        streams: 2,
        streams_read: 1,
        idle_ms: 3,
        epoch: 4,
    }
}

fn call(state: CallState) -> CallReport {
    CallReport {
        id: "0190".to_owned(),
        method: "tools/call".to_owned(),
        target: Some("add".to_owned()),
        session: Some("s1".to_owned()),
        client: Some("client 1".to_owned()),
        principal: "2bd806c97f0e".to_owned(),
        worker: Some("p@w".to_owned()),
        journaled: true,
        modern: true,
        age_ms: 5,
        state,
    }
}

fn detail() -> SessionDetail {
    SessionDetail {
        session: session(),
        log_level: Some("info".to_owned()),
        subscriptions: vec!["r://a".to_owned()],
        subscriptions_total: 2,
        streams: vec![StreamReport {
            last: "1-0-2".to_owned(),
            standalone: true,
            read: true,
        }],
        calls: vec![call(CallState::Running)],
    }
}

fn calls() -> Listing<CallReport> {
    let states = [
        CallState::Starting,
        CallState::Running,
        CallState::Cancelling,
    ];
    Listing {
        items: states.map(call).to_vec(),
        total: 30,
    }
}

fn errors() -> Listing<ErrorReport> {
    Listing {
        items: vec![ErrorReport {
            at_ms: 1_700_000_000_000,
            method: Some("tools/call".to_owned()),
            target: None,
            code: -32_602,
            tool_failed: true,
            message: "no".to_owned(),
            session: None,
            trace: Some("0af7".to_owned()),
        }],
        total: 256,
    }
}

fn tools() -> Listing<ToolReport> {
    let annotations = ToolAnnotations {
        read_only: Some(true),
        destructive: Some(false),
        idempotent: None,
        open_world: Some(true),
    };
    let recent = RecentCalls {
        seconds: 60,
        outcomes: node().steps[0].outcomes,
        latency: vec![1, 2],
    };
    Listing {
        items: vec![ToolReport {
            name: "add".to_owned(),
            title: Some("Adds".to_owned()),
            description: Some("Adds two numbers.".to_owned()),
            pool: "p".to_owned(),
            annotations,
            recent,
        }],
        total: 3,
    }
}

fn tool() -> ToolDetail {
    ToolDetail {
        pool: "p".to_owned(),
        definition: RawJson::from_static(r#"{"name":"add","z":1.0,"a":[]}"#),
    }
}

#[async_trait]
impl Inspector for Scripted {
    async fn node(&self) -> Result<NodeReport, InspectError> {
        Ok(node())
    }

    async fn sessions(
        &self,
        filter: &str,
        limit: usize,
    ) -> Result<Listing<SessionReport>, InspectError> {
        self.asked.lock().push(format!("{filter} {limit}"));
        Ok(Listing {
            items: vec![session()],
            total: 9,
        })
    }

    async fn session(&self, session: &SessionId) -> Result<Option<SessionDetail>, InspectError> {
        Ok((session.as_str() == "s1").then(detail))
    }

    async fn calls(&self, limit: usize) -> Result<Listing<CallReport>, InspectError> {
        self.asked.lock().push(limit.to_string());
        Ok(calls())
    }

    async fn errors(&self, _limit: usize) -> Result<Listing<ErrorReport>, InspectError> {
        Ok(errors())
    }

    async fn tools(&self, filter: &str, limit: usize) -> Result<Listing<ToolReport>, InspectError> {
        self.asked.lock().push(format!("tools {filter} {limit}"));
        Ok(tools())
    }

    async fn tool(&self, name: &str) -> Result<Option<ToolDetail>, InspectError> {
        Ok((name == "add").then(tool))
    }

    async fn end_session(&self, session: &SessionId) -> Result<bool, InspectError> {
        match session.as_str() {
            "stuck" => Err(InspectError::Failed("it is stuck".to_owned())),
            session => Ok(session == "s1"),
        }
    }

    async fn cancel_call(&self, call: CallId, reason: &str) -> Result<bool, InspectError> {
        self.asked.lock().push(format!("{call} {reason}"));
        Ok(true)
    }
}

async fn scripted() -> (Arc<Scripted>, String, CancellationToken) {
    let inspector = Arc::new(Scripted::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = ClusterServer {
        workers: None,
        gateway: None,
        console: Some(serve_inspector(NodeId::new("node-1"), inspector.clone())),
        config: config(),
    };
    let stop = CancellationToken::new();
    let stopped = stop.clone().cancelled_owned();
    tokio::spawn(async move { server.serve(listener, stopped).await.unwrap() });
    (inspector, address, stop)
}

fn remote(node: &str, address: &str) -> RemoteInspector {
    RemoteInspector::new(NodeId::new(node), address, config())
}

#[tokio::test]
async fn everything_that_is_told_arrives() {
    within(async {
        let (inspector, address, _stop) = scripted().await;
        let remote = remote("node-1", &address);
        assert_eq!(remote.node().await.unwrap(), node());
        let sessions = remote.sessions("a filter", 7).await.unwrap();
        assert_eq!((sessions.items, sessions.total), (vec![session()], 9));
        let found = remote.session(&SessionId::new("s1")).await.unwrap();
        assert_eq!(found, Some(detail()));
        assert_eq!(remote.session(&SessionId::new("s2")).await.unwrap(), None);
        assert_eq!(remote.calls(1_000_000).await.unwrap(), calls());
        assert_eq!(remote.errors(1).await.unwrap(), errors());
        assert_eq!(remote.tools("ad", 8).await.unwrap(), tools());
        assert_eq!(
            remote.tool("add").await.unwrap(),
            Some(tool()),
            "in its order"
        );
        assert_eq!(remote.tool("sub").await.unwrap(), None);
        assert_eq!(remote.end_session(&SessionId::new("s1")).await, Ok(true));
        assert_eq!(remote.end_session(&SessionId::new("s2")).await, Ok(false));
        let id = CallId::generate();
        assert_eq!(remote.cancel_call(id, "enough").await, Ok(true));
        let asked = inspector.asked.lock().clone();
        let cancelled = format!("{id} enough");
        assert_eq!(asked, ["a filter 7", "1000", "tools ad 8", &cancelled]);
        let failed = remote.end_session(&SessionId::new("stuck")).await;
        assert_eq!(failed, Err(InspectError::Failed("it is stuck".to_owned())));
        assert!(remote.node().await.is_ok(), "the way stays open");
    })
    .await;
}

#[tokio::test]
async fn a_release_without_a_console_cannot_be_inspected() {
    within(async {
        let node = Node::start(config()).await;
        let remote = remote("node-1", &node.address.to_string());
        assert_eq!(remote.node().await, Err(InspectError::Unsupported));
        let ended = remote.end_session(&SessionId::new("s1")).await;
        assert_eq!(ended, Err(InspectError::Unsupported));
    })
    .await;
}

struct Earlier;

#[async_trait]
impl NodeConsole for Earlier {
    async fn inspect(&self, _: Request<InspectRequest>) -> Result<Response<InspectAnswer>, Status> {
        let answer: &[u8] = b"\x0a\x08\x0a\x06node-1";
        let answer = prost::Message::decode(answer);
        Ok(Response::new(answer.unwrap()))
    }

    async fn act(&self, _: Request<ActRequest>) -> Result<Response<ActAnswer>, Status> {
        Ok(Response::new(ActAnswer { done: true }))
    }
}

#[tokio::test]
async fn a_release_with_other_reports_is_said_to_be_one_and_can_be_acted_on() {
    within(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let incoming = tonic::transport::server::TcpIncoming::from(listener);
        let router =
            tonic::transport::Server::builder().add_service(NodeConsoleServer::new(Earlier));
        let serving = tokio::spawn(router.serve_with_incoming(incoming));
        let remote = remote("node-1", &address);
        assert_eq!(remote.node().await, Err(InspectError::Unsupported));
        let session = SessionId::new("s1");
        let asked = remote.session(&session).await;
        assert_eq!(asked, Err(InspectError::Unsupported));
        assert_eq!(remote.end_session(&session).await, Ok(true));
        serving.abort();
    })
    .await;
}

#[tokio::test]
async fn another_node_at_the_same_address_is_not_asked() {
    within(async {
        let (_inspector, address, stop) = scripted().await;
        let stranger = remote("node-2", &address);
        let said = stranger.node().await.unwrap_err();
        assert!(
            matches!(&said, InspectError::Unreachable(why) if why.contains("node-1")),
            "{said}"
        );
        let known = remote("node-1", &address);
        assert!(known.node().await.is_ok());
        stop.cancel();
        loop {
            match known.node().await {
                Ok(_) => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
                Err(InspectError::Unreachable(_)) => break,
                Err(other) => panic!("{other}"),
            }
        }
    })
    .await;
}
