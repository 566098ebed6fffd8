use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use shoal_auth::NoAuthentication;
use shoal_cluster::{Members, MembersConfig, RoutedGateway, RoutingConfig};
use shoal_dispatch::{Config as DispatchConfig, Dispatch};
use shoal_edge::{Edge, EdgeConfig, Load};
use shoal_ports::memory::MemoryStore;
use shoal_ports::{Dispatcher, NodeId, NodeInfo, Store, StreamSettings, WorkerId};
use shoal_protocol::{KeyRing, SealKey};
use shoal_session::{SessionConfig, Sessions};
use shoal_testkit::check::{Rules, Verdict, Violation, check};
use shoal_testkit::client::{Client, End};
use shoal_testkit::history::{Message, Recorder, Step, Tool};
use shoal_worker::{PoolConfig, RmcpBackend, WorkerRuntime};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::link::{Link, Links};
use super::stage::{Stage, StagedTools};

pub(crate) const LONG: Duration = Duration::from_secs(3600);
const SOON: Duration = Duration::from_secs(40);
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) struct Parts {
    pub(crate) store: Store,
    pub(crate) dispatcher: Arc<dyn Dispatcher>,
    /// How long a call is held. Zero means that calls are journaled before they start.
    pub(crate) hold: Duration,
}

/// Two nodes, of which `a` has the client's session until the failover.
pub(crate) struct TestCluster {
    pub(crate) stage: Arc<Stage>,
    pub(crate) a: Sessions,
    pub(crate) b: Sessions,
    pub(crate) way_to_a: Arc<Link>,
    client: Client,
    edge: Members,
    store: Store,
}

impl TestCluster {
    pub(crate) async fn start(
        plant_in_a: impl FnOnce(&mut Parts),
        plant_in_b: impl FnOnce(&mut Parts),
    ) -> Self {
        let store = MemoryStore::new(StreamSettings::default()).into_store();
        let stage = Arc::new(Stage::default());
        let dispatch = workers(&stage).await;
        let a = node("a", &store, &dispatch, plant_in_a);
        let b = node("b", &store, &dispatch, plant_in_b);
        for id in ["a", "b"].map(NodeId::new) {
            store.directory.renew_lease(&id, LONG).await.unwrap();
        }
        // Only node `a` is known yet, so sessions are opened there.
        let membership = &store.membership;
        membership.announce(&info("a", true), LONG).await.unwrap();
        let (way_to_a, way_to_b) = (Link::to(a.clone()), Link::to(b.clone()));
        let links = HashMap::from([
            (NodeId::new("a"), way_to_a.clone()),
            (NodeId::new("b"), way_to_b),
        ]);
        let (edge, url) = edge(&store, &dispatch, Links(links)).await;
        Self {
            client: Client::new(&url, Recorder::new(1, Instant::now())).unwrap(),
            stage,
            a,
            b,
            way_to_a,
            edge,
            store,
        }
    }

    pub(crate) fn call(&self, tool: Tool, steps: u32) -> JoinHandle<End> {
        let client = self.client.clone();
        let work = client.work(tool, steps, 0);
        tokio::spawn(async move { client.call(work, None).await })
    }

    /// Sends requests for A's sessions to B. A continues without knowing.
    pub(crate) async fn fail_over(&self) {
        let (a, membership) = (NodeId::new("a"), &self.store.membership);
        membership.announce(&info("b", true), LONG).await.unwrap();
        membership.withdraw(&a).await.unwrap();
        let mut views = self.edge.watch();
        let seen = views.wait_for(|view| {
            let there = |id: &str| {
                let node = view.node(&NodeId::new(id));
                node.is_some_and(|node| node.is_present())
            };
            there("b") && !there("a")
        });
        within(seen).await.unwrap();
        self.store.directory.end_lease(&a).await.unwrap();
        self.way_to_a.cut();
    }

    pub(crate) async fn client_sees_step(&self, step: u64, calls: usize) {
        let is_step = |did: &Step| {
            let Step::Received { message, .. } = did else {
                return false;
            };
            matches!(message, Message::Progress { value, .. } if *value == step)
        };
        until("the client sees a step", || self.count(is_step) >= calls).await;
    }

    pub(crate) fn client_has(&self, what: impl Fn(&Step) -> bool) -> bool {
        self.count(what) > 0
    }

    fn count(&self, what: impl Fn(&Step) -> bool) -> usize {
        let entries = self.client.history().entries;
        entries.iter().filter(|entry| what(&entry.step)).count()
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let histories = [self.client.history()];
        check(&histories, &self.stage.ledger(), &Rules::default())
    }
}

pub(crate) fn kinds(verdict: &Verdict) -> Vec<Violation> {
    let kinds = verdict.findings.iter().map(|finding| finding.violation);
    let kinds: BTreeSet<Violation> = kinds.collect();
    kinds.into_iter().collect()
}

pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    timeout(SOON, future).await.expect("in time")
}

pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(timeout(SOON, waiting).await.is_ok(), "not in time: {what}");
}

fn node(id: &str, store: &Store, dispatch: &Dispatch, plant: impl FnOnce(&mut Parts)) -> Sessions {
    let mut parts = Parts {
        store: store.clone(),
        dispatcher: Arc::new(dispatch.clone()),
        hold: Duration::ZERO,
    };
    plant(&mut parts);
    let config = SessionConfig {
        streams: StreamSettings {
            retry: PAUSE.into(),
            hold: parts.hold.into(),
            ..StreamSettings::default()
        },
        ..SessionConfig::default()
    };
    Sessions::start(config, parts.store, parts.dispatcher, NodeId::new(id))
}

async fn workers(stage: &Arc<Stage>) -> Dispatch {
    let keys = KeyRing::new(vec![SealKey::random()]);
    let dispatch = Dispatch::new(DispatchConfig::default(), keys);
    let backend = RmcpBackend::start(StagedTools::new(stage.clone())).await;
    let (id, config) = (WorkerId::new("w"), PoolConfig::new("staged"));
    dispatch.add_worker(WorkerRuntime::start(id, config, backend).await);
    until("the tools are known", || {
        dispatch.status().pools.iter().any(|pool| pool.ready)
    })
    .await;
    dispatch
}

async fn edge(store: &Store, dispatch: &Dispatch, links: Links) -> (Members, String) {
    let config = MembersConfig {
        refresh: PAUSE,
        ..MembersConfig::default()
    };
    let members = Members::join(config, info("e", false), store, Arc::new(links));
    let members = members.await.unwrap();
    let config = RoutingConfig {
        resolve_every: PAUSE,
        resolve_at_most: PAUSE,
        ..RoutingConfig::default()
    };
    let routed = RoutedGateway::new(config, members.clone(), store.directory.clone(), None);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let config = EdgeConfig::for_address(address);
    let url = format!("http://{address}{}", config.endpoint.path);
    let edge = Edge {
        gateway: Arc::new(routed),
        dispatcher: Arc::new(dispatch.clone()),
        authenticator: Arc::new(NoAuthentication),
        config,
        drain: CancellationToken::new(),
        load: Load::default(),
        recorder: shoal_edge::Recorder::default(),
    };
    let service = edge.service();
    let router = axum::Router::new()
        .fallback(async move |request: axum::extract::Request| service.answer(request).await);
    tokio::spawn(axum::serve(listener, router).into_future());
    (members, url)
}

fn info(id: &str, session: bool) -> NodeInfo {
    NodeInfo {
        id: NodeId::new(id),
        address: format!("{id}:7000"),
        session,
        edge: !session,
        draining: false,
        starting: false,
        pools: Vec::new(),
        sessions: 0,
        in_flight: 0,
        version: "1".to_owned(),
    }
}
