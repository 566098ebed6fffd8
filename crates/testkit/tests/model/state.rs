//! Everything that can differ between two moments of the modelled cluster.
//!
//! There is one call, which must not run twice. Its id is that of the delivery that brings it, so nothing here needs one.
//! Volatile and durable parts stand apart: a crash of a node clears its [`Node`], and only [`Store`] survives everything.

use super::worker::Worker;

/// Index of a node.
pub(crate) type NodeId = u8;
/// Index of a worker.
pub(crate) type WorkerId = u8;
/// How often the session was claimed.
pub(crate) type Epoch = u8;

/// The workers. Two are enough for a call to run twice.
pub(crate) const WORKERS: u8 = 2;

/// One moment of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// The client, with what its edge knows of the call.
    pub(crate) client: Client,
    /// Deliveries on their way to a node or waiting in it, sorted.
    pub(crate) posts: Vec<Post>,
    /// The session nodes.
    pub(crate) nodes: Vec<Node>,
    /// What is on its way from nodes to workers, sorted.
    pub(crate) frames: Vec<Frame>,
    /// The workers.
    pub(crate) workers: [Worker; WORKERS as usize],
    /// What is durable.
    pub(crate) store: Store,
    /// Which workers a node cannot reach any more, a bit for each.
    pub(crate) cuts: Vec<u8>,
    /// What has happened, for the properties to tell.
    pub(crate) past: Past,
    /// How often something may still go wrong.
    pub(crate) mishaps: u8,
}

/// The client and its edge, which is as volatile as the client's connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    /// Where the call is.
    pub(crate) phase: Phase,
    /// How many connections to an owner the edge has lost: it hears the newest attempt only.
    pub(crate) attempt: u8,
    /// Whether something of the call may have left an owner: from then on a delivery is a repetition.
    pub(crate) left: bool,
    /// What the edge's plan has bound the call to.
    pub(crate) binding: Binding,
    /// Whether the client has an event id, or was told that its request was taken.
    pub(crate) has_id: bool,
    /// What the client has read of the stream, in this order.
    pub(crate) read: Vec<Event>,
    /// The answers that came as JSON.
    pub(crate) json: Vec<Event>,
    /// Its answer to the tool's question.
    pub(crate) reply: Asked,
    /// Its cancellation, or the end of its session.
    pub(crate) also: Asked,
}

/// Where the client's call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// The edge has to deliver it.
    Waiting,
    /// The edge has delivered it to this node and waits.
    Delivered(NodeId),
    /// The client reads the stream through this node.
    Reading(NodeId),
    /// The client's connection broke; it comes back with its last id.
    Broken,
    /// The client has its answer.
    Answered,
    /// The client has hung up.
    Gone,
}

/// Something that a client asks of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Asked {
    /// Not yet.
    No,
    /// It waits at this node.
    At(NodeId),
    /// It was told that it is done.
    Accepted,
}

/// What binds a call to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Binding {
    /// The worker.
    pub(crate) worker: WorkerId,
    /// Its incarnation.
    pub(crate) incarnation: u8,
    /// Its ledger's number.
    pub(crate) number: u8,
}

/// A delivery on its way to an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Post {
    /// Where it goes.
    pub(crate) node: NodeId,
    /// The edge's attempt.
    pub(crate) attempt: u8,
    /// Whether something may have left an owner before.
    pub(crate) repeated: bool,
    /// What the call is bound to.
    pub(crate) binding: Binding,
}

/// A session node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    /// Whether it has not crashed.
    pub(crate) alive: bool,
    /// Whether its last confirmed renewal, counted from when it was sent, is younger than the lease.
    pub(crate) certain: bool,
    /// Whether it has read that others may have claimed, and has to ask once more a lease later.
    pub(crate) doubts: bool,
    /// Whether it refuses connections though it lives.
    pub(crate) refuses: bool,
    /// What it believes of the session.
    pub(crate) belief: Belief,
    /// Whether it was told to cancel a call that it does not know.
    pub(crate) cancels: bool,
    /// The call, while it drives it.
    pub(crate) task: Option<Task>,
}

/// What a node believes of the session. It may be wrong about it, as after a long pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Belief {
    /// Somebody else's.
    None,
    /// A claim has read this owner and this epoch.
    Claiming(NodeId, Epoch),
    /// Claimed; the journal was not read yet.
    Fresh(Epoch),
    /// Owned.
    Owner(Epoch),
}

/// The call as its driver knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Task {
    /// Where it runs.
    pub(crate) binding: Binding,
    /// The workers that have refused it, a bit for each.
    pub(crate) refused: u8,
    /// Whether it may have been started by an earlier delivery.
    pub(crate) repeated: bool,
    /// How far the node has got with the worker.
    pub(crate) link: Link,
    /// How far the node has got with the log.
    pub(crate) step: Step,
    /// The attempt that waits for its answer here.
    pub(crate) waiter: Option<u8>,
    /// The stream's last position, as the node believes.
    pub(crate) after: u8,
    /// How many of the worker's events are dealt with.
    pub(crate) seen: u8,
    /// What has to be dealt with next.
    pub(crate) pending: Option<Event>,
    /// Whether it is to be cancelled.
    pub(crate) cancel: bool,
    /// Whether it is only attached, and never started.
    pub(crate) attach_only: bool,
}

/// A driver's way to the call's worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Link {
    /// Nothing was sent.
    Unsent,
    /// A start is on its way.
    Starting,
    /// The worker sends its events.
    Up,
    /// A start was sent, and the worker cannot be reached any more.
    Away,
    /// The worker has refused the call.
    Refused,
    /// Nothing more is expected.
    Down,
}

/// A driver's way to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// Nothing is journaled.
    Hold,
    /// A step was sent, and nobody knows whether it was carried out.
    Unsure,
    /// The call is journaled and its stream open.
    Logged,
    /// The answer went as JSON, and an entry that may be there has to be closed.
    Closing,
}

/// Something on its way from a node to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Frame {
    /// Where it goes, and under which number.
    pub(crate) binding: Binding,
    /// Who has sent it.
    pub(crate) node: NodeId,
    /// The sender's epoch.
    pub(crate) epoch: Epoch,
    /// What it says.
    pub(crate) what: What,
}

/// What a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum What {
    /// Start the call, or attach to it.
    Start {
        /// Whether to attach only, and to take cancelled what is not known.
        attach_only: bool,
    },
    /// The client's answer to the question.
    Input,
    /// So many events are safe, and need not be kept.
    Free(u8),
    /// Cancel the call.
    Cancel,
    /// The session has ended.
    EndSession,
}

/// An event of the call, or its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    /// Something in between, with the number of the execution that it came from.
    Progress(u8),
    /// A question to the client.
    Question(u8),
    /// A writing to the session's state: for the owner, not for the client.
    Write(u8),
    /// The result.
    Result(u8),
    /// The call was cancelled.
    Cancelled,
    /// The outcome is unknown.
    Unknown,
    /// It was not executed: every worker has refused it, or it was refused before one was asked.
    NotExecuted,
}

impl Event {
    /// Whether this ends the call.
    pub(crate) fn is_answer(self) -> bool {
        !matches!(self, Self::Progress(_) | Self::Question(_) | Self::Write(_))
    }

    /// Whether a worker produced this.
    pub(crate) fn is_workers(self) -> bool {
        !matches!(self, Self::Unknown | Self::NotExecuted)
    }
}

/// The store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Store {
    /// Whether it cannot be reached for now.
    pub(crate) away: bool,
    /// The session's owner.
    pub(crate) owner: NodeId,
    /// The session's epoch.
    pub(crate) epoch: Epoch,
    /// Whether the last claim is younger than a lease.
    pub(crate) claimed_lately: bool,
    /// Whether the session was ended.
    pub(crate) deleted: bool,
    /// Which nodes' leases live.
    pub(crate) leases: Vec<bool>,
    /// At which leases it is noted that the node's sessions are claimed.
    pub(crate) notes: Vec<bool>,
    /// The journal's entry of the call, with its stream.
    pub(crate) entry: Option<Entry>,
    /// Whether the record knows that the call's writing was carried out.
    pub(crate) written: bool,
}

/// The journal's entry of the call, with its stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    /// Where the call runs.
    pub(crate) binding: Binding,
    /// The events, the first of them at position 1.
    pub(crate) events: Vec<Event>,
    /// How many of the worker's events are dealt with.
    pub(crate) seen: u8,
    /// Whether the answer was appended.
    pub(crate) ended: bool,
}

/// What has happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Past {
    /// How often the call was executed, over all workers.
    pub(crate) executions: u8,
    /// How often the session's state was written.
    pub(crate) writings: u8,
    /// How often a claim was made.
    pub(crate) claims: u8,
    /// Something was lost that makes an outcome unknown.
    pub(crate) unknowable: bool,
    /// A write was taken whose epoch was older than that of one before.
    pub(crate) regressed: bool,
    /// A worker obeyed a former owner though it knew the next one.
    pub(crate) obeyed_former: bool,
    /// An owner admitted a call while its lease was not certain.
    pub(crate) admitted_uncertain: bool,
    /// The call was cancelled though nobody had asked for that.
    pub(crate) cancelled_unasked: bool,
    /// A call was started where its session was known to be over.
    pub(crate) started_after_end: bool,
    /// A call was started that was to be attached only, since it is to be cancelled.
    pub(crate) started_cancelled: bool,
    /// A session was claimed whose owner lives and can be reached.
    pub(crate) claimed_needlessly: bool,
    /// An accepted cancellation was lost with the only node that knew of it.
    pub(crate) cancel_lost: bool,
}

impl State {
    /// The node.
    pub(crate) fn node(&self, node: NodeId) -> &Node {
        &self.nodes[usize::from(node)]
    }

    /// The node, to change it.
    pub(crate) fn node_mut(&mut self, node: NodeId) -> &mut Node {
        &mut self.nodes[usize::from(node)]
    }

    /// The call as the node drives it.
    pub(crate) fn task(&self, node: NodeId) -> &Task {
        self.node(node).task.as_ref().expect("it drives the call")
    }

    /// The same, to change it.
    pub(crate) fn task_mut(&mut self, node: NodeId) -> &mut Task {
        let task = self.node_mut(node).task.as_mut();
        task.expect("it drives the call")
    }

    /// The epoch of a node that believes that it is the owner.
    pub(crate) fn epoch_of(&self, node: NodeId) -> Epoch {
        match self.node(node).belief {
            Belief::Owner(epoch) | Belief::Fresh(epoch) => epoch,
            other => unreachable!("{other:?} has no epoch"),
        }
    }

    /// Whether the node cannot reach the worker.
    pub(crate) fn is_cut(&self, node: NodeId, worker: WorkerId) -> bool {
        self.cuts[usize::from(node)] & (1 << worker) != 0
    }

    /// Something went wrong.
    pub(crate) fn disturb(&mut self) {
        self.mishaps -= 1;
    }

    /// All nodes.
    pub(crate) fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        0..u8::try_from(self.nodes.len()).expect("few nodes")
    }
}
