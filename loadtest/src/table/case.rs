//! The rows of the table: which server, configured how, driven in which era.

use crate::mcp::Mode;

/// Where a case's server comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    /// A subcommand of this program.
    Own(&'static [&'static str]),
    /// Shoal in one process, with its demo tools.
    Shoal,
    /// Shoal as an edge, a session node and a worker, with Redis.
    Cluster,
}

/// What a case is compared for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The floor, that every ratio refers to.
    Floor,
    /// The SDK's server, in a mode that Shoal has too.
    Peer,
    /// Shoal, answering the small echo call that the bar is about.
    Contender,
    /// Shown for orientation only.
    Shown,
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
    /// What it is compared for.
    pub(super) part: Part,
}

const FLOOR: Server = Server::Own(&["serve-floor"]);
const PEER_STATEFUL: Server = Server::Own(&["serve-rmcp", "--stateful", "true", "--json", "false"]);
const PEER_JSON: Server = Server::Own(&["serve-rmcp", "--stateful", "false", "--json", "true"]);

/// All rows, in the order of their turns.
pub(super) const CASES: &[Case] = &[
    case("floor", FLOOR, Mode::Legacy, "echo", Part::Floor),
    case(
        "rmcp stateful",
        PEER_STATEFUL,
        Mode::Legacy,
        "echo",
        Part::Peer,
    ),
    // Shoal always keeps a legacy session: a mode that only the SDK has.
    case(
        "rmcp stateless JSON",
        PEER_JSON,
        Mode::Legacy,
        "echo",
        Part::Shown,
    ),
    case(
        "rmcp modern",
        PEER_STATEFUL,
        Mode::Modern,
        "echo",
        Part::Peer,
    ),
    case(
        "rmcp modern JSON",
        PEER_JSON,
        Mode::Modern,
        "echo",
        Part::Peer,
    ),
    case(
        "shoal legacy",
        Server::Shoal,
        Mode::Legacy,
        "echo",
        Part::Contender,
    ),
    case(
        "shoal modern",
        Server::Shoal,
        Mode::Modern,
        "echo",
        Part::Contender,
    ),
    // Not safe to repeat, so journaled before it runs: the price of at most once.
    case(
        "shoal legacy journaled",
        Server::Shoal,
        Mode::Legacy,
        "echo_once",
        Part::Shown,
    ),
    case(
        "cluster legacy",
        Server::Cluster,
        Mode::Legacy,
        "echo",
        Part::Shown,
    ),
    case(
        "cluster modern",
        Server::Cluster,
        Mode::Modern,
        "echo",
        Part::Shown,
    ),
    case(
        "cluster journaled",
        Server::Cluster,
        Mode::Legacy,
        "echo_once",
        Part::Shown,
    ),
];

const fn case(
    name: &'static str,
    server: Server,
    mode: Mode,
    tool: &'static str,
    part: Part,
) -> Case {
    Case {
        name,
        server,
        mode,
        tool,
        part,
    }
}
