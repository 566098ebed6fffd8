use stateright::{Model, Property};

use super::action::{Action, Reply};
use super::setup::Setup;
use super::state::{
    Asked, Belief, Binding, Client, Link, Node, Past, Phase, State, Step, Store, WORKERS,
};
use super::worker::Worker;
use super::{mishaps, moves, properties};

#[derive(Clone, Debug)]
pub(crate) struct Cluster(pub(crate) Setup);

impl Model for Cluster {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let setup = &self.0;
        let nodes = usize::from(setup.nodes);
        let node = |belief| Node {
            alive: true,
            certain: true,
            doubts: false,
            refuses: false,
            belief,
            cancels: false,
            task: None,
        };
        let mut all = vec![node(Belief::None); nodes];
        all[0] = node(Belief::Owner(1));
        vec![State {
            client: Client {
                phase: Phase::Waiting,
                attempt: 0,
                left: false,
                binding: Binding {
                    worker: 0,
                    incarnation: 0,
                    number: 0,
                },
                has_id: false,
                read: Vec::new(),
                json: Vec::new(),
                reply: Asked::No,
                also: Asked::No,
            },
            posts: Vec::new(),
            nodes: all,
            frames: Vec::new(),
            workers: [Worker::new(0); WORKERS as usize],
            store: Store {
                away: false,
                owner: 0,
                epoch: 1,
                claimed_lately: false,
                deleted: false,
                leases: vec![true; nodes],
                notes: vec![false; nodes],
                entry: None,
                written: false,
            },
            cuts: vec![0; nodes],
            past: Past::default(),
            mishaps: setup.mishaps,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        moves::progress(&self.0, state, actions);
        mishaps::possible(&self.0, state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        if is_mishap(&action) {
            state.disturb();
        }
        take(&self.0, &mut state, action);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all(&self.0)
    }
}

fn is_mishap(action: &Action) -> bool {
    match action {
        Action::BreakClient
        | Action::BreakEdge
        | Action::BreakLink(_)
        | Action::Cut(..)
        | Action::CrashNode(_)
        | Action::CrashWorker(_)
        | Action::Age(_)
        | Action::RefuseConnections(_)
        | Action::GiveUp(_)
        | Action::ArriveFull(_)
        | Action::Forget(_)
        | Action::Limit(_)
        | Action::HangUp
        | Action::PlanRefuses(_)
        | Action::PlanDisagrees(_)
        | Action::StoreAway
        | Action::QuietPasses => true,
        Action::Swap(_, reply)
        | Action::Arrive(_, reply)
        | Action::Rebind(_, reply)
        | Action::Answer(_, reply)
        | Action::Journal(_, reply)
        | Action::Write(_, reply)
        | Action::Append(_, reply)
        | Action::Close(_, reply) => *reply == Reply::Lost,
        _ => false,
    }
}

fn take(setup: &Setup, state: &mut State, action: Action) {
    match action {
        Action::Renew(node) => state.renew(setup, node),
        Action::AskAgain(node) => state.ask_again(setup, node),
        Action::Lapse(node) => state.store.leases[usize::from(node)] = false,
        Action::Look(node) => state.look(setup, node),
        Action::Swap(node, reply) => state.swap(setup, node, reply),
        Action::ReadJournal(node) => state.read_journal(setup, node),
        Action::Deliver(node) => state.deliver(setup, node),
        Action::Admit(post) => state.admit(setup, post),
        Action::SendBack(post) => state.send_back(setup, post),
        Action::SendBackUnsent(node) => state.send_back_unsent(setup, node),
        Action::Plan(node) => state.start_task(node),
        Action::PlanRefuses(node) => state.plan_refuses(setup, node),
        Action::PlanDisagrees(node) => state.plan_disagrees(setup, node),
        Action::Arrive(frame, reply) => state.arrive(setup, frame, false, reply),
        Action::ArriveFull(frame) => state.arrive(setup, frame, true, Reply::Arrives),
        Action::Lose(frame) => state.lose_frame(frame),
        Action::Produce(worker) => state.produce(setup, worker),
        Action::Receive(node) => state.receive(setup, node),
        Action::Superseded(node) => state.superseded(setup, node),
        Action::LosePatience(node) | Action::GiveUp(node) => state.lose_patience(node),
        Action::Rebind(node, reply) => state.rebind(setup, node, reply),
        Action::Answer(node, _) if state.task(node).step == Step::Logged => {
            state.answer_twice(node);
        }
        Action::Answer(node, reply) => state.answer(setup, node, reply),
        Action::Journal(node, reply) => state.journal(setup, node, reply),
        Action::Write(node, reply) => state.write(setup, node, reply),
        Action::Append(node, reply) => state.append(setup, node, reply),
        Action::Close(node, reply) => state.close(setup, node, reply),
        Action::AskWorker => state.ask_worker(setup),
        Action::Read => {
            let event = state.next_to_read().expect("there is one");
            state.read(event);
        }
        Action::Resume(node) => state.client.phase = Phase::Reading(node),
        Action::HearOfEnd => state.client.phase = Phase::Gone,
        Action::ReplyTo(node) => state.reply_to(setup, node),
        Action::Cancel(node) => state.cancel(setup, node),
        Action::PassCancel(node) => state.pass_cancel(node),
        Action::Delete(node) => state.delete(setup, node),
        Action::StoreBack => state.store.away = false,
        Action::QuietPasses => state.store.claimed_lately = false,
        Action::BreakClient => state.client.phase = Phase::Broken,
        Action::BreakEdge => state.break_edge(setup),
        Action::BreakLink(node) => {
            state.task_mut(node).link = Link::Unsent;
            state.break_link(setup, node);
        }
        Action::Cut(node, worker) => state.cut(node, worker),
        Action::CrashNode(node) => state.crash_node(node),
        Action::CrashWorker(worker) => state.crash_worker(worker),
        Action::Age(node) => {
            let aged = state.node_mut(node);
            aged.certain = false;
            // The node abandons a claim that takes longer than a lease.
            if let Belief::Claiming(..) = aged.belief {
                aged.belief = Belief::None;
            }
        }
        Action::RefuseConnections(node) => state.node_mut(node).refuses = true,
        Action::Forget(worker) => state.forget(worker),
        Action::Limit(post) => state.refuse(setup, post),
        Action::HangUp => state.hang_up(setup),
        Action::StoreAway => state.store.away = true,
    }
}
