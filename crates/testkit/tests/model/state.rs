//! Everything that can differ between two moments of the modelled cluster.
//!
//! Volatile and durable parts stand apart: a crash of a node clears its [`Node`], and only [`Store`] survives
//! everything.

/// Index of a node.
pub(crate) type NodeId = u8;
/// Index of a worker.
pub(crate) type WorkerId = u8;
/// Index of a call, which is its stream's as well. Ids grow with time, as those of real calls do.
pub(crate) type CallId = u8;
/// Index of a client's request; it is the delivery id, too.
pub(crate) type RequestId = u8;
/// How often the session was claimed.
pub(crate) type Epoch = u8;

/// One moment of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// What is durable.
    pub(crate) store: Store,
    /// The session nodes.
    pub(crate) nodes: Vec<Node>,
    /// The workers.
    pub(crate) workers: Vec<Worker>,
    /// The client's requests, with what the edge knows of each.
    pub(crate) requests: Vec<Request>,
    /// Deliveries on their way to a node or waiting in it, sorted.
    pub(crate) deliveries: Vec<Delivery>,
    /// Starts that are under way and that nobody waits for any more, sorted.
    pub(crate) strays: Vec<Stray>,
    /// How often each call was executed, over all workers.
    pub(crate) executions: Vec<u8>,
    /// How many things may still go wrong.
    pub(crate) disturbances: u8,
}

/// The store: each of its methods is one atomic step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Store {
    /// The session's owner.
    pub(crate) owner: NodeId,
    /// The session's epoch.
    pub(crate) epoch: Epoch,
    /// Which nodes' leases live.
    pub(crate) leases: Vec<bool>,
    /// The streams, each with the journal entry of its call.
    pub(crate) streams: Vec<Stream>,
    /// Whether a write was taken whose epoch was older than that of a write before it.
    pub(crate) regressed: bool,
}

/// A stream, and the journal entry of the call that is answered on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stream {
    /// The delivery that began the call.
    pub(crate) request: RequestId,
    /// Where the call runs.
    pub(crate) worker: WorkerId,
    /// The events, the first of them at position 1.
    pub(crate) events: Vec<Event>,
    /// The highest of the worker's events that was appended.
    pub(crate) seen: u8,
    /// Whether the answer was appended and the journal entry closed.
    pub(crate) ended: bool,
    /// Whether the call was taken back before it was started. The entry stays, so that no late delivery
    /// begins it again.
    pub(crate) withdrawn: bool,
}

/// An event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    /// The worker's first event, with the number of the execution that it came from.
    Progress(u8),
    /// The worker's second event and the answer.
    Result(u8),
    /// The owner's answer when the worker cannot tell.
    Unknown,
}

impl Event {
    /// Whether this ends the stream.
    pub(crate) fn is_answer(self) -> bool {
        !matches!(self, Self::Progress(_))
    }

    /// Whether a worker produced this.
    pub(crate) fn is_workers(self) -> bool {
        self != Self::Unknown
    }
}

/// A session node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    /// Whether it has not crashed.
    pub(crate) alive: bool,
    /// What it believes of the session.
    pub(crate) session: Session,
    /// The calls it drives, sorted.
    pub(crate) tasks: Vec<Task>,
}

/// What a node believes of the session. It may be wrong about it, as after a long pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Session {
    /// Somebody else's.
    None,
    /// A claim has read this owner and this epoch.
    Claiming(NodeId, Epoch),
    /// Claimed; the journal was not read yet.
    Fresh(Epoch),
    /// Owned.
    Active(Epoch),
}

/// A call that a node drives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Task {
    /// The call and its stream.
    pub(crate) call: CallId,
    /// Where the node looks for it.
    pub(crate) worker: WorkerId,
    /// How far the node has got with that worker.
    pub(crate) link: Link,
    /// The position of the stream's last event, as the node believes.
    pub(crate) after: u8,
    /// The highest of the worker's events that the node has appended.
    pub(crate) seen: u8,
    /// The event that it has to append next.
    pub(crate) pending: Option<Event>,
}

/// The connection of a task to its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Link {
    /// An attach is under way.
    Attaching,
    /// A start is under way.
    Starting,
    /// The worker sends its events.
    Up,
    /// Nothing more is expected from the worker.
    Down,
}

/// A worker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Worker {
    /// Whether it has not crashed. Its id never comes back.
    pub(crate) alive: bool,
    /// The calls that it remembers, sorted.
    pub(crate) runs: Vec<Run>,
    /// The largest call id that it has forgotten.
    pub(crate) horizon: Option<CallId>,
}

/// A call in a worker's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Run {
    /// The call.
    pub(crate) call: CallId,
    /// How many times the call was executed anywhere when this execution began, with this one.
    pub(crate) execution: u8,
    /// How many of its two events there are.
    pub(crate) produced: u8,
}

/// A client's request, as the client and its edge see it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Request {
    /// Where it is.
    pub(crate) phase: Phase,
    /// How many connections to an owner the edge has lost: a delivery with more than 0 is a repeated one.
    pub(crate) attempt: u8,
    /// The last id that the client has, once it has one.
    pub(crate) cursor: Option<Cursor>,
    /// What the client has got, in this order.
    pub(crate) seen: Vec<(Cursor, Event)>,
}

/// A place in a stream: an event id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cursor {
    /// The stream.
    pub(crate) stream: CallId,
    /// The event's position; 0 stands before the first.
    pub(crate) position: u8,
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// The edge has to deliver it.
    Waiting,
    /// The edge has sent it to this node and waits for the stream's id.
    Delivering(NodeId),
    /// The client reads through this node.
    Reading(NodeId),
    /// The client's connection broke; it comes back with its last id.
    Broken,
    /// The client was told that the request is not executed.
    Rejected,
}

/// A request on its way to its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Delivery {
    /// The request.
    pub(crate) request: RequestId,
    /// The edge's attempt: it waits for the newest only.
    pub(crate) attempt: u8,
    /// Where it goes.
    pub(crate) node: NodeId,
    /// Whether it must be looked up before a call is begun for it.
    pub(crate) unchecked: bool,
    /// Whether the node has begun a call for it without learning so.
    pub(crate) unconfirmed: bool,
}

/// A start that its sender has stopped to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Stray {
    /// The call.
    pub(crate) call: CallId,
    /// Where it goes.
    pub(crate) worker: WorkerId,
}
