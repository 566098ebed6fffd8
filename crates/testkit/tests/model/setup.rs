//! What one exploration covers: how much there is of everything, what may go wrong, and which rule is broken on purpose.

use super::fault::Fault;

/// The bounds of a model, and its planted fault.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// What the reports call it.
    pub(crate) name: &'static str,
    /// Session nodes. A node that crashed and comes back has a new id, so it is one more node here.
    pub(crate) nodes: u8,
    /// How the call's answer travels.
    pub(crate) way: Way,
    /// What the tool does.
    pub(crate) tool: Tool,
    /// What the client asks for besides.
    pub(crate) also: Also,
    /// Whether an edge that has lost the owner asks the worker itself for the result.
    pub(crate) edge_asks: bool,
    /// What may go wrong.
    pub(crate) troubles: &'static [Trouble],
    /// How often something may go wrong in one run, in any order.
    pub(crate) mishaps: u8,
    /// The rule that is broken on purpose.
    pub(crate) fault: Option<Fault>,
}

/// How a call's answer travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Started at once and held: JSON if the result comes first, else a stream.
    Hold,
    /// Journaled before it is started, and answered on a stream: a hold of 0, and batches.
    JournalFirst,
    /// The same, but the request is answered with 202, and the rest goes on the standalone stream: HTTP+SSE.
    SingleStream,
}

/// What the tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    /// It answers.
    Answers,
    /// It says something first. On a batch, that is the answer of the other member.
    Speaks,
    /// It asks the client something first.
    Asks,
    /// It writes to the session's state first.
    Writes,
    /// It never ends by itself.
    Endless,
}

/// What the client asks for besides its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Also {
    /// Nothing.
    Nothing,
    /// That the call be cancelled.
    Cancel,
    /// That the session be ended.
    Delete,
}

/// A kind of thing that goes wrong. What happens late or never costs nothing and needs no mention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The client's connection breaks.
    BreakClient,
    /// The edge loses its connection to a node.
    BreakEdge,
    /// A node loses its link to a worker, and sends again what it has sent.
    BreakLink,
    /// A node cannot reach a worker any more, for good.
    Cut,
    /// A node crashes.
    CrashNode,
    /// A worker crashes and comes back as another incarnation.
    CrashWorker,
    /// A lease passes without a renewal: the node was paused, or cut off from the store.
    Age,
    /// A node refuses connections though it lives.
    RefuseConnections,
    /// The store carries a step out, and the reply is lost.
    LoseReply,
    /// An answer in JSON is lost on its way to the edge.
    LoseAnswer,
    /// A worker has no room for a start.
    Full,
    /// A worker's ledger counts on, and forgets calls that have ended.
    Forget,
    /// A node takes a worker for lost that is not.
    GiveUp,
    /// A limit of an owner is reached.
    Limit,
    /// The client hangs up.
    HangUp,
    /// The store is away for a while.
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

    /// The same with one rule broken.
    pub(crate) fn plant(self, fault: Fault) -> Self {
        Self {
            fault: Some(fault),
            ..self
        }
    }

    /// Whether this rule is broken.
    pub(crate) fn plants(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// Whether this may go wrong.
    pub(crate) fn has(&self, trouble: Trouble) -> bool {
        self.troubles.contains(&trouble)
    }
}
