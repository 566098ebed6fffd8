//! How a node comes to own the session, and how it ceases to.

use super::action::Reply;
use super::setup::{Fault, Setup};
use super::state::{CallId, Link, NodeId, Session, State, Task};

impl State {
    /// A renewal of a lease that had lapsed. Another node may have claimed meanwhile, or be about to, and
    /// no refused write tells a node that drives no call; so it starts from nothing, as after a crash, and
    /// has to claim again what it needs.
    pub(crate) fn renew(&mut self, setup: &Setup, node: NodeId) {
        self.store.leases[usize::from(node)] = true;
        let believed = self.nodes[usize::from(node)].session;
        let is_held = believed == Session::Active(self.store.epoch);
        let is_kept =
            setup.plants(Fault::KeepAfterLapse) || (setup.plants(Fault::AskAfterLapse) && is_held);
        if !is_kept {
            self.step_down(node);
        }
    }

    /// The first half of a claim.
    pub(crate) fn read_owner(&mut self, node: NodeId) {
        self.nodes[usize::from(node)].session =
            Session::Claiming(self.store.owner, self.store.epoch);
    }

    /// The second half of a claim. A node that lost the race, or the reply, starts over.
    pub(crate) fn swap_owner(&mut self, setup: &Setup, node: NodeId, reply: Reply) {
        let Session::Claiming(owner, epoch) = self.nodes[usize::from(node)].session else {
            unreachable!("only a claim swaps");
        };
        let claimed = self.store.swap_owner(setup, node, (owner, epoch));
        self.nodes[usize::from(node)].session = match (claimed, reply) {
            (Ok(epoch), Reply::Arrives) => Session::Fresh(epoch),
            _ => Session::None,
        };
    }

    /// A new owner takes up every running call.
    pub(crate) fn read_journal(&mut self, setup: &Setup, node: NodeId) {
        let Session::Fresh(epoch) = self.nodes[usize::from(node)].session else {
            unreachable!("only a new owner reads the journal");
        };
        if self.store.admit_reader(setup, epoch).is_err() {
            self.step_down(node);
            return;
        }
        self.nodes[usize::from(node)].session = Session::Active(epoch);
        for call in 0..self.executions.len() {
            let call = u8::try_from(call).expect("few calls");
            self.take_up(setup, node, call);
        }
    }

    /// Goes on with a journaled call where the log and the journal say that it stands.
    pub(crate) fn take_up(&mut self, setup: &Setup, node: NodeId, call: CallId) {
        let stream = &self.store.streams[usize::from(call)];
        if stream.ended || self.task(node, call).is_some() {
            return;
        }
        let mut task = Task {
            call,
            worker: stream.worker,
            link: Link::Attaching,
            after: u8::try_from(stream.events.len()).expect("few events"),
            seen: stream.seen,
            pending: None,
        };
        self.relink(setup, &mut task);
        self.add_task(node, task);
    }

    /// Forgets the session and its calls: another node owns it.
    pub(crate) fn step_down(&mut self, node: NodeId) {
        let node_state = &mut self.nodes[usize::from(node)];
        node_state.session = Session::None;
        for task in std::mem::take(&mut node_state.tasks) {
            self.leave_start(&task);
        }
        let here = self.deliveries.iter().filter(|d| d.node == node);
        for delivery in here.copied().collect::<Vec<_>>() {
            self.recheck(delivery, false);
        }
    }
}
