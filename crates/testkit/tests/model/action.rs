//! What can happen next. Each action is one step that nothing else can fall into.

use super::state::{CallId, Delivery, NodeId, RequestId, Stray, WorkerId};

/// A step of somebody, or of bad luck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A node's lease lapses, or another node takes it for gone: others may claim, whether the node knows or not.
    Lapse(NodeId),
    /// A node renews its lease, and learns that others may have claimed.
    Renew(NodeId),
    /// The first half of a claim: read owner, epoch and leases.
    ReadOwner(NodeId),
    /// The second half: compare and set.
    SwapOwner(NodeId, Reply),
    /// A new owner reads the journal and resumes what runs.
    ReadJournal(NodeId),

    /// The edge sends a request to a node.
    Deliver(RequestId, NodeId),
    /// An owner asks whether a repeated delivery has begun a call.
    LookUp(Delivery),
    /// An owner begins the call of a delivery.
    Begin(Delivery, Reply),
    /// An owner that does not learn whether it has begun a call loses patience, takes the call back and
    /// tells the client that it is not executed.
    Withdraw(Delivery),
    /// A node that cannot own the session sends a delivery back.
    Refuse(Delivery),

    /// A task's attach or start reaches the worker.
    Arrive(NodeId, CallId),
    /// A start that nobody waits for reaches the worker.
    ArriveStray(Stray),
    /// A start that nobody waits for is lost.
    LoseStray(Stray),
    /// The worker produces the call's next event.
    Produce(WorkerId, CallId),
    /// A node receives the worker's next event.
    Receive(NodeId, CallId),
    /// A node appends the event it has received.
    Append(NodeId, CallId, Reply),

    /// The client reads its next event from the log.
    Read(RequestId),
    /// The client comes back at a node with its last id.
    Resume(RequestId, NodeId),

    /// The client's connection breaks.
    BreakClient(RequestId),
    /// The edge loses its connection to the node.
    BreakEdge(RequestId),
    /// A node loses its link to the worker of a call.
    BreakLink(NodeId, CallId),
    /// A node takes a worker for lost that is not.
    GiveUp(NodeId, CallId),
    /// The worker's retention of a finished call is over.
    Forget(WorkerId, CallId),
    /// A node crashes.
    CrashNode(NodeId),
    /// A worker crashes.
    CrashWorker(WorkerId),
}

/// What becomes of the store's reply to a write that it has carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// It arrives.
    Arrives,
    /// It is lost: the node does not know whether the write was carried out.
    Lost,
}
