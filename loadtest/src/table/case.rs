//! The rows of the table: server, configuration and era.

use crate::drive::Progress;
use crate::mcp::Mode;
use crate::peers::{Peer, Variant};

#[derive(Debug, Clone, Copy)]
pub(super) enum Server {
    Own(&'static [&'static str]),
    Shoal,
    /// An edge, a session node and a worker, with Redis.
    Cluster,
    /// Like `Cluster`, with edge and session node in one process.
    Combined,
    /// From a package registry; a gateway stands in front of [`BEHIND_GATEWAYS`].
    Peer(&'static Peer, &'static Variant),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Echo,
    Job(Progress),
    /// Echoes a short text as the result of a task. The floor makes two requests, the minimum for a
    /// client of a task: the call, and the poll for its result.
    Task,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) server: Server,
    pub(super) mode: Mode,
    pub(super) tool: &'static str,
    /// Ratios refer to the floor of the same work.
    pub(super) work: Work,
}

impl Case {
    pub(super) fn is_floor(&self) -> bool {
        matches!(self.server, Server::Own(["serve-floor"]))
    }
}

const FLOOR: Server = Server::Own(&["serve-floor"]);
const PEER_STATEFUL: Server = Server::Own(BEHIND_GATEWAYS);
const PEER_JSON: Server = Server::Own(&["serve-rmcp", "--stateful", "false", "--json", "true"]);

pub(super) const BEHIND_GATEWAYS: &[&str] =
    &["serve-rmcp", "--stateful", "true", "--json", "false"];

/// Ten reports as fast as possible.
const BURST: Work = Work::Job(Progress {
    steps: 10,
    interval_ms: 0,
});

/// Ten reports, each sent separately.
const PACED: Work = Work::Job(Progress {
    steps: 10,
    interval_ms: 1,
});

/// All rows except those of peers from registries, in order.
const CASES: &[Case] = &[
    echo("floor", FLOOR, Mode::Legacy, "echo"),
    echo("rmcp stateful", PEER_STATEFUL, Mode::Legacy, "echo"),
    // Only the SDK has this mode, because Shoal always keeps a legacy session.
    echo("rmcp stateless JSON", PEER_JSON, Mode::Legacy, "echo"),
    echo("rmcp modern", PEER_STATEFUL, Mode::Modern, "echo"),
    echo("rmcp modern JSON", PEER_JSON, Mode::Modern, "echo"),
    echo("shoal legacy", Server::Shoal, Mode::Legacy, "echo"),
    echo("shoal modern", Server::Shoal, Mode::Modern, "echo"),
    // Must not repeat, so it is journaled before it runs: the price of at most once.
    echo(
        "shoal legacy journaled",
        Server::Shoal,
        Mode::Legacy,
        "echo_once",
    ),
    echo("cluster legacy", Server::Cluster, Mode::Legacy, "echo"),
    echo("cluster modern", Server::Cluster, Mode::Modern, "echo"),
    echo(
        "cluster journaled",
        Server::Cluster,
        Mode::Legacy,
        "echo_once",
    ),
    echo("combined legacy", Server::Combined, Mode::Legacy, "echo"),
    echo(
        "combined journaled",
        Server::Combined,
        Mode::Legacy,
        "echo_once",
    ),
    // Longer than a call is held, like most real tools: a stream, and in a cluster two steps in
    // Redis.
    echo(
        "shoal, 20 ms tool",
        Server::Shoal,
        Mode::Legacy,
        "echo_slowly",
    ),
    echo(
        "cluster, 20 ms tool",
        Server::Cluster,
        Mode::Legacy,
        "echo_slowly",
    ),
    // The same tool in the modern era, as a call and as a task: the price of declaring tasks for a
    // short tool.
    echo(
        "shoal modern, 20 ms",
        Server::Shoal,
        Mode::Modern,
        "echo_slowly",
    ),
    echo(
        "cluster modern, 20 ms",
        Server::Cluster,
        Mode::Modern,
        "echo_slowly",
    ),
    task("floor, 20 ms task", FLOOR),
    task("shoal, 20 ms task", Server::Shoal),
    task("cluster, 20 ms task", Server::Cluster),
    job("floor, 10 events", FLOOR, BURST),
    job("rmcp, 10 events", PEER_STATEFUL, BURST),
    job("shoal, 10 events", Server::Shoal, BURST),
    job("floor, 10 in 10 ms", FLOOR, PACED),
    job("rmcp, 10 in 10 ms", PEER_STATEFUL, PACED),
    job("shoal, 10 in 10 ms", Server::Shoal, PACED),
];

pub(super) fn cases(peers: &[&'static Peer]) -> Vec<Case> {
    let variants = peers
        .iter()
        .flat_map(|peer| peer.variants.iter().map(|variant| (*peer, variant)));
    let of_peers = variants.map(|(peer, variant)| {
        let server = Server::Peer(peer, variant);
        echo(variant.row, server, variant.mode, "echo")
    });
    CASES.iter().copied().chain(of_peers).collect()
}

const fn echo(name: &'static str, server: Server, mode: Mode, tool: &'static str) -> Case {
    Case {
        name,
        server,
        mode,
        tool,
        work: Work::Echo,
    }
}

/// A tool that takes longer than the time after which a call becomes a task. Modern era only.
const fn task(name: &'static str, server: Server) -> Case {
    Case {
        name,
        server,
        mode: Mode::Modern,
        tool: "echo_slowly",
        work: Work::Task,
    }
}

/// Jobs run in the legacy era, which can resume their streams.
const fn job(name: &'static str, server: Server, work: Work) -> Case {
    Case {
        name,
        server,
        mode: Mode::Legacy,
        tool: "long_job",
        work,
    }
}

#[cfg(test)]
mod tests {
    use super::cases;

    #[test]
    fn all_work_has_a_floor() {
        let cases = cases(&[]);
        for case in &cases {
            let floor = |other: &&super::Case| other.is_floor() && other.work == case.work;
            assert_eq!(cases.iter().filter(floor).count(), 1, "{}", case.name);
        }
    }
}
