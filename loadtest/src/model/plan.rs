use shoal_cluster::rehearsal::look_every;

use super::costs::{Costs, Each};

/// The load, and what nodes may carry.
#[derive(Debug, Clone, Copy, PartialEq, clap::Args)]
pub(crate) struct Load {
    /// Number of concurrent legacy sessions.
    #[arg(long, default_value_t = 100_000.0)]
    pub(crate) sessions: f64,
    /// Share of sessions that hold a standalone stream open, from 0 to 1.
    #[arg(long, default_value_t = 0.5)]
    pub(crate) streams: f64,
    /// Calls of each session a second.
    #[arg(long, default_value_t = 0.05)]
    pub(crate) calls: f64,
    /// Share of calls that are journaled (not declared safe to repeat), from 0 to 1.
    #[arg(long, default_value_t = 0.3)]
    pub(crate) journaled: f64,
    /// Events of a journaled call before its answer.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) events: f64,
    /// Modern calls a second, besides the sessions.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) modern: f64,
    /// Lifetime of a session, in seconds.
    #[arg(long, default_value_t = 1800.0)]
    pub(crate) lifetime: f64,
    /// Time after which a client's stream breaks and is opened again, in seconds.
    #[arg(long, default_value_t = 600.0)]
    pub(crate) stream_lifetime: f64,
    /// Setting `streams.keep_alive`, in seconds.
    #[arg(long, default_value_t = 15.0)]
    pub(crate) keep_alive: f64,
    /// Number of cores of a node.
    #[arg(long, default_value_t = 4.0)]
    pub(crate) cores: f64,
    /// Memory of a node, in GiB.
    #[arg(long, default_value_t = 8.0)]
    pub(crate) memory: f64,
    /// Planned use of a node's cores and memory, from 0 to 1; the rest is a reserve for peaks and lost nodes.
    #[arg(long, default_value_t = 0.5)]
    pub(crate) use_of: f64,
    /// Maximum sessions of a node (`limits.sessions_per_node`).
    #[arg(long, default_value_t = 100_000.0)]
    pub(crate) sessions_per_node: f64,
    /// Maximum streams of an edge (`limits.streams`, open files).
    #[arg(long, default_value_t = 20_000.0)]
    pub(crate) streams_per_edge: f64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Rates {
    pub(crate) each: Each,
    pub(crate) open_streams: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Nodes {
    pub(crate) count: f64,
    pub(crate) cores: f64,
    pub(crate) memory_gib: f64,
    pub(crate) because: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Plan {
    pub(crate) rates: Rates,
    pub(crate) edges: Nodes,
    pub(crate) session_nodes: Nodes,
    pub(crate) workers: Nodes,
    /// The shards of Redis, which have one thread each.
    pub(crate) shards: Nodes,
    pub(crate) redis_commands: f64,
    pub(crate) mesh: Mesh,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mesh {
    /// gRPC links between edges, session nodes and workers.
    pub(crate) links: f64,
    pub(crate) links_of_one: f64,
    /// Renewals of leases and announcements of nodes, per second.
    pub(crate) beats: f64,
    /// Entries of the list of nodes that Redis sends per second.
    pub(crate) listed: f64,
    /// Fraction of a shard's CPU time that the lists take.
    pub(crate) listing_share: f64,
}

/// CPU time of Redis for an entry of the list of nodes, in µs (`lua/nodes.lua`; measured with 100
/// to 1000 nodes).
pub(crate) const LISTED_US: f64 = 2.0;
const BEAT_S: f64 = 2.0;

impl Load {
    pub(crate) fn rates(&self) -> Rates {
        let calls = self.sessions * self.calls;
        let journaled = calls * self.journaled;
        let open_streams = self.sessions * self.streams;
        let open = self.sessions / self.lifetime;
        Rates {
            each: Each {
                second: 1.0,
                legacy: calls - journaled,
                modern: self.modern,
                journaled,
                event: journaled * self.events,
                open,
                stream: open * self.streams + open_streams / self.stream_lifetime,
                keep_alive: open_streams / self.keep_alive,
            },
            open_streams,
        }
    }
}

impl Each {
    /// Excludes the base cost per second.
    fn times(&self, cost: &Self) -> f64 {
        self.legacy * cost.legacy
            + self.modern * cost.modern
            + self.journaled * cost.journaled
            + self.event * cost.event
            + self.open * cost.open
            + self.stream * cost.stream
            + self.keep_alive * cost.keep_alive
    }
}

pub(crate) fn plan(load: &Load, costs: &Costs) -> Plan {
    let rates = load.rates();
    let cpu = |role: &str| rates.each.times(&costs.cpu_us[role]) / 1e6;
    let memory = |role: &str, sessions: f64, streams: f64| {
        let held = &costs.memory_kib[role];
        (sessions * held.session + streams * held.stream) / (1024.0 * 1024.0)
    };
    let nodes = |role: &str, memory_gib: f64, cores_each: f64, limit: f64| {
        let cores = cpu(role);
        let own = costs.memory_kib[role].process / (1024.0 * 1024.0);
        let by_memory = memory_gib / (load.memory * load.use_of - own);
        let wants = [
            (cores / (cores_each * load.use_of), "CPU"),
            (by_memory, "memory"),
            (limit, "limit"),
        ];
        let (most, because) = wants
            .into_iter()
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .expect("there are three");
        // At least two nodes, so that one can fail.
        let count = most.ceil().max(2.0);
        Nodes {
            count,
            cores,
            memory_gib,
            because: if most <= 2.0 { "two at least" } else { because },
        }
    };
    let streams = rates.open_streams;
    let edges = nodes(
        "edge",
        memory("edge", load.sessions, streams),
        load.cores,
        streams / load.streams_per_edge,
    );
    let session_nodes = nodes(
        "session",
        memory("session", load.sessions, streams),
        load.cores,
        load.sessions / load.sessions_per_node,
    );
    let workers = nodes("worker", 0.0, load.cores, 0.0);
    let shards = nodes("redis", memory("redis", load.sessions, 0.0), 1.0, 0.0);
    Plan {
        rates,
        redis_commands: rates.each.times(&costs.redis_commands),
        mesh: mesh(edges.count, session_nodes.count, workers.count),
        edges,
        session_nodes,
        workers,
        shards,
    }
}

pub(crate) fn mesh(edges: f64, session_nodes: f64, workers: f64) -> Mesh {
    let members = edges + session_nodes;
    let listed = members / look_every(members as usize).as_secs_f64() * members;
    Mesh {
        links: edges * session_nodes
            + session_nodes * (session_nodes - 1.0)
            + workers * (edges + session_nodes),
        links_of_one: (session_nodes + workers)
            .max(edges + 2.0 * session_nodes + workers)
            .max(edges + session_nodes),
        beats: (edges + 2.0 * session_nodes) / BEAT_S,
        listed,
        listing_share: listed * LISTED_US / 1e6,
    }
}
