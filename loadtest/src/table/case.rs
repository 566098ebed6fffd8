use std::time::Duration;

use crate::mcp::Mode;
use crate::mcp::job::Job;
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
    Job(Job),
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

use Mode::{Legacy, Modern};
use Server::{Cluster, Combined, Shoal};

const FLOOR: Server = Server::Own(&["serve-floor"]);
const PEER_STATEFUL: Server = Server::Own(BEHIND_GATEWAYS);
const PEER_JSON: Server = Server::Own(&["serve-rmcp", "--stateful", "false", "--json", "true"]);

pub(super) const BEHIND_GATEWAYS: &[&str] =
    &["serve-rmcp", "--stateful", "true", "--json", "false"];

const BURST: Work = Work::Job(Job::burst(10));

const PACED: Work = Work::Job(Job {
    steps: 10,
    interval: Duration::from_millis(1),
});

const CASES: &[Case] = &[
    echo("floor", FLOOR, Legacy, "echo"),
    echo("rmcp stateful", PEER_STATEFUL, Legacy, "echo"),
    // Comparable with Shoal only in part, because Shoal always keeps a legacy session.
    echo("rmcp stateless JSON", PEER_JSON, Legacy, "echo"),
    echo("rmcp modern", PEER_STATEFUL, Modern, "echo"),
    echo("rmcp modern JSON", PEER_JSON, Modern, "echo"),
    echo("shoal legacy", Shoal, Legacy, "echo"),
    echo("shoal modern", Shoal, Modern, "echo"),
    // The call must not be repeated, so Shoal journals it before it runs.
    echo("shoal legacy journaled", Shoal, Legacy, "echo_once"),
    echo("cluster legacy", Cluster, Legacy, "echo"),
    echo("cluster modern", Cluster, Modern, "echo"),
    echo("cluster journaled", Cluster, Legacy, "echo_once"),
    echo("combined legacy", Combined, Legacy, "echo"),
    echo("combined journaled", Combined, Legacy, "echo_once"),
    // Like most real tools, `echo_slowly` takes longer than a call is held. Such a call needs a
    // stream, and in a cluster two steps in Redis.
    echo("shoal, 20 ms tool", Shoal, Legacy, "echo_slowly"),
    echo("cluster, 20 ms tool", Cluster, Legacy, "echo_slowly"),
    // The same tool as a call and as a task, which shows the price of declaring tasks.
    echo("shoal modern, 20 ms", Shoal, Modern, "echo_slowly"),
    echo("cluster modern, 20 ms", Cluster, Modern, "echo_slowly"),
    task("floor, 20 ms task", FLOOR),
    task("shoal, 20 ms task", Shoal),
    task("cluster, 20 ms task", Cluster),
    job("floor, 10 events", FLOOR, BURST),
    job("rmcp, 10 events", PEER_STATEFUL, BURST),
    job("shoal, 10 events", Shoal, BURST),
    job("floor, 10 in 10 ms", FLOOR, PACED),
    job("rmcp, 10 in 10 ms", PEER_STATEFUL, PACED),
    job("shoal, 10 in 10 ms", Shoal, PACED),
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
        mode: Modern,
        tool: "echo_slowly",
        work: Work::Task,
    }
}

const fn job(name: &'static str, server: Server, work: Work) -> Case {
    Case {
        name,
        server,
        mode: Legacy,
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
