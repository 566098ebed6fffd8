//! Which actions a state allows.
//!
//! They come in two kinds. *Progress* happens sooner or later wherever it stays possible: that is what
//! fairness means here. *Trouble* may or may not happen, and only as often as the setup allows.

use super::action::{Action, Reply};
use super::setup::{Fault, Setup};
use super::state::{CallId, Delivery, Link, NodeId, Phase, Request, Session, State, WorkerId};

/// What happens if nothing goes wrong any more.
pub(crate) fn progress(setup: &Setup, state: &State, actions: &mut Vec<Action>) {
    for node in node_ids(state) {
        leases_and_claims(setup, state, node, actions);
        for task in &state.nodes[usize::from(node)].tasks {
            let is_idle = task.pending.is_none();
            if is_idle && matches!(task.link, Link::Attaching | Link::Starting) {
                actions.push(Action::Arrive(node, task.call));
            }
            let event = state.event_after(task.worker, task.call, task.seen);
            if is_idle && task.link == Link::Up && event.is_some() {
                actions.push(Action::Receive(node, task.call));
            }
            if !is_idle {
                actions.push(Action::Append(node, task.call, Reply::Arrives));
            }
        }
    }
    for delivery in &state.deliveries {
        handling(setup, state, *delivery, actions);
    }
    for stray in &state.strays {
        actions.push(Action::ArriveStray(*stray));
    }
    for (worker, call, produced) in runs(state) {
        if produced < 2 {
            actions.push(Action::Produce(worker, call));
        }
    }
    requests(state, actions);
}

fn leases_and_claims(setup: &Setup, state: &State, node: NodeId, actions: &mut Vec<Action>) {
    let has_lease = state.store.leases[usize::from(node)];
    let this = &state.nodes[usize::from(node)];
    if !this.alive {
        if has_lease {
            actions.push(Action::Lapse(node));
        }
        return;
    }
    if !has_lease {
        actions.push(Action::Renew(node));
    }
    // Whatever brings a node to claim (a delivery, a client that resumes, a search for orphans), it comes
    // sooner or later while a client has not got an answer from its stream.
    let is_wanted = match setup.plants(Fault::ClaimForDeliveriesOnly) {
        true => state
            .deliveries
            .iter()
            .any(|delivery| delivery.node == node),
        false => !state.requests.iter().all(Request::has_answer),
    };
    match this.session {
        Session::None if is_wanted && state.store.is_claimable_by(node) => {
            actions.push(Action::ReadOwner(node));
        }
        Session::Claiming(..) => actions.push(Action::SwapOwner(node, Reply::Arrives)),
        Session::Fresh(_) => actions.push(Action::ReadJournal(node)),
        Session::None | Session::Active(_) => {}
    }
}

fn handling(setup: &Setup, state: &State, delivery: Delivery, actions: &mut Vec<Action>) {
    match state.nodes[usize::from(delivery.node)].session {
        Session::Active(_) => {
            if delivery.unchecked && setup.plants(Fault::CheckApartFromBegin) {
                actions.push(Action::LookUp(delivery));
            } else {
                actions.push(Action::Begin(delivery, Reply::Arrives));
            }
        }
        Session::None => {
            let owner = state.store.owner;
            if owner != delivery.node && state.store.leases[usize::from(owner)] {
                actions.push(Action::Refuse(delivery));
            }
        }
        Session::Claiming(..) | Session::Fresh(_) => {}
    }
}

fn requests(state: &State, actions: &mut Vec<Action>) {
    let owner = state.store.owner;
    let is_owned = state.store.leases[usize::from(owner)];
    for (id, request) in (0..).zip(&state.requests) {
        for node in node_ids(state).filter(|node| state.nodes[usize::from(*node)].alive) {
            match request.phase {
                Phase::Waiting if !is_owned || owner == node => {
                    actions.push(Action::Deliver(id, node));
                }
                Phase::Broken => actions.push(Action::Resume(id, node)),
                _ => {}
            }
        }
        // A reader polls or is woken; either way it looks into the log, at whatever node.
        if matches!(request.phase, Phase::Reading(_)) && state.next_event(id).is_some() {
            actions.push(Action::Read(id));
        }
    }
}

/// What may go wrong, and what may happen late or never.
pub(crate) fn trouble(setup: &Setup, state: &State, actions: &mut Vec<Action>) {
    for stray in &state.strays {
        actions.push(Action::LoseStray(*stray));
    }
    if state.disturbances == 0 {
        return;
    }
    let alive = node_ids(state).filter(|node| state.nodes[usize::from(*node)].alive);
    let alive: Vec<NodeId> = alive.collect();
    for node in &alive {
        node_trouble(state, *node, alive.len() > 1, actions);
    }
    for delivery in &state.deliveries {
        let mut handled = Vec::new();
        handling(setup, state, *delivery, &mut handled);
        if matches!(handled[..], [Action::Begin(..)]) {
            actions.push(Action::Begin(*delivery, Reply::Lost));
            if delivery.unconfirmed && !is_driven(state, *delivery) {
                actions.push(Action::Withdraw(*delivery));
            }
        }
    }
    for (worker, call, produced) in runs(state) {
        if produced == 2 {
            actions.push(Action::Forget(worker, call));
        }
    }
    if state.workers.iter().filter(|worker| worker.alive).count() > 1 {
        for (id, worker) in (0..).zip(&state.workers) {
            if worker.alive {
                actions.push(Action::CrashWorker(id));
            }
        }
    }
    for (id, request) in (0..).zip(&state.requests) {
        if request.is_answered() {
            continue;
        }
        match request.phase {
            Phase::Delivering(_) => actions.push(Action::BreakEdge(id)),
            Phase::Reading(_) => {
                actions.extend([Action::BreakEdge(id), Action::BreakClient(id)]);
            }
            Phase::Waiting | Phase::Broken | Phase::Rejected => {}
        }
    }
}

fn node_trouble(state: &State, node: NodeId, is_spare: bool, actions: &mut Vec<Action>) {
    let this = &state.nodes[usize::from(node)];
    if is_spare {
        actions.push(Action::CrashNode(node));
    }
    if state.store.leases[usize::from(node)] {
        actions.push(Action::Lapse(node));
    }
    if matches!(this.session, Session::Claiming(..)) {
        actions.push(Action::SwapOwner(node, Reply::Lost));
    }
    for task in &this.tasks {
        if task.pending.is_some() {
            actions.push(Action::Append(node, task.call, Reply::Lost));
        } else {
            actions.push(Action::GiveUp(node, task.call));
        }
        if matches!(task.link, Link::Up | Link::Starting) {
            actions.push(Action::BreakLink(node, task.call));
        }
    }
}

/// Whether the node knows that it has begun the call, from another delivery.
fn is_driven(state: &State, delivery: Delivery) -> bool {
    let call = state.store.find(delivery.request);
    call.is_some_and(|call| state.task(delivery.node, call).is_some())
}

fn node_ids(state: &State) -> impl Iterator<Item = NodeId> + use<> {
    0..u8::try_from(state.nodes.len()).expect("few nodes")
}

fn runs(state: &State) -> impl Iterator<Item = (WorkerId, CallId, u8)> {
    let workers = (0..).zip(&state.workers);
    workers.flat_map(|(id, worker)| worker.runs.iter().map(move |r| (id, r.call, r.produced)))
}
