//! The state of the modelled cluster.
//!
//! There is one call, so the state contains no ids of calls. A crash clears the [`Node`], and only
//! [`Store`] survives everything.

use super::worker::Worker;

pub(crate) type NodeId = u8;
pub(crate) type WorkerId = u8;
pub(crate) type Epoch = u8;

pub(crate) const WORKERS: u8 = 2;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) client: Client,
    pub(crate) posts: Vec<Post>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) workers: [Worker; WORKERS as usize],
    pub(crate) store: Store,
    /// Broken links of each node, as one bit for each worker.
    pub(crate) cuts: Vec<u8>,
    pub(crate) past: Past,
    pub(crate) mishaps: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    pub(crate) phase: Phase,
    /// How often the edge lost its connection to an owner. The edge accepts only answers to the newest
    /// attempt.
    pub(crate) attempt: u8,
    /// Whether an owner may have sent the call to a worker. Later deliveries are then repetitions.
    pub(crate) left: bool,
    pub(crate) binding: Binding,
    /// Whether the client has an event id, or was told that its request was accepted.
    pub(crate) has_id: bool,
    pub(crate) read: Vec<Event>,
    pub(crate) json: Vec<Event>,
    pub(crate) reply: Asked,
    pub(crate) also: Asked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Waiting,
    Delivered(NodeId),
    Reading(NodeId),
    Broken,
    Answered,
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Asked {
    No,
    At(NodeId),
    Accepted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Binding {
    pub(crate) worker: WorkerId,
    pub(crate) incarnation: u8,
    pub(crate) number: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Post {
    pub(crate) node: NodeId,
    pub(crate) attempt: u8,
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
    pub(crate) refuses: bool,
    pub(crate) belief: Belief,
    pub(crate) cancels: bool,
    pub(crate) task: Option<Task>,
}

/// A node's belief about its ownership. The belief may be wrong, for example after a long pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Belief {
    None,
    /// The node's claim has read this owner and epoch.
    Claiming(NodeId, Epoch),
    /// The node has claimed the session, but has not read the journal yet.
    Fresh(Epoch),
    Owner(Epoch),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Task {
    pub(crate) binding: Binding,
    /// Workers that have refused the call, as one bit for each.
    pub(crate) refused: u8,
    pub(crate) repeated: bool,
    pub(crate) link: Link,
    pub(crate) step: Step,
    pub(crate) waiter: Option<u8>,
    pub(crate) after: u8,
    /// The number of the worker's events that the driver has processed.
    pub(crate) seen: u8,
    pub(crate) pending: Option<Event>,
    pub(crate) cancel: bool,
    pub(crate) attach_only: bool,
    /// Whether the owner's plan refused the call, which may have run. Only the worker can confirm the refusal.
    pub(crate) denied: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Link {
    Planning,
    Unsent,
    Starting,
    Up,
    Away,
    Refused,
    Down,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Hold,
    /// The journal step was sent, but its outcome is not known.
    Unsure,
    Logged,
    /// The answer was sent as JSON, and an entry that may exist must be closed.
    Closing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Frame {
    pub(crate) binding: Binding,
    pub(crate) node: NodeId,
    pub(crate) epoch: Epoch,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum What {
    Start {
        /// Whether the worker treats an unknown call as cancelled.
        attach_only: bool,
    },
    Input,
    Free(u8),
    Cancel,
    EndSession,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    /// Progress, with the number of the execution that reports it.
    Progress(u8),
    Question(u8),
    Write(u8),
    Result(u8),
    Cancelled,
    Unknown,
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
    pub(crate) claimed_lately: bool,
    pub(crate) deleted: bool,
    pub(crate) leases: Vec<bool>,
    pub(crate) notes: Vec<bool>,
    pub(crate) entry: Option<Entry>,
    pub(crate) written: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) binding: Binding,
    pub(crate) events: Vec<Event>,
    pub(crate) seen: u8,
    pub(crate) ended: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Past {
    pub(crate) executions: u8,
    pub(crate) writings: u8,
    pub(crate) claims: u8,
    pub(crate) unknowable: bool,
    pub(crate) regressed: bool,
    pub(crate) obeyed_former: bool,
    pub(crate) admitted_uncertain: bool,
    pub(crate) cancelled_unasked: bool,
    pub(crate) started_after_end: bool,
    pub(crate) started_cancelled: bool,
    pub(crate) claimed_needlessly: bool,
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

    pub(crate) fn epoch_of(&self, node: NodeId) -> Epoch {
        match self.node(node).belief {
            Belief::Owner(epoch) | Belief::Fresh(epoch) => epoch,
            other => unreachable!("{other:?} has no epoch"),
        }
    }

    pub(crate) fn is_cut(&self, node: NodeId, worker: WorkerId) -> bool {
        self.cuts[usize::from(node)] & (1 << worker) != 0
    }

    pub(crate) fn disturb(&mut self) {
        self.mishaps -= 1;
    }

    pub(crate) fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        0..u8::try_from(self.nodes.len()).expect("few nodes")
    }
}
