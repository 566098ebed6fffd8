//! Lists the steps that participants will take eventually (`progress`), and has helpers for the
//! list of `mishaps`.

use super::action::{Action, Reply};
use super::fault::Fault;
use super::setup::{Also, Setup, Tool};
use super::state::{
    Asked, Belief, Event, Frame, Link, NodeId, Phase, Post, State, Step, WORKERS, What,
};
use super::worker::Known;

pub(crate) fn progress(setup: &Setup, state: &State, actions: &mut Vec<Action>) {
    for node in state.node_ids() {
        leases_and_claims(setup, state, node, actions);
        drive(setup, state, node, actions);
    }
    for post in &state.posts {
        handle(setup, state, *post, actions);
    }
    for frame in distinct(&state.frames) {
        actions.push(Action::Arrive(frame, Reply::Arrives));
    }
    for worker in 0..WORKERS {
        let run = state.worker(worker).run();
        if run.is_some_and(|run| run.next(setup.tool).is_some()) {
            actions.push(Action::Produce(worker));
        }
    }
    if state.store.away {
        actions.push(Action::StoreBack);
    }
    client(setup, state, actions);
}

/// Identical frames lead to the same step.
pub(crate) fn distinct(frames: &[Frame]) -> impl Iterator<Item = Frame> {
    let mut last = None;
    frames.iter().filter_map(move |frame| {
        let is_new = last != Some(*frame);
        last = Some(*frame);
        is_new.then_some(*frame)
    })
}

fn leases_and_claims(setup: &Setup, state: &State, node: NodeId, actions: &mut Vec<Action>) {
    let index = usize::from(node);
    let has_lease = state.store.leases[index];
    let this = state.node(node);
    if has_lease && !this.certain {
        actions.push(Action::Lapse(node));
    }
    if !this.alive || state.store.away {
        return;
    }
    if !has_lease || !this.certain || state.store.notes[index] {
        actions.push(Action::Renew(node));
    }
    // A lease after the renewal, every claim on this node's session is complete or abandoned.
    let claimed = state
        .nodes
        .iter()
        .any(|other| matches!(other.belief, Belief::Claiming(owner, _) if owner == node));
    if this.doubts && this.certain && !claimed {
        actions.push(Action::AskAgain(node));
    }
    match this.belief {
        Belief::None if is_wanted(setup, state, node) && state.may_claim(setup, node) => {
            actions.push(Action::Look(node));
        }
        Belief::Claiming(..) => actions.push(Action::Swap(node, Reply::Arrives)),
        Belief::Fresh(_) => actions.push(Action::ReadJournal(node)),
        Belief::None | Belief::Owner(_) => {}
    }
}

/// Returns whether a node has a reason to own the session: a delivery, a client that resumes or asks, or a
/// search for orphans.
fn is_wanted(setup: &Setup, state: &State, node: NodeId) -> bool {
    if state.posts.iter().any(|post| post.node == node) {
        return true;
    }
    if setup.plants(Fault::ClaimForDeliveriesOnly) {
        return false;
    }
    let client = &state.client;
    let asks = setup.also != Also::Nothing && client.also == Asked::No;
    matches!(client.phase, Phase::Reading(_) | Phase::Broken)
        || (asks && client.phase != Phase::Answered)
}

fn drive(setup: &Setup, state: &State, node: NodeId, actions: &mut Vec<Action>) {
    let this = state.node(node);
    let Some(task) = &this.task else {
        return;
    };
    let stores = !state.store.away;
    if state.next_for(setup, node).is_some() {
        actions.push(Action::Receive(node));
    }
    let is_superseded = state.is_superseded(node);
    if is_superseded && task.pending.is_none() {
        actions.push(Action::Superseded(node));
    }
    if task.cancel && task.link == Link::Up && !is_superseded {
        actions.push(Action::PassCancel(node));
    }
    if task.link == Link::Planning {
        actions.push(Action::Plan(node));
    } else if state.may_rebind(setup, node) {
        if stores {
            actions.push(Action::Rebind(node, Reply::Arrives));
        }
    } else if task.link == Link::Unsent && state.is_cut(node, task.binding.worker) {
        actions.push(Action::SendBackUnsent(node));
    } else if task.link == Link::Away && task.pending.is_none() {
        actions.push(Action::LosePatience(node));
    }
    let twice = setup.plants(Fault::TwoExits)
        && task.step == Step::Logged
        && matches!(task.pending, Some(Event::Result(_)));
    let looks = task.pending == Some(Event::Unknown);
    if (state.may_answer(setup, task) && (stores || !looks)) || twice {
        actions.push(Action::Answer(node, Reply::Arrives));
    }
    if stores {
        actions.extend(store_step(setup, state, node, Reply::Arrives));
    }
}

fn store_step(setup: &Setup, state: &State, node: NodeId, reply: Reply) -> Option<Action> {
    let task = state.node(node).task.as_ref()?;
    let writes = matches!(task.pending, Some(Event::Write(_)));
    if state.may_journal(setup, task) {
        return Some(Action::Journal(node, reply));
    }
    match (task.step, task.pending) {
        (_, Some(_)) if writes => Some(Action::Write(node, reply)),
        (Step::Logged, Some(_)) => Some(Action::Append(node, reply)),
        (Step::Closing, _) => Some(Action::Close(node, reply)),
        _ => None,
    }
}

fn handle(setup: &Setup, state: &State, post: Post, actions: &mut Vec<Action>) {
    let node = state.node(post.node);
    match node.belief {
        Belief::Owner(_) if node.certain || setup.plants(Fault::ZombieAdmits) => {
            let closing = |step| step == Step::Closing;
            let waits = node.task.as_ref().is_some_and(|task| closing(task.step));
            let looks = post.repeated && node.task.is_none() && state.store.away;
            if !waits && !looks {
                actions.push(Action::Admit(post));
            }
        }
        Belief::None => {
            let elsewhere = state.store.owner != post.node && !state.may_claim(setup, post.node);
            let stands = state.store.leases[usize::from(post.node)];
            if !state.store.away && (state.store.deleted || (elsewhere && stands)) {
                actions.push(Action::SendBack(post));
            }
        }
        Belief::Owner(_) | Belief::Claiming(..) | Belief::Fresh(_) => {}
    }
}

fn takes(setup: &Setup, state: &State, node: NodeId) -> bool {
    let this = state.node(node);
    let finds = match this.belief {
        Belief::None => {
            state.store.owner == node || state.may_claim(setup, node) || state.store.deleted
        }
        Belief::Claiming(..) | Belief::Fresh(_) | Belief::Owner(_) => true,
    };
    this.alive && finds
}

fn client(setup: &Setup, state: &State, actions: &mut Vec<Action>) {
    let client = &state.client;
    if setup.edge_asks && client.phase == Phase::Waiting && state.worker_tells(setup) {
        actions.push(Action::AskWorker);
    }
    for node in state.node_ids().filter(|node| state.node(*node).alive) {
        match client.phase {
            Phase::Waiting if takes(setup, state, node) => actions.push(Action::Deliver(node)),
            Phase::Broken => actions.push(Action::Resume(node)),
            _ => {}
        }
        let serves = state.believes(node) && state.node(node).certain;
        if serves {
            requests(setup, state, node, actions);
        }
    }
    if matches!(client.phase, Phase::Reading(_) | Phase::Broken) && state.store.deleted {
        actions.push(Action::HearOfEnd);
    }
    if matches!(client.phase, Phase::Reading(_))
        && !state.store.away
        && state.next_to_read().is_some()
    {
        actions.push(Action::Read);
    }
}

fn requests(setup: &Setup, state: &State, node: NodeId, actions: &mut Vec<Action>) {
    let client = &state.client;
    let reads = matches!(client.phase, Phase::Reading(_) | Phase::Broken);
    let up = |link| link == Link::Up;
    let is_up = state
        .node(node)
        .task
        .as_ref()
        .is_some_and(|task| up(task.link));
    if setup.tool == Tool::Asks
        && client.reply == Asked::No
        && state.is_asked()
        && reads
        && is_up
        && !state.is_superseded(node)
    {
        actions.push(Action::ReplyTo(node));
    }
    if client.also != Asked::No || client.phase == Phase::Answered {
        return;
    }
    match setup.also {
        Also::Nothing => {}
        Also::Cancel => actions.push(Action::Cancel(node)),
        Also::Delete if client.has_id || state.store.away || client.phase == Phase::Gone => {}
        Also::Delete => actions.push(Action::Delete(node)),
    }
}

pub(crate) fn lost_step(setup: &Setup, state: &State, node: NodeId) -> Option<Action> {
    if state.store.away || state.node(node).task.is_none() {
        return None;
    }
    if state.may_rebind(setup, node) {
        return Some(Action::Rebind(node, Reply::Lost));
    }
    store_step(setup, state, node, Reply::Lost)
}

pub(crate) fn may_be_full(state: &State, frame: Frame) -> bool {
    let is_start = frame.what == What::Start { attach_only: false };
    let worker = state.worker(frame.binding.worker);
    is_start && worker.known == Known::Nothing && worker.is_bound(frame.binding)
}

pub(crate) fn is_awaited(state: &State, frame: Frame) -> bool {
    let node = state.node(frame.node);
    let holds = matches!(node.belief, Belief::Owner(epoch) if epoch == frame.epoch);
    match frame.what {
        What::Start { .. } => {
            let waits = node
                .task
                .as_ref()
                .is_some_and(|task| task.link == Link::Starting && task.binding == frame.binding);
            holds && waits
        }
        What::Input => state.client.reply == Asked::At(frame.node),
        What::Free(_) | What::Cancel | What::EndSession => false,
    }
}
