//! What goes wrong: lapses, breaks and crashes.

use super::setup::Setup;
use super::state::{CallId, Event, Link, NodeId, Phase, Session, State, WorkerId};

impl State {
    /// A lease lapses. A node that is alive does not learn of it.
    pub(crate) fn lapse(&mut self, node: NodeId) {
        self.store.leases[usize::from(node)] = false;
        if self.nodes[usize::from(node)].alive {
            self.disturb();
        }
    }

    /// A node loses all that is volatile, and its edges lose it.
    pub(crate) fn crash_node(&mut self, node: NodeId) {
        self.disturb();
        let crashed = &mut self.nodes[usize::from(node)];
        crashed.alive = false;
        crashed.session = Session::None;
        for task in std::mem::take(&mut crashed.tasks) {
            self.leave_start(&task);
        }
        self.deliveries.retain(|delivery| delivery.node != node);
        for request in &mut self.requests {
            let is_here =
                request.phase == Phase::Delivering(node) || request.phase == Phase::Reading(node);
            if is_here {
                request.lose_node();
            }
        }
    }

    /// A worker loses its memory, and its id with it.
    pub(crate) fn crash_worker(&mut self, setup: &Setup, worker: WorkerId) {
        self.disturb();
        let crashed = &mut self.workers[usize::from(worker)];
        crashed.alive = false;
        crashed.horizon = None;
        for run in std::mem::take(&mut crashed.runs) {
            self.cut_links(setup, worker, run.call);
        }
    }

    /// Retention is over while a node may still be reading: it has to ask again.
    pub(crate) fn forget_and_cut(&mut self, setup: &Setup, worker: WorkerId, call: CallId) {
        self.disturb();
        self.forget(worker, call);
        self.cut_links(setup, worker, call);
    }

    /// A node loses its link; what it has sent may still arrive.
    pub(crate) fn break_link(&mut self, setup: &Setup, node: NodeId, call: CallId) {
        self.disturb();
        let mut task = self.task(node, call).expect("it drives the call").clone();
        self.leave_start(&task);
        self.relink(setup, &mut task);
        *self.task_mut(node, call) = task;
    }

    /// A node takes its worker for lost, which it is not.
    pub(crate) fn give_up(&mut self, node: NodeId, call: CallId) {
        self.disturb();
        let task = self.task(node, call).expect("it drives the call").clone();
        self.leave_start(&task);
        let task = self.task_mut(node, call);
        task.link = Link::Down;
        task.pending = Some(Event::Unknown);
    }

    /// The client's connection breaks.
    pub(crate) fn break_client(&mut self, request: u8) {
        self.disturb();
        self.requests[usize::from(request)].phase = Phase::Broken;
    }

    /// The edge loses its connection to the node, which goes on with what it got.
    pub(crate) fn break_edge(&mut self, request: u8) {
        self.disturb();
        self.requests[usize::from(request)].lose_node();
    }

    /// One thing less may go wrong.
    pub(crate) fn disturb(&mut self) {
        self.disturbances -= 1;
    }

    fn cut_links(&mut self, setup: &Setup, worker: WorkerId, call: CallId) {
        for node in 0..self.nodes.len() {
            let node = u8::try_from(node).expect("few nodes");
            let Some(task) = self.task(node, call) else {
                continue;
            };
            if task.worker == worker && task.link == Link::Up {
                let mut task = task.clone();
                self.relink(setup, &mut task);
                *self.task_mut(node, call) = task;
            }
        }
    }
}
