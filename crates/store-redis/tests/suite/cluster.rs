use shoal_ports::{NodeId, SessionId, Store};
use shoal_store_redis::{ConnectError, RedisStore};

use crate::fixture::{
    LONG, append, begin, config, connect, eventually, keeps_the_contract, new_session,
    once_available, session,
};
use crate::quotas::counts_cells;
use crate::server::{Directory, Server, free_ports};

struct Cluster {
    nodes: Vec<Server>,
    ports: Vec<u16>,
}

impl Cluster {
    async fn start() -> Self {
        for _ in 0..5 {
            if let Some(cluster) = Self::try_start().await {
                cluster.join().await;
                return cluster;
            }
        }
        panic!("no cluster starts");
    }

    async fn try_start() -> Option<Self> {
        let free: [u16; 6] = free_ports();
        let (mut nodes, mut ports) = (Vec::new(), Vec::new());
        for pair in free.chunks(2) {
            let directory = Directory::new();
            let socket = directory.path("s").display().to_string();
            let (port, bus) = (pair[0].to_string(), pair[1].to_string());
            let args = [
                "--bind",
                "127.0.0.1",
                "--port",
                &port,
                "--cluster-port",
                &bus,
                "--unixsocket",
                &socket,
                "--cluster-enabled",
                "yes",
                "--save",
                "",
                "--appendonly",
                "yes",
                "--cluster-node-timeout",
                "1000",
                "--cluster-require-full-coverage",
                "no",
            ];
            let admin = format!("redis+unix://{socket}");
            nodes.push(Server::start(directory, &args, &admin).await.ok()?);
            ports.push(pair[0]);
        }
        Some(Self { nodes, ports })
    }

    async fn join(&self) {
        let buses: Vec<u16> = {
            let mut buses = Vec::new();
            for node in &self.nodes {
                let found: Vec<String> = node.ask(&["CONFIG", "GET", "cluster-port"]).await;
                buses.push(found[1].parse().unwrap());
            }
            buses
        };
        let ranges = [("0", "5460"), ("5461", "10922"), ("10923", "16383")];
        for (index, (node, (first, last))) in self.nodes.iter().zip(ranges).enumerate() {
            let number = (index + 1).to_string();
            let _: redis::Value = node.ask(&["CLUSTER", "SET-CONFIG-EPOCH", &number]).await;
            let _: redis::Value = node.ask(&["CLUSTER", "ADDSLOTSRANGE", first, last]).await;
            for (port, bus) in self.ports.iter().zip(&buses) {
                let (port, bus) = (port.to_string(), bus.to_string());
                let meet = ["CLUSTER", "MEET", "127.0.0.1", &port, &bus];
                let _: redis::Value = node.ask(&meet).await;
            }
        }
        for node in &self.nodes {
            eventually("the cluster is whole", || async {
                let info: String = node.ask(&["CLUSTER", "INFO"]).await;
                info.contains("cluster_state:ok")
                    && info.contains("cluster_slots_assigned:16384")
                    && info.contains("cluster_size:3")
            })
            .await;
        }
    }

    fn url(&self) -> String {
        let nodes: Vec<_> = self
            .ports
            .iter()
            .map(|p| format!("127.0.0.1:{p}"))
            .collect();
        format!("redis+cluster://{}", nodes.join(","))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_keeps_the_contract_and_loses_a_node_for_a_while() {
    let mut cluster = Cluster::start().await;
    let url = cluster.url();
    keeps_the_contract(|| config(&url)).await;
    counts_cells(&connect(config(&url)).await.0).await;

    let one_of_many = config(&format!("redis://127.0.0.1:{}", cluster.ports[0]));
    let (_, mistaken) = connect(one_of_many).await;
    let refused = everywhere(&mistaken).await;
    assert!(refused.is_err_and(|why| why.contains("redis+cluster://")));
    let nowhere = config("redis+cluster://127.0.0.1:1");
    let nowhere = RedisStore::connect(nowhere).await;
    assert!(matches!(nowhere, Err(ConnectError::Unreachable(_))));

    let shared = config(&url);
    let (redis, store) = connect(shared.clone()).await;
    let (_, elsewhere) = connect(shared).await;
    let sessions = everywhere(&store).await.unwrap();
    let asked: Vec<_> = sessions
        .iter()
        .map(|id| (id.clone(), shoal_ports::Epoch(1)))
        .collect();
    let held = elsewhere.directory.held(&asked).await.unwrap();
    assert_eq!(held, vec![true; sessions.len()]);
    for node in &cluster.nodes {
        let keys: i64 = node.ask(&["DBSIZE"]).await;
        assert!(keys > 0, "sessions are spread over all nodes");
    }

    cluster.nodes[0].kill();
    let mut served = 0;
    for id in &sessions {
        served += usize::from(
            store
                .log
                .last(id, shoal_protocol::StreamId::STANDALONE)
                .await
                .is_ok(),
        );
    }
    assert!(served > 0, "the other nodes serve on");
    assert!(served < sessions.len(), "its sessions are unavailable");
    cluster.nodes[0].start_again().await;
    let held = once_available(|| store.directory.held(&asked)).await;
    assert_eq!(held.unwrap(), vec![true; sessions.len()]);

    for node in &mut cluster.nodes {
        node.kill();
    }
    let down = store.directory.held(&asked).await;
    assert!(down.is_err());
    for node in &mut cluster.nodes {
        node.start_again().await;
    }
    let held = once_available(|| store.directory.held(&asked)).await;
    assert_eq!(held.unwrap(), vec![true; sessions.len()]);
    let (id, epoch) = once_available(|| async {
        store.directory.renew_lease(&NodeId::new("a"), LONG).await?;
        let id = SessionId::random();
        let epoch = store.directory.create(new_session(&id, "a")).await?;
        Ok((id, epoch))
    })
    .await
    .unwrap();
    let (start, _) = begin(&store, &id, epoch).await;
    store
        .log
        .append(&id, epoch, append(start, &[b"1"]))
        .await
        .unwrap();
    assert!(redis.status().connected);
    session(&elsewhere).await;
}

async fn everywhere(store: &Store) -> Result<Vec<SessionId>, String> {
    let mut sessions = Vec::new();
    for _ in 0..24 {
        let id = SessionId::random();
        let created = store.directory.create(new_session(&id, "a")).await;
        created.map_err(|error| error.to_string())?;
        sessions.push(id);
    }
    Ok(sessions)
}
