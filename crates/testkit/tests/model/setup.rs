//! The bounds of one exploration, its mishaps, and the rule that is broken on purpose.

use super::fault::Fault;

#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    /// A node that restarts has a new id, so it counts as another node.
    pub(crate) nodes: u8,
    pub(crate) way: Way,
    pub(crate) tool: Tool,
    pub(crate) also: Also,
    pub(crate) edge_asks: bool,
    pub(crate) troubles: &'static [Trouble],
    /// Maximum mishaps in a run, in any order.
    pub(crate) mishaps: u8,
    pub(crate) fault: Option<Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The owner starts the call at once and holds it. The answer is JSON if the result comes first, else a
    /// stream.
    Hold,
    /// The owner journals the call before the start, and answers on a stream. A hold of 0 and
    /// batches work in this way.
    JournalFirst,
    /// HTTP+SSE: the owner journals the call first, answers with 202, and continues on the
    /// standalone stream.
    SingleStream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    Answers,
    /// The call produces an event first. In a batch, this is the answer of the other member.
    Speaks,
    Asks,
    Writes,
    Endless,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Also {
    Nothing,
    Cancel,
    Delete,
}

/// The kinds of mishaps. Delays and lost steps are always possible, and do not count as mishaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    BreakClient,
    BreakEdge,
    BreakLink,
    Cut,
    CrashNode,
    CrashWorker,
    Age,
    RefuseConnections,
    LoseReply,
    LoseAnswer,
    Full,
    Forget,
    GiveUp,
    Limit,
    HangUp,
    PlanRefuses,
    PlanDisagrees,
    StoreAway,
}

impl Setup {
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

    /// Returns whether the owner's plan is a step of its own, which takes time and may refuse the call.
    pub(crate) fn plans(&self) -> bool {
        self.has(Trouble::PlanRefuses) || self.has(Trouble::PlanDisagrees)
    }

    pub(crate) fn has(&self, trouble: Trouble) -> bool {
        self.troubles.contains(&trouble)
    }
}
