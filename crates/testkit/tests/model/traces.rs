//! Ways in which weaker rules fail. Each was found by exploration and says why a rule is as strong as it is.

use super::action::{Action, Reply};
use super::state::{Delivery, NodeId, Stray};

/// The edge loses the owner, which still has the first delivery before it; the repeated one is looked up,
/// nothing is found, and both begin. Looking up in a step of its own is not enough.
pub(crate) fn two_deliveries_at_one_owner() -> Vec<Action> {
    vec![
        Action::Deliver(0, 0),
        Action::BreakEdge(0),
        Action::Deliver(0, 0),
        Action::LookUp(repeated(0, true)),
        Action::Begin(repeated(0, false), Reply::Arrives),
        Action::Begin(first(), Reply::Arrives),
    ]
}

/// The first delivery outlasts another node's ownership, and is not flagged as repeated. So an owner that
/// handles one delivery after another is not safe either: every delivery has to be checked.
pub(crate) fn first_delivery_after_the_repeated_one() -> Vec<Action> {
    let mut trace = vec![
        Action::Deliver(0, 0),
        Action::BreakEdge(0),
        Action::Lapse(0),
    ];
    trace.extend(claim(1));
    trace.extend([
        Action::Deliver(0, 1),
        Action::LookUp(repeated(1, true)),
        Action::Begin(repeated(1, false), Reply::Arrives),
        Action::Lapse(1),
        Action::Renew(0),
    ]);
    trace.extend(claim(0));
    trace.push(Action::Begin(first(), Reply::Arrives));
    trace
}

/// Node 0 renews between the two halves of a claim, so that a look at the owner would still find itself.
/// It then believes in its session for ever: it drives no call, so no write is refused, and the client that
/// resumes at it waits for a call that nobody drives.
pub(crate) fn believer_without_a_call() -> Vec<Action> {
    vec![
        Action::Lapse(0),
        Action::ReadOwner(1),
        Action::Renew(0),
        Action::SwapOwner(1, Reply::Arrives),
        Action::ReadJournal(1),
        Action::Deliver(0, 1),
        Action::Begin(at(1, 0, false), Reply::Arrives),
        Action::BreakClient(0),
        Action::Resume(0, 0),
        Action::CrashNode(1),
        Action::Lapse(1),
        Action::LoseStray(Stray { call: 0, worker: 0 }),
    ]
}

/// The answer was appended, but the reply is lost. "Outcome unknown" in its place has the same position, is
/// taken for the same append, and reaches the client, while the log holds the answer.
pub(crate) fn another_append_at_the_same_position() -> Vec<Action> {
    vec![
        Action::Deliver(0, 0),
        Action::Begin(first(), Reply::Arrives),
        Action::Arrive(0, 0),
        Action::Produce(0, 0),
        Action::Receive(0, 0),
        Action::Append(0, 0, Reply::Lost),
        Action::Append(0, 0, Reply::Arrives),
    ]
}

/// The client has been told that its call is not executed; the withdrawal that was to make it true dies
/// with the owner, and the next one finds the call in the journal and starts it.
pub(crate) fn rejected_and_then_resumed() -> Vec<Action> {
    let mut trace = vec![
        Action::Deliver(0, 0),
        Action::Begin(first(), Reply::Lost),
        Action::Withdraw(unconfirmed()),
        Action::CrashNode(0),
        Action::Lapse(0),
    ];
    trace.extend(claim(1));
    trace.extend([Action::Arrive(1, 0), Action::Arrive(1, 0)]);
    trace
}

/// Node 1 has claimed and is slow; node 0 claims again and begins a call, without learning so. Node 1, which
/// has lost the session by now, finds the call in the journal and starts it, and node 0 withdraws it.
pub(crate) fn journal_read_by_a_former_owner() -> Vec<Action> {
    let mut trace = vec![
        Action::Deliver(0, 0),
        Action::Lapse(0),
        Action::ReadOwner(1),
        Action::Renew(0),
        Action::SwapOwner(1, Reply::Arrives),
        Action::Lapse(1),
    ];
    trace.extend(claim(0));
    trace.extend([
        Action::Begin(first(), Reply::Lost),
        Action::ReadJournal(1),
        Action::Arrive(1, 0),
        Action::Arrive(1, 0),
        Action::Withdraw(unconfirmed()),
    ]);
    trace
}

fn claim(node: NodeId) -> [Action; 3] {
    [
        Action::ReadOwner(node),
        Action::SwapOwner(node, Reply::Arrives),
        Action::ReadJournal(node),
    ]
}

fn first() -> Delivery {
    at(0, 0, false)
}

fn unconfirmed() -> Delivery {
    Delivery {
        unchecked: true,
        unconfirmed: true,
        ..first()
    }
}

fn repeated(node: NodeId, unchecked: bool) -> Delivery {
    at(node, 1, unchecked)
}

fn at(node: NodeId, attempt: u8, unchecked: bool) -> Delivery {
    Delivery {
        request: 0,
        attempt,
        node,
        unchecked,
        unconfirmed: false,
    }
}
