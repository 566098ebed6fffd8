//! The atomic steps of the model.

use super::state::{Frame, NodeId, Post, WorkerId};

/// A step of a participant, or a mishap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A node renews its lease, and checks the session's owner if other nodes may have claimed.
    Renew(NodeId),
    /// A node with doubts checks the owner again, a lease later.
    AskAgain(NodeId),
    /// The store ends a lease that was not renewed.
    Lapse(NodeId),
    /// The first half of a claim: read owner, epoch and lease, and leave a note.
    Look(NodeId),
    /// The second half of a claim: compare and set.
    Swap(NodeId, Reply),
    /// A new owner reads the journal and resumes running calls.
    ReadJournal(NodeId),

    /// The edge delivers the call to a node.
    Deliver(NodeId),
    /// An owner accepts a delivery.
    Admit(Post),
    /// A node that does not own the session returns a delivery.
    SendBack(Post),
    /// An owner that cannot reach the worker returns the call, and the edge binds it again.
    SendBackUnsent(NodeId),

    /// A frame arrives.
    Arrive(Frame, Reply),
    /// A frame that has no waiting receiver is lost.
    Lose(Frame),
    /// The worker produces the call's next event.
    Produce(WorkerId),
    /// A driver receives the next event.
    Receive(NodeId),
    /// A driver learns that another one has replaced its reader.
    Superseded(NodeId),
    /// A driver gives up on an unreachable worker, on which the call may run.
    LosePatience(NodeId),
    /// A driver binds the call to another worker.
    Rebind(NodeId, Reply),
    /// The answer is sent as JSON.
    Answer(NodeId, Reply),
    /// The call is journaled and becomes a stream.
    Journal(NodeId, Reply),
    /// The call's write is stored.
    Write(NodeId, Reply),
    /// A driver appends a received event.
    Append(NodeId, Reply),
    /// The journal entry of a call with a JSON answer is closed.
    Close(NodeId, Reply),

    /// An edge that has lost the owner asks the worker for the result.
    AskWorker,

    /// The client reads its next event from the log.
    Read,
    /// The client resumes at a node with its last id.
    Resume(NodeId),
    /// The client is told that its session and stream have ended.
    HearOfEnd,
    /// The client answers the tool's question at an owner.
    ReplyTo(NodeId),
    /// The client cancels its call at an owner.
    Cancel(NodeId),
    /// A driver passes the cancellation to the worker.
    PassCancel(NodeId),
    /// The client ends its session at an owner.
    Delete(NodeId),
    /// The store is back.
    StoreBack,

    /// The client's connection breaks.
    BreakClient,
    /// The edge loses its connection to the node that has the call.
    BreakEdge,
    /// A node loses its link to the call's worker.
    BreakLink(NodeId),
    /// A node can no longer reach a worker.
    Cut(NodeId, WorkerId),
    /// A node crashes.
    CrashNode(NodeId),
    /// A worker crashes and restarts empty.
    CrashWorker(WorkerId),
    /// A lease time passes without a renewal.
    Age(NodeId),
    /// A node refuses connections from now on.
    RefuseConnections(NodeId),
    /// A driver wrongly takes its worker for lost.
    GiveUp(NodeId),
    /// A start arrives at a worker without capacity.
    ArriveFull(Frame),
    /// A ledger advances its number and forgets ended calls.
    Forget(WorkerId),
    /// A limit refuses a delivery.
    Limit(Post),
    /// The client hangs up.
    HangUp,
    /// The store is away.
    StoreAway,
    /// A lease time has passed since the last claim.
    QuietPasses,
}

/// Whether the reply to a completed step arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Arrives,
    Lost,
}
