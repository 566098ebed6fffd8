//! The atomic steps of the model.

use super::state::{Frame, NodeId, Post, WorkerId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Renews the lease. If other nodes may have claimed sessions, checks the session's owner.
    Renew(NodeId),
    /// Checks the session's owner again, a lease after the renewal.
    AskAgain(NodeId),
    Lapse(NodeId),
    /// Begins a claim: reads owner, epoch and lease, and leaves a note.
    Look(NodeId),
    /// Ends a claim: sets the owner if owner and epoch are unchanged.
    Swap(NodeId, Reply),
    ReadJournal(NodeId),

    Deliver(NodeId),
    Admit(Post),
    /// Sends the request back to the edge, because the node does not own the session.
    SendBack(Post),
    /// Sends the call back to the edge as unsent, because the owner cannot reach the call's worker.
    /// The edge binds the call again.
    SendBackUnsent(NodeId),

    /// Plans the call, and starts it at the worker that its edge has drawn.
    Plan(NodeId),
    /// The plan refuses the call, because rules or the catalog have changed.
    PlanRefuses(NodeId),
    /// The owner's catalog has the tool in another pool than the catalog of the edge.
    PlanDisagrees(NodeId),

    Arrive(Frame, Reply),
    /// Loses a frame that has no waiting receiver.
    Lose(Frame),
    Produce(WorkerId),
    Receive(NodeId),
    /// Tells a node's driver that another node reads the worker's events now.
    Superseded(NodeId),
    /// Ends the wait for a worker that cannot be reached and may have run the call.
    LosePatience(NodeId),
    Rebind(NodeId, Reply),
    Answer(NodeId, Reply),
    Journal(NodeId, Reply),
    Write(NodeId, Reply),
    Append(NodeId, Reply),
    /// Closes the journal's entry of a call whose answer was sent as JSON.
    Close(NodeId, Reply),

    AskWorker,

    Read,
    Resume(NodeId),
    HearOfEnd,
    ReplyTo(NodeId),
    Cancel(NodeId),
    PassCancel(NodeId),
    Delete(NodeId),
    StoreBack,

    BreakClient,
    BreakEdge,
    BreakLink(NodeId),
    Cut(NodeId, WorkerId),
    CrashNode(NodeId),
    CrashWorker(WorkerId),
    /// Lets a lease time pass without a renewal.
    Age(NodeId),
    RefuseConnections(NodeId),
    GiveUp(NodeId),
    ArriveFull(Frame),
    /// Advances the number of a worker's ledger. The ledger then forgets ended calls.
    Forget(WorkerId),
    Limit(Post),
    HangUp,
    StoreAway,
    /// Lets a lease time pass since the last claim.
    QuietPasses,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Arrives,
    Lost,
}
