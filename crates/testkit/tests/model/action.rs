//! What can happen next. Each action is one step that nothing else can fall into.

use super::state::{Frame, NodeId, Post, WorkerId};

/// A step of somebody, or of bad luck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A node renews its lease, and asks whose the session is if others may have claimed it.
    Renew(NodeId),
    /// A node that had doubts asks once more, a lease later.
    AskAgain(NodeId),
    /// The store ends a lease that was not renewed.
    Lapse(NodeId),
    /// The first half of a claim: read owner, epoch and lease, and leave a note.
    Look(NodeId),
    /// The second half: compare and set.
    Swap(NodeId, Reply),
    /// A new owner reads the journal and resumes what runs.
    ReadJournal(NodeId),

    /// The edge delivers the call to a node.
    Deliver(NodeId),
    /// An owner takes a delivery.
    Admit(Post),
    /// A node that does not own the session sends a delivery back.
    SendBack(Post),
    /// An owner sends a call back whose worker it cannot reach; the edge binds it anew.
    SendBackUnsent(NodeId),

    /// A frame arrives.
    Arrive(Frame, Reply),
    /// A frame that nobody waits for is lost.
    Lose(Frame),
    /// The worker produces the call's next event.
    Produce(WorkerId),
    /// A driver gets the next event.
    Receive(NodeId),
    /// A driver learns that another one reads in its place.
    Superseded(NodeId),
    /// A driver that cannot reach the worker of a call that may run there loses patience.
    LosePatience(NodeId),
    /// A driver binds the call to another worker.
    Rebind(NodeId, Reply),
    /// The answer leaves as JSON.
    Answer(NodeId, Reply),
    /// The call is journaled and becomes a stream.
    Journal(NodeId, Reply),
    /// What the call has written is stored.
    Write(NodeId, Reply),
    /// A driver appends the event that it has got.
    Append(NodeId, Reply),
    /// An entry is closed whose answer went as JSON.
    Close(NodeId, Reply),

    /// An edge that has lost the owner asks the worker for the result.
    AskWorker,

    /// The client reads its next event from the log.
    Read,
    /// The client comes back at a node with its last id.
    Resume(NodeId),
    /// The client hears that its session, and its stream with it, has ended.
    HearOfEnd,
    /// The client answers the tool's question, at an owner.
    ReplyTo(NodeId),
    /// The client cancels its call, at an owner.
    Cancel(NodeId),
    /// A driver passes the cancellation on.
    PassCancel(NodeId),
    /// The client ends its session, at an owner.
    Delete(NodeId),
    /// The store is back.
    StoreBack,

    /// The client's connection breaks.
    BreakClient,
    /// The edge loses its connection to the node that has the call.
    BreakEdge,
    /// A node loses its link to the call's worker.
    BreakLink(NodeId),
    /// A node cannot reach a worker any more.
    Cut(NodeId, WorkerId),
    /// A node crashes.
    CrashNode(NodeId),
    /// A worker crashes and comes back empty.
    CrashWorker(WorkerId),
    /// A lease passes without a renewal.
    Age(NodeId),
    /// A node refuses connections from now on.
    RefuseConnections(NodeId),
    /// A driver takes its worker for lost, which it is not.
    GiveUp(NodeId),
    /// A start arrives at a worker that has no room.
    ArriveFull(Frame),
    /// A ledger counts on.
    Forget(WorkerId),
    /// A limit is in the way of a delivery.
    Limit(Post),
    /// The client hangs up.
    HangUp,
    /// The store is away.
    StoreAway,
    /// A lease's time has passed since the last claim.
    QuietPasses,
}

/// What becomes of a reply to a step that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// It arrives.
    Arrives,
    /// It is lost.
    Lost,
}
