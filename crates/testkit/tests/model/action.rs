//! The atomic steps of the model.

use super::state::{Frame, NodeId, Post, WorkerId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Renews the lease, and checks the session's owner if other nodes may have claimed.
    Renew(NodeId),
    /// Checks the owner again, a lease later.
    AskAgain(NodeId),
    Lapse(NodeId),
    /// The first half of a claim: read owner, epoch and lease, and leave a note.
    Look(NodeId),
    /// The second half of a claim: compare and set.
    Swap(NodeId, Reply),
    ReadJournal(NodeId),

    Deliver(NodeId),
    Admit(Post),
    /// The node does not own the session.
    SendBack(Post),
    /// The owner cannot reach the worker, so the edge binds the call again.
    SendBackUnsent(NodeId),

    Arrive(Frame, Reply),
    /// A frame without a waiting receiver is lost.
    Lose(Frame),
    Produce(WorkerId),
    Receive(NodeId),
    /// Another driver has replaced this one's reader.
    Superseded(NodeId),
    /// The unreachable worker may have run the call.
    LosePatience(NodeId),
    Rebind(NodeId, Reply),
    Answer(NodeId, Reply),
    Journal(NodeId, Reply),
    Write(NodeId, Reply),
    Append(NodeId, Reply),
    /// Closes the journal entry of a call whose answer was sent as JSON.
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
    /// A lease time passes without a renewal.
    Age(NodeId),
    RefuseConnections(NodeId),
    GiveUp(NodeId),
    ArriveFull(Frame),
    /// A ledger advances its number and forgets ended calls.
    Forget(WorkerId),
    Limit(Post),
    HangUp,
    StoreAway,
    /// A lease time has passed since the last claim.
    QuietPasses,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Arrives,
    Lost,
}
