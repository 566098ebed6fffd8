pub(crate) mod costs;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use self::costs::{Costs, Counted, Each};

const MEASURED: &str = include_str!("../model.toml");

/// CPU time of Redis for an entry of the list of nodes, in µs (`lua/nodes.lua`; measured with 100
/// to 1000 nodes).
const LISTED_US: f64 = 2.0;
const BEAT_S: f64 = 2.0;
const KIB_PER_GIB: f64 = 1024.0 * 1024.0;

/// `loadtest model`.
#[derive(Debug, Args)]
pub(crate) struct Model {
    /// File of costs from `loadtest cost --out` [default: the costs built into this program].
    #[arg(long)]
    costs: Option<PathBuf>,
    #[command(flatten)]
    load: Load,
}

/// The load, and what nodes may carry.
#[derive(Debug, Clone, Copy, Args)]
struct Load {
    /// Number of concurrent legacy sessions.
    #[arg(long, default_value_t = 100_000.0, value_parser = positive)]
    sessions: f64,
    /// Share of sessions that hold a standalone stream open, from 0 to 1.
    #[arg(long, default_value_t = 0.5, value_parser = share)]
    streams: f64,
    /// Calls of each session a second.
    #[arg(long, default_value_t = 0.05)]
    calls: f64,
    /// Share of calls that are journaled (not declared safe to repeat), from 0 to 1.
    #[arg(long, default_value_t = 0.3, value_parser = share)]
    journaled: f64,
    /// Events of a journaled call before its answer.
    #[arg(long, default_value_t = 1.0)]
    events: f64,
    /// Modern calls a second, besides the sessions.
    #[arg(long, default_value_t = 0.0)]
    modern: f64,
    /// Lifetime of a session, in seconds.
    #[arg(long, default_value_t = 1800.0, value_parser = positive)]
    lifetime: f64,
    /// Time after which a client's stream breaks and is opened again, in seconds.
    #[arg(long, default_value_t = 600.0, value_parser = positive)]
    stream_lifetime: f64,
    /// Setting `streams.keep_alive`, in seconds.
    #[arg(long, default_value_t = 15.0, value_parser = positive)]
    keep_alive: f64,
    /// Number of cores of a node.
    #[arg(long, default_value_t = 4.0, value_parser = positive)]
    cores: f64,
    /// Memory of a node, in GiB.
    #[arg(long, default_value_t = 8.0, value_parser = positive)]
    memory: f64,
    /// Planned use of a node's cores and memory, from 0 to 1; the rest is a reserve for peaks and lost nodes.
    #[arg(long, default_value_t = 0.5, value_parser = |text: &str| positive(text).and_then(|_| share(text)))]
    use_of: f64,
    /// Maximum sessions of a node (`limits.sessions_per_node`).
    #[arg(long, default_value_t = 100_000.0, value_parser = positive)]
    sessions_per_node: f64,
    /// Maximum streams of an edge (`limits.streams`, open files).
    #[arg(long, default_value_t = 20_000.0, value_parser = positive)]
    streams_per_edge: f64,
}

fn positive(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value| *value > 0.0);
    value.ok_or_else(|| "it must be a number greater than zero".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    let value = text
        .parse()
        .ok()
        .filter(|value| (0.0..=1.0).contains(value));
    value.ok_or_else(|| "it is a share: a number between 0 and 1".to_owned())
}

struct Nodes {
    count: f64,
    cores: f64,
    memory_gib: f64,
    because: &'static str,
}

struct Plan {
    sessions: f64,
    open_streams: f64,
    rates: Each,
    edges: Nodes,
    session_nodes: Nodes,
    workers: Nodes,
    /// The shards of Redis, which have one thread each.
    shards: Nodes,
    redis_commands: f64,
    mesh: Mesh,
}

struct Mesh {
    /// gRPC links between edges, session nodes and workers.
    links: f64,
    links_of_one: f64,
    /// Renewals of leases and announcements of nodes, per second.
    beats: f64,
    /// Entries of the list of nodes that Redis sends per second.
    listed: f64,
}

pub(crate) fn run(arguments: &Model) -> anyhow::Result<String> {
    let costs = match &arguments.costs {
        Some(path) => std::fs::read_to_string(path)
            .map_err(anyhow::Error::from)
            .and_then(|text| Costs::parse(&text))
            .with_context(|| format!("cannot use the costs in {}", path.display()))?,
        None => Costs::parse(MEASURED)?,
    };
    let load = &arguments.load;
    anyhow::ensure!(
        load.memory * load.use_of > 0.2,
        "--memory times --use-of must leave more than 0.2 GiB: a process by itself takes some of it"
    );
    Ok(plan(load, &costs).to_string())
}

impl Load {
    fn open_streams(&self) -> f64 {
        self.sessions * self.streams
    }

    fn rates(&self) -> Each {
        let calls = self.sessions * self.calls;
        let journaled = calls * self.journaled;
        let open = self.sessions / self.lifetime;
        let streams = self.open_streams();
        Each::from([
            (Counted::Legacy, calls - journaled),
            (Counted::Modern, self.modern),
            (Counted::Journaled, journaled),
            (Counted::Event, journaled * self.events),
            (Counted::Open, open),
            (
                Counted::Stream,
                open * self.streams + streams / self.stream_lifetime,
            ),
            (Counted::KeepAlive, streams / self.keep_alive),
        ])
    }
}

fn plan(load: &Load, costs: &Costs) -> Plan {
    let rates = load.rates();
    let spent = |cost: &Each| -> f64 {
        let costs = rates
            .iter()
            .map(|(what, rate)| rate * cost.get(what).unwrap_or(&0.0));
        costs.sum()
    };
    let open_streams = load.open_streams();
    let nodes = |role: &str, sessions: f64, streams: f64, cores_each: f64, limit: f64| {
        let cores = spent(&costs.cpu_us[role]) / 1e6;
        let held = &costs.memory_kib[role];
        let memory_gib = (sessions * held.session + streams * held.stream) / KIB_PER_GIB;
        let by_memory = memory_gib / (load.memory * load.use_of - held.process / KIB_PER_GIB);
        let by_cpu = cores / (cores_each * load.use_of);
        let (most, because) = match by_cpu.max(by_memory).max(limit) {
            // At least two nodes, so that one can fail.
            most if most <= 2.0 => (2.0, "two at least"),
            most if most == limit => (most, "limit"),
            most if most == by_memory => (most, "memory"),
            most => (most, "CPU"),
        };
        Nodes {
            count: most.ceil(),
            cores,
            memory_gib,
            because,
        }
    };
    let of_edges = open_streams / load.streams_per_edge;
    let of_sessions = load.sessions / load.sessions_per_node;
    let edges = nodes("edge", load.sessions, open_streams, load.cores, of_edges);
    let session_nodes = nodes(
        "session",
        load.sessions,
        open_streams,
        load.cores,
        of_sessions,
    );
    let workers = nodes("worker", 0.0, 0.0, load.cores, 0.0);
    Plan {
        sessions: load.sessions,
        open_streams,
        mesh: mesh(edges.count, session_nodes.count, workers.count),
        edges,
        session_nodes,
        workers,
        shards: nodes("redis", load.sessions, 0.0, 1.0, 0.0),
        redis_commands: spent(&costs.redis_commands),
        rates,
    }
}

fn mesh(edges: f64, session_nodes: f64, workers: f64) -> Mesh {
    let members = edges + session_nodes;
    // Each member reads the list every second, or less often if there are more than 100 (`look_every`).
    let read_every_s = (members / 100.0).max(1.0);
    Mesh {
        links: edges * session_nodes + session_nodes * (session_nodes - 1.0) + workers * members,
        links_of_one: edges + 2.0 * session_nodes + workers,
        beats: (edges + 2.0 * session_nodes) / BEAT_S,
        listed: members * members / read_every_s,
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = |what: Counted| self.rates[&what];
        writeln!(
            out,
            "{:.0} sessions, {:.0} with an open stream; a second: {:.0} calls, {:.0} of them journaled, {:.0} events, \
             {:.0} modern calls, {:.0} sessions opened, {:.0} streams opened, {:.0} keep-alives\n\n\
             role           nodes  because of    cores used  memory GiB",
            self.sessions,
            self.open_streams,
            rate(Counted::Legacy) + rate(Counted::Journaled),
            rate(Counted::Journaled),
            rate(Counted::Event),
            rate(Counted::Modern),
            rate(Counted::Open),
            rate(Counted::Stream),
            rate(Counted::KeepAlive)
        )?;
        for (name, nodes) in [
            ("edges", &self.edges),
            ("session nodes", &self.session_nodes),
            ("workers", &self.workers),
            ("Redis shards", &self.shards),
        ] {
            writeln!(
                out,
                "{name:13}  {:5.0}  {:12}  {:10.1}  {:10.1}",
                nodes.count, nodes.because, nodes.cores, nodes.memory_gib
            )?;
        }
        let mesh = &self.mesh;
        let listing_share = mesh.listed * LISTED_US / 1e6;
        write!(
            out,
            "\nRedis: {:.0} commands a second for clients, {:.0} for leases and announcements; lists of nodes: {:.0} entries \
             a second, {:.1} % of one shard's thread\n\
             links: {:.0} in all, {:.0} at one session node",
            self.redis_commands,
            mesh.beats,
            mesh.listed,
            listing_share * 100.0,
            mesh.links,
            mesh.links_of_one
        )?;
        if listing_share > 0.1 {
            write!(
                out,
                "\nthe list of nodes takes more than a tenth of the shard that holds it: make cells (docs/scaling.md)"
            )?;
        }
        Ok(())
    }
}
