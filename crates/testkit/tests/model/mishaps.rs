use super::action::{Action, Reply};
use super::fault::Fault;
use super::moves;
use super::setup::{Setup, Trouble};
use super::state::{Belief, Event, Link, NodeId, Phase, State, WORKERS, What};

pub(crate) fn possible(setup: &Setup, state: &State, actions: &mut Vec<Action>) {
    for frame in moves::distinct(&state.frames) {
        if !moves::is_awaited(state, frame) {
            actions.push(Action::Lose(frame));
        }
    }
    if state.mishaps == 0 {
        return;
    }
    let alive = state.node_ids().filter(|node| state.node(*node).alive);
    let alive: Vec<NodeId> = alive.collect();
    for node in &alive {
        of_node(setup, state, *node, alive.len() > 1, actions);
    }
    for post in &state.posts {
        let node = state.node(post.node);
        let admits = matches!(node.belief, Belief::Owner(_)) && node.certain && node.task.is_none();
        // Limits do not apply to repetitions.
        let meets = !post.repeated
            || setup.plants(Fault::RepetitionsMeetLimits)
            || setup.plants(Fault::FinalRefusalPassedOn);
        if setup.has(Trouble::Limit) && admits && meets {
            actions.push(Action::Limit(*post));
        }
    }
    for frame in moves::distinct(&state.frames) {
        if setup.has(Trouble::Full) && moves::may_be_full(state, frame) {
            actions.push(Action::ArriveFull(frame));
        }
        let is_start = matches!(frame.what, What::Start { .. });
        if setup.has(Trouble::LoseReply) && is_start && moves::is_awaited(state, frame) {
            actions.push(Action::Arrive(frame, Reply::Lost));
        }
    }
    for worker in 0..WORKERS {
        let this = state.worker(worker);
        if setup.has(Trouble::CrashWorker) {
            actions.push(Action::CrashWorker(worker));
        }
        let runs = this.run().is_some_and(|run| !run.ended);
        if setup.has(Trouble::Forget) && !runs {
            actions.push(Action::Forget(worker));
        }
    }
    if setup.has(Trouble::StoreAway) && !state.store.away {
        actions.push(Action::StoreAway);
    }
    if setup.has(Trouble::RefuseConnections) && state.store.claimed_lately {
        actions.push(Action::QuietPasses);
    }
    of_client(setup, state, actions);
}

fn of_client(setup: &Setup, state: &State, actions: &mut Vec<Action>) {
    match state.client.phase {
        Phase::Delivered(_) if setup.has(Trouble::BreakEdge) => actions.push(Action::BreakEdge),
        Phase::Reading(_) if setup.has(Trouble::BreakClient) => actions.push(Action::BreakClient),
        _ => {}
    }
    let waits = matches!(state.client.phase, Phase::Delivered(_) | Phase::Waiting);
    if setup.has(Trouble::HangUp) && waits {
        actions.push(Action::HangUp);
    }
}

fn of_node(setup: &Setup, state: &State, node: NodeId, is_spare: bool, actions: &mut Vec<Action>) {
    let this = state.node(node);
    if setup.has(Trouble::CrashNode) && is_spare {
        actions.push(Action::CrashNode(node));
    }
    if setup.has(Trouble::Age) && this.certain {
        actions.push(Action::Age(node));
    }
    if setup.has(Trouble::RefuseConnections) && !this.refuses {
        actions.push(Action::RefuseConnections(node));
    }
    if setup.has(Trouble::Cut) {
        for worker in (0..WORKERS).filter(|worker| !state.is_cut(node, *worker)) {
            actions.push(Action::Cut(node, worker));
        }
    }
    if setup.has(Trouble::LoseReply) {
        if matches!(this.belief, Belief::Claiming(..)) && !state.store.away {
            actions.push(Action::Swap(node, Reply::Lost));
        }
        actions.extend(moves::lost_step(setup, state, node));
    }
    let Some(task) = &this.task else {
        return;
    };
    if setup.has(Trouble::LoseAnswer)
        && state.may_answer(setup, task)
        && task.pending.is_some_and(Event::is_workers)
        && task
            .waiter
            .is_some_and(|attempt| state.is_awaited(node, attempt))
    {
        actions.push(Action::Answer(node, Reply::Lost));
    }
    if task.link == Link::Planning {
        if setup.has(Trouble::PlanRefuses) {
            actions.push(Action::PlanRefuses(node));
        }
        if setup.has(Trouble::PlanDisagrees) {
            actions.push(Action::PlanDisagrees(node));
        }
    }
    let sent = matches!(task.link, Link::Up | Link::Starting) && task.pending.is_none();
    if setup.has(Trouble::BreakLink) && sent {
        actions.push(Action::BreakLink(node));
    }
    if setup.has(Trouble::GiveUp) && sent {
        actions.push(Action::GiveUp(node));
    }
}
