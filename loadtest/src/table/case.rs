//! The rows of the table: which server, configured how, driven in which era.

use crate::drive::Progress;
use crate::mcp::Mode;
use crate::peers::{Peer, Variant};

/// Where a case's server comes from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Server {
    /// A subcommand of this program.
    Own(&'static [&'static str]),
    /// Shoal in one process, with its demo tools.
    Shoal,
    /// Shoal as an edge, a session node and a worker, with Redis.
    Cluster,
    /// The same with edge and session node in one process.
    Combined,
    /// From a package registry; a gateway stands in front of [`BEHIND_GATEWAYS`].
    Peer(&'static Peer, &'static Variant),
}

/// What is called over and over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// A small text is given back.
    Echo,
    /// A job reports its progress.
    Job(Progress),
    /// A small text is given back as the result of a task. Its floor is that of two requests, since no client of a task can do
    /// with fewer: the call, and the question for its result.
    Task,
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    /// The row's name.
    pub(super) name: &'static str,
    /// Where its server comes from.
    pub(super) server: Server,
    /// The era it is driven in.
    pub(super) mode: Mode,
    /// The tool called.
    pub(super) tool: &'static str,
    /// What the tool does: ratios refer to the floor of the same work.
    pub(super) work: Work,
}

impl Case {
    /// True for what the ratios of all rows of the same work refer to.
    pub(super) fn is_floor(&self) -> bool {
        matches!(self.server, Server::Own(["serve-floor"]))
    }
}

const FLOOR: Server = Server::Own(&["serve-floor"]);
const PEER_STATEFUL: Server = Server::Own(BEHIND_GATEWAYS);
const PEER_JSON: Server = Server::Own(&["serve-rmcp", "--stateful", "false", "--json", "true"]);

/// The server that a gateway stands in front of.
pub(super) const BEHIND_GATEWAYS: &[&str] =
    &["serve-rmcp", "--stateful", "true", "--json", "false"];

/// Ten reports as fast as they can be made.
const BURST: Work = Work::Job(Progress {
    steps: 10,
    interval_ms: 0,
});

/// Ten reports of which each leaves by itself.
const PACED: Work = Work::Job(Progress {
    steps: 10,
    interval_ms: 1,
});

/// All rows but those of peers from package registries, in the order of their turns.
const CASES: &[Case] = &[
    echo("floor", FLOOR, Mode::Legacy, "echo"),
    echo("rmcp stateful", PEER_STATEFUL, Mode::Legacy, "echo"),
    // Shoal always keeps a legacy session: a mode that only the SDK has.
    echo("rmcp stateless JSON", PEER_JSON, Mode::Legacy, "echo"),
    echo("rmcp modern", PEER_STATEFUL, Mode::Modern, "echo"),
    echo("rmcp modern JSON", PEER_JSON, Mode::Modern, "echo"),
    echo("shoal legacy", Server::Shoal, Mode::Legacy, "echo"),
    echo("shoal modern", Server::Shoal, Mode::Modern, "echo"),
    // Not safe to repeat, so journaled before it runs: the price of at most once.
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
    // Longer than a call is held, as most real ones are: a stream, and in a cluster two steps in Redis.
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
    // The same tool in the modern era, as a call and as a task: what a client that declares tasks pays for a short one.
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

/// All rows, in the order of their turns, those of `peers` last.
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

/// A tool that takes longer than a call may before it becomes a task. Tasks are of the modern era.
const fn task(name: &'static str, server: Server) -> Case {
    Case {
        name,
        server,
        mode: Mode::Modern,
        tool: "echo_slowly",
        work: Work::Task,
    }
}

/// Jobs are called in the legacy era, whose streams can be resumed.
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
