//! The bounds of one exploration, its mishaps, and the rule that is broken on purpose.

use super::fault::Fault;

#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    /// Session nodes. A node that restarts has a new id, so it counts as another node.
    pub(crate) nodes: u8,
    /// How the call's answer travels.
    pub(crate) way: Way,
    pub(crate) tool: Tool,
    /// Another request of the client.
    pub(crate) also: Also,
    /// Whether an edge that has lost the owner asks the worker for the result.
    pub(crate) edge_asks: bool,
    /// The possible mishaps.
    pub(crate) troubles: &'static [Trouble],
    /// Maximum mishaps per run, in any order.
    pub(crate) mishaps: u8,
    /// The rule that is broken on purpose.
    pub(crate) fault: Option<Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Started at once and held: JSON if the result comes first, else a stream.
    Hold,
    /// Journaled before the start, and answered on a stream: a hold of 0, and batches.
    JournalFirst,
    /// Journaled first, answered with 202, and continued on the standalone stream: HTTP+SSE.
    SingleStream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    Answers,
    /// Produces an event first. In a batch, that is the answer of the other member.
    Speaks,
    /// Asks the client first.
    Asks,
    /// Writes to the session state first.
    Writes,
    /// Ends only when it is cancelled.
    Endless,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Also {
    Nothing,
    /// Cancels the call.
    Cancel,
    /// Ends the session.
    Delete,
}

/// A kind of mishap. Delays and lost steps are always possible and do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    BreakClient,
    BreakEdge,
    /// A node loses its link to a worker, and sends its frames again.
    BreakLink,
    /// A node permanently loses contact to a worker.
    Cut,
    CrashNode,
    /// A worker crashes and restarts as another incarnation.
    CrashWorker,
    /// A lease time passes without a renewal: the node was paused, or cut off from the store.
    Age,
    /// A node refuses connections although it lives.
    RefuseConnections,
    /// The store completes a step, but the reply is lost.
    LoseReply,
    /// A JSON answer is lost on its way to the edge.
    LoseAnswer,
    /// A worker has no capacity for a start.
    Full,
    /// A worker's ledger advances its number and forgets ended calls.
    Forget,
    /// A node wrongly takes a worker for lost.
    GiveUp,
    Limit,
    HangUp,
    StoreAway,
}

impl Setup {
    /// A held call in a small cluster.
    pub(crate) fn hold(name: &'static str, mishaps: u8, troubles: &'static [Trouble]) -> Self {
        Self {
            name,
            nodes: 2,
            way: Way::Hold,
            tool: Tool::Answers,
            also: Also::Nothing,
            edge_asks: false,
            troubles,
            mishaps,
            fault: None,
        }
    }

    pub(crate) fn plant(self, fault: Fault) -> Self {
        Self {
            fault: Some(fault),
            ..self
        }
    }

    pub(crate) fn plants(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    pub(crate) fn has(&self, trouble: Trouble) -> bool {
        self.troubles.contains(&trouble)
    }
}
