//! The modelled cluster, as stateright sees it.

use stateright::{Model, Property};

use super::action::{Action, Reply};
use super::setup::Setup;
use super::state::{Node, Phase, Request, Session, State, Store, Worker};
use super::{moves, properties};

/// A cluster within the bounds of a setup.
#[derive(Clone, Debug)]
pub(crate) struct Cluster(pub(crate) Setup);

impl Model for Cluster {
    type State = State;
    type Action = Action;

    /// A session that the first node owns, and requests that the client has just sent.
    fn init_states(&self) -> Vec<State> {
        let setup = &self.0;
        let node = |session| Node {
            alive: true,
            session,
            tasks: Vec::new(),
        };
        let worker = Worker {
            alive: true,
            runs: Vec::new(),
            horizon: None,
        };
        let request = Request {
            phase: Phase::Waiting,
            attempt: 0,
            cursor: None,
            seen: Vec::new(),
        };
        let mut nodes = vec![node(Session::None); usize::from(setup.nodes)];
        nodes[0] = node(Session::Active(1));
        vec![State {
            store: Store {
                owner: 0,
                epoch: 1,
                leases: vec![true; usize::from(setup.nodes)],
                streams: Vec::new(),
                regressed: false,
            },
            nodes,
            workers: vec![worker; usize::from(setup.workers)],
            requests: vec![request; usize::from(setup.requests)],
            deliveries: Vec::new(),
            strays: Vec::new(),
            executions: Vec::new(),
            disturbances: setup.disturbances,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        moves::progress(&self.0, state, actions);
        moves::trouble(&self.0, state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let setup = &self.0;
        let mut state = last.clone();
        match action {
            Action::Lapse(node) => state.lapse(node),
            Action::Renew(node) => state.renew(setup, node),
            Action::ReadOwner(node) => state.read_owner(node),
            Action::SwapOwner(node, reply) => {
                state.spend(reply);
                state.swap_owner(setup, node, reply);
            }
            Action::ReadJournal(node) => state.read_journal(setup, node),
            Action::Deliver(request, node) => state.deliver(request, node),
            Action::LookUp(delivery) => match state.store.find(delivery.request) {
                Some(call) => state.find_again(setup, delivery, call),
                None => state.check_off(delivery),
            },
            Action::Begin(delivery, reply) => {
                state.spend(reply);
                state.begin(setup, delivery, reply);
            }
            Action::Withdraw(delivery) => state.withdraw(setup, delivery),
            Action::Refuse(delivery) => state.refuse(delivery),
            Action::Arrive(node, call) => state.arrive(setup, node, call),
            Action::ArriveStray(stray) => {
                state.strays.retain(|other| *other != stray);
                state.start(setup, stray.worker, stray.call);
            }
            Action::LoseStray(stray) => state.strays.retain(|other| *other != stray),
            Action::Produce(worker, call) => state.produce(worker, call),
            Action::Receive(node, call) => state.receive(setup, node, call),
            Action::Append(node, call, reply) => {
                state.spend(reply);
                state.append(setup, node, call, reply);
            }
            Action::Read(request) => {
                let event = state.next_event(request).expect("there is one");
                state.requests[usize::from(request)].get(event);
            }
            Action::Resume(request, node) => {
                state.requests[usize::from(request)].phase = Phase::Reading(node);
            }
            Action::BreakClient(request) => state.break_client(request),
            Action::BreakEdge(request) => state.break_edge(request),
            Action::BreakLink(node, call) => state.break_link(setup, node, call),
            Action::GiveUp(node, call) => state.give_up(node, call),
            Action::Forget(worker, call) => state.forget_and_cut(setup, worker, call),
            Action::CrashNode(node) => state.crash_node(node),
            Action::CrashWorker(worker) => state.crash_worker(setup, worker),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all(&self.0)
    }
}

impl State {
    fn spend(&mut self, reply: Reply) {
        if reply == Reply::Lost {
            self.disturb();
        }
    }
}
