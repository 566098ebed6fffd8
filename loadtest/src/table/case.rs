use crate::drive::Progress;
use crate::mcp::Mode;
use crate::peers::{Peer, Variant};

#[derive(Debug, Clone, Copy)]
pub(super) enum Server {
    Own(&'static [&'static str]),
    Shoal,
    /// An edge, a session node and a worker, with Redis.
    Cluster,
    Combined,
    /// A server from a registry. A gateway stands in front of [`BEHIND_GATEWAYS`].
    Peer(&'static Peer, &'static Variant),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Echo,
    Job(Progress),
    /// The floor of a task makes two requests, the minimum: the call and a poll.
    Task,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) server: Server,
    pub(super) mode: Mode,
    pub(super) tool: &'static str,
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

const BURST: Work = Work::Job(Progress {
    steps: 10,
    interval_ms: 0,
});

const PACED: Work = Work::Job(Progress {
    steps: 10,
    interval_ms: 1,
});

const CASES: &[Case] = &[
    echo("floor", FLOOR, Mode::Legacy, "echo"),
    echo("rmcp stateful", PEER_STATEFUL, Mode::Legacy, "echo"),
    // Comparable with Shoal only in part, because Shoal always keeps a legacy session.
    echo("rmcp stateless JSON", PEER_JSON, Mode::Legacy, "echo"),
    echo("rmcp modern", PEER_STATEFUL, Mode::Modern, "echo"),
    echo("rmcp modern JSON", PEER_JSON, Mode::Modern, "echo"),
    echo("shoal legacy", Server::Shoal, Mode::Legacy, "echo"),
    echo("shoal modern", Server::Shoal, Mode::Modern, "echo"),
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
    // Like most real tools, `echo_slowly` takes longer than a call is held, and needs a stream.
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
    // As a call and as a task, which shows the price of declaring tasks.
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

/// The tool takes longer than `tasks.after`.
const fn task(name: &'static str, server: Server) -> Case {
    Case {
        name,
        server,
        mode: Mode::Modern,
        tool: "echo_slowly",
        work: Work::Task,
    }
}

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
