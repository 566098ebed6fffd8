//! The state of the modelled cluster.
//!
//! There is one call, which must not run twice. Its id is that of its delivery, so the model needs none. Volatile and
//! durable parts are separate: a crash clears the [`Node`], and only [`Store`] survives everything.

use super::worker::Worker;

pub(crate) type NodeId = u8;
pub(crate) type WorkerId = u8;
/// How often the session was claimed.
pub(crate) type Epoch = u8;

/// Two workers suffice for a call to run twice.
pub(crate) const WORKERS: u8 = 2;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// The client, with its edge's knowledge of the call.
    pub(crate) client: Client,
    /// Deliveries that are on their way or wait in a node, sorted.
    pub(crate) posts: Vec<Post>,
    pub(crate) nodes: Vec<Node>,
    /// Frames on their way from nodes to workers, sorted.
    pub(crate) frames: Vec<Frame>,
    pub(crate) workers: [Worker; WORKERS as usize],
    /// The durable state.
    pub(crate) store: Store,
    /// A bit for each worker that a node cannot reach.
    pub(crate) cuts: Vec<u8>,
    /// Past events, for the properties.
    pub(crate) past: Past,
    /// Remaining mishaps.
    pub(crate) mishaps: u8,
}

/// The client and its edge, which is as volatile as the client's connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    pub(crate) phase: Phase,
    /// Lost connections to owners. The edge accepts answers to the newest attempt only.
    pub(crate) attempt: u8,
    /// Whether an owner may have sent the call on. From then on every delivery is a repetition.
    pub(crate) left: bool,
    /// The binding in the edge's plan.
    pub(crate) binding: Binding,
    /// Whether the client has an event id, or was told that its request was accepted.
    pub(crate) has_id: bool,
    /// The events that the client has read, in order.
    pub(crate) read: Vec<Event>,
    /// The answers that came as JSON.
    pub(crate) json: Vec<Event>,
    /// The client's answer to the tool's question.
    pub(crate) reply: Asked,
    /// The client's cancellation, or the end of its session.
    pub(crate) also: Asked,
}

/// The phase of the client's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// The edge must deliver the call.
    Waiting,
    /// The edge has delivered the call to this node and waits.
    Delivered(NodeId),
    /// The client reads the stream through this node.
    Reading(NodeId),
    /// The client's connection broke, and the client will resume.
    Broken,
    Answered,
    Gone,
}

/// The state of a client's request to an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Asked {
    No,
    /// The request waits at this node.
    At(NodeId),
    /// The client was told that the request is done.
    Accepted,
}

/// Binds a call to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Binding {
    pub(crate) worker: WorkerId,
    pub(crate) incarnation: u8,
    /// The number of the worker's ledger.
    pub(crate) number: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Post {
    pub(crate) node: NodeId,
    /// The edge's attempt.
    pub(crate) attempt: u8,
    /// Whether an owner may have sent the call on before.
    pub(crate) repeated: bool,
    pub(crate) binding: Binding,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) alive: bool,
    /// Whether less than a lease has passed since the last confirmed renewal was sent.
    pub(crate) certain: bool,
    /// Whether other nodes may have claimed, so that this node must check the owner again a lease later.
    pub(crate) doubts: bool,
    /// Whether the node refuses connections although it lives.
    pub(crate) refuses: bool,
    pub(crate) belief: Belief,
    /// Whether the node was told to cancel a call that it does not know.
    pub(crate) cancels: bool,
    /// The call, while the node drives it.
    pub(crate) task: Option<Task>,
}

/// A node's belief about the session, which may be wrong, for example after a long pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Belief {
    /// Another node owns the session.
    None,
    /// A claim has read this owner and this epoch.
    Claiming(NodeId, Epoch),
    /// Claimed, but the journal was not read yet.
    Fresh(Epoch),
    Owner(Epoch),
}

/// The call from its driver's view.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Task {
    pub(crate) binding: Binding,
    /// A bit for each worker that has refused the call.
    pub(crate) refused: u8,
    /// Whether an earlier delivery may have started the call.
    pub(crate) repeated: bool,
    pub(crate) link: Link,
    pub(crate) step: Step,
    /// The attempt that waits for its answer here.
    pub(crate) waiter: Option<u8>,
    /// The last position of the stream, as the node believes.
    pub(crate) after: u8,
    /// Number of the worker's events that were processed.
    pub(crate) seen: u8,
    /// The next event to process.
    pub(crate) pending: Option<Event>,
    pub(crate) cancel: bool,
    /// Whether the driver only attaches, without starting the call.
    pub(crate) attach_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Link {
    Unsent,
    Starting,
    Up,
    /// A start was sent, and the worker became unreachable.
    Away,
    Refused,
    /// The driver expects no more events.
    Down,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Hold,
    /// A step was sent, and its outcome is not known.
    Unsure,
    /// The call is journaled and its stream is open.
    Logged,
    /// The answer was sent as JSON, and an entry that may exist must be closed.
    Closing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Frame {
    /// The destination, with the ledger's number.
    pub(crate) binding: Binding,
    pub(crate) node: NodeId,
    pub(crate) epoch: Epoch,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum What {
    Start {
        /// Attaches only. If the call is unknown, it counts as cancelled.
        attach_only: bool,
    },
    /// The client's answer to the question.
    Input,
    /// This many events are safe, so the worker may drop them.
    Free(u8),
    Cancel,
    EndSession,
}

/// An event of the call, or its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    /// An intermediate event, with the number of its execution.
    Progress(u8),
    Question(u8),
    /// A write to the session state, for the owner only.
    Write(u8),
    Result(u8),
    Cancelled,
    Unknown,
    /// Every worker has refused the call, or it was refused before a worker was asked.
    NotExecuted,
}

impl Event {
    pub(crate) fn is_answer(self) -> bool {
        !matches!(self, Self::Progress(_) | Self::Question(_) | Self::Write(_))
    }

    pub(crate) fn is_workers(self) -> bool {
        !matches!(self, Self::Unknown | Self::NotExecuted)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Store {
    pub(crate) away: bool,
    pub(crate) owner: NodeId,
    pub(crate) epoch: Epoch,
    /// Whether less than a lease has passed since the last claim.
    pub(crate) claimed_lately: bool,
    pub(crate) deleted: bool,
    /// Whether each node's lease lives.
    pub(crate) leases: Vec<bool>,
    /// Whether each lease has a note that the node's sessions are claimed.
    pub(crate) notes: Vec<bool>,
    pub(crate) entry: Option<Entry>,
    /// Whether the store has carried out the call's write.
    pub(crate) written: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) binding: Binding,
    /// The events, from position 1.
    pub(crate) events: Vec<Event>,
    /// Number of the worker's events that were processed.
    pub(crate) seen: u8,
    /// Whether the answer was appended.
    pub(crate) ended: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Past {
    /// Over all workers.
    pub(crate) executions: u8,
    pub(crate) writings: u8,
    pub(crate) claims: u8,
    /// Data was lost that makes an outcome unknown.
    pub(crate) unknowable: bool,
    /// A write was accepted with an older epoch than the write before.
    pub(crate) regressed: bool,
    /// A worker obeyed a former owner although it knew the next one.
    pub(crate) obeyed_former: bool,
    /// An owner accepted a call while its lease was not certain.
    pub(crate) admitted_uncertain: bool,
    /// The call was cancelled without a request.
    pub(crate) cancelled_unasked: bool,
    /// A call was started at a worker that knew of the session's end.
    pub(crate) started_after_end: bool,
    /// A cancelled call was started instead of only attached.
    pub(crate) started_cancelled: bool,
    /// A session was claimed although its owner lives and can be reached.
    pub(crate) claimed_needlessly: bool,
    /// An accepted cancellation was lost with the only node that knew of it.
    pub(crate) cancel_lost: bool,
}

impl State {
    pub(crate) fn node(&self, node: NodeId) -> &Node {
        &self.nodes[usize::from(node)]
    }

    pub(crate) fn node_mut(&mut self, node: NodeId) -> &mut Node {
        &mut self.nodes[usize::from(node)]
    }

    pub(crate) fn task(&self, node: NodeId) -> &Task {
        self.node(node).task.as_ref().expect("it drives the call")
    }

    pub(crate) fn task_mut(&mut self, node: NodeId) -> &mut Task {
        let task = self.node_mut(node).task.as_mut();
        task.expect("it drives the call")
    }

    /// The epoch of a node that believes to be the owner.
    pub(crate) fn epoch_of(&self, node: NodeId) -> Epoch {
        match self.node(node).belief {
            Belief::Owner(epoch) | Belief::Fresh(epoch) => epoch,
            other => unreachable!("{other:?} has no epoch"),
        }
    }

    pub(crate) fn is_cut(&self, node: NodeId, worker: WorkerId) -> bool {
        self.cuts[usize::from(node)] & (1 << worker) != 0
    }

    /// Uses up one mishap.
    pub(crate) fn disturb(&mut self) {
        self.mishaps -= 1;
    }

    pub(crate) fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        0..u8::try_from(self.nodes.len()).expect("few nodes")
    }
}
