use super::fault::Fault;
use super::setup::Setup;
use super::state::{Belief, Link, NodeId, Phase, State, WorkerId};
use super::worker::Worker;

impl State {
    pub(crate) fn crash_node(&mut self, node: NodeId) {
        let crashed = self.node_mut(node);
        crashed.alive = false;
        crashed.certain = false;
        crashed.belief = Belief::None;
        crashed.doubts = false;
        let task = crashed.task.take();
        self.lose_requests(node, task.as_ref());
        self.posts.retain(|post| post.node != node);
        match self.client.phase {
            Phase::Delivered(at) if at == node => self.lose_node(),
            Phase::Reading(at) if at == node => self.client.phase = Phase::Broken,
            _ => {}
        }
    }

    pub(crate) fn crash_worker(&mut self, worker: WorkerId) {
        self.past.unknowable = true;
        let next = self.worker(worker).incarnation + 1;
        *self.worker_mut(worker) = Worker::new(next);
    }

    /// Frames that were sent before may still arrive.
    pub(crate) fn break_link(&mut self, setup: &Setup, node: NodeId) {
        if setup.plants(Fault::BlindRetry) {
            let other = 1 - self.task(node).binding.worker;
            self.task_mut(node).binding = self.bind(other);
        }
        self.start_task(node);
    }

    pub(crate) fn cut(&mut self, node: NodeId, worker: WorkerId) {
        self.cuts[usize::from(node)] |= 1 << worker;
        if let Some(task) = &mut self.node_mut(node).task
            && task.binding.worker == worker
            && matches!(task.link, Link::Starting | Link::Up)
        {
            task.link = Link::Away;
        }
    }

    pub(crate) fn break_edge(&mut self, setup: &Setup) {
        match self.client.phase {
            Phase::Delivered(node) => {
                self.drop_delivery(setup, node);
                self.lose_node();
            }
            Phase::Reading(_) => self.client.phase = Phase::Broken,
            other => unreachable!("{other:?} needs no node"),
        }
    }

    pub(crate) fn hang_up(&mut self, setup: &Setup) {
        if let Phase::Delivered(node) = self.client.phase {
            self.drop_delivery(setup, node);
        }
        // If no node has the call, its cancellation is lost, because no further delivery can bring
        // the call to a node that knows of the cancellation.
        self.past.cancel_lost |= self.nodes.iter().all(|node| node.task.is_none());
        self.client.phase = Phase::Gone;
    }
}
