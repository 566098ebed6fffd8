//! How a node that owns the session, or believes so, drives its calls.

use super::action::Reply;
use super::setup::{Fault, Setup};
use super::state::{
    CallId, Cursor, Delivery, Epoch, Event, Link, NodeId, Phase, Session, State, Stray, Task,
};
use super::store::{Append, Begun, Refused, Withdrawn};
use super::worker::Started;

impl State {
    /// Begins the call of a delivery, and only then starts it.
    pub(crate) fn begin(&mut self, setup: &Setup, delivery: Delivery, reply: Reply) {
        let node = delivery.node;
        let alive = self.workers.iter().position(|worker| worker.alive);
        let worker = u8::try_from(alive.expect("a worker is left")).expect("few workers");
        let epoch = self.epoch_of(node);
        match self.store.begin(setup, epoch, delivery.request, worker) {
            Err(Refused) => self.step_down(node),
            Ok(Begun::Before(call)) if reply == Reply::Arrives => {
                self.find_again(setup, delivery, call);
            }
            Ok(Begun::New(call)) => {
                self.executions.push(0);
                if reply == Reply::Arrives {
                    self.add_task(
                        node,
                        Task {
                            call,
                            worker,
                            link: Link::Starting,
                            after: 0,
                            seen: 0,
                            pending: None,
                        },
                    );
                    self.answer_delivery(delivery, call);
                } else {
                    // The node tries again, and whoever tries again has to look first.
                    self.recheck(delivery, true);
                }
            }
            Ok(Begun::Before(_)) => {}
        }
    }

    /// A delivery has begun its call before: the client reads that stream. The call may be one that this
    /// node began without learning of it, so nobody may be driving it yet.
    pub(crate) fn find_again(&mut self, setup: &Setup, delivery: Delivery, call: CallId) {
        if self.store.streams[usize::from(call)].withdrawn {
            self.reject(delivery);
            return;
        }
        if !setup.plants(Fault::FindOnly) {
            self.take_up(setup, delivery.node, call);
        }
        self.answer_delivery(delivery, call);
    }

    /// Gives up a begin that was not confirmed. The client hears of it only when no later owner can find
    /// the call in the journal and start it.
    pub(crate) fn withdraw(&mut self, setup: &Setup, delivery: Delivery) {
        self.disturb();
        let call = self.store.find(delivery.request);
        let call = call.expect("it has begun one");
        let epoch = self.epoch_of(delivery.node);
        if setup.plants(Fault::RejectBeforeWithdrawal) {
            self.reject(delivery);
            return;
        }
        match self.store.withdraw(setup, epoch, call) {
            Ok(Withdrawn::Yes) => self.reject(delivery),
            Ok(Withdrawn::TooLate) => self.find_again(setup, delivery, call),
            Err(Refused) => self.step_down(delivery.node),
        }
    }

    /// A task's attach or start reaches its worker.
    pub(crate) fn arrive(&mut self, setup: &Setup, node: NodeId, call: CallId) {
        let task = self.task(node, call).expect("it drives the call").clone();
        let is_alive = self.workers[usize::from(task.worker)].alive;
        let link = match task.link {
            Link::Attaching if self.run(task.worker, call).is_some() => Link::Up,
            // At the same worker, which alone knows whether it ever got the first start.
            Link::Attaching if is_alive => Link::Starting,
            Link::Starting if self.start(setup, task.worker, call) == Started::Known => Link::Up,
            _ => Link::Down,
        };
        let task = self.task_mut(node, call);
        task.link = link;
        if link == Link::Down {
            task.pending = Some(Event::Unknown);
        }
    }

    /// The worker's next event reaches the node.
    pub(crate) fn receive(&mut self, setup: &Setup, node: NodeId, call: CallId) {
        let task = self.task(node, call).expect("it drives the call").clone();
        let event = self.event_after(task.worker, call, task.seen);
        self.task_mut(node, call).pending = event;
        if setup.plants(Fault::SendBeforeAppend) {
            self.push(node, call, task.after, event.expect("there is one"));
        }
    }

    /// Appends what was received, and then sends it.
    pub(crate) fn append(&mut self, setup: &Setup, node: NodeId, call: CallId, reply: Reply) {
        let task = self.task(node, call).expect("it drives the call").clone();
        let event = task.pending.expect("it has received one");
        let append = Append {
            call,
            after: task.after,
            event,
            seen: task.seen + u8::from(event.is_workers()),
        };
        if self
            .store
            .append(setup, self.epoch_of(node), append)
            .is_err()
        {
            self.step_down(node);
            return;
        }
        if reply == Reply::Lost {
            if setup.plants(Fault::AbandonedAppend) {
                self.task_mut(node, call).pending = Some(Event::Unknown);
            }
            return;
        }
        let next = self.task_mut(node, call);
        next.after += 1;
        next.seen = append.seen;
        next.pending = None;
        if event.is_answer() {
            let tasks = &mut self.nodes[usize::from(node)].tasks;
            tasks.retain(|task| task.call != call);
        }
        self.push(node, call, task.after, event);
    }

    /// Hands an event to the client if it reads this stream through this node and has all before it.
    fn push(&mut self, node: NodeId, call: CallId, after: u8, event: Event) {
        let at = Cursor {
            stream: call,
            position: after,
        };
        for request in &mut self.requests {
            if request.phase == Phase::Reading(node) && request.cursor == Some(at) {
                request.get(event);
            }
        }
    }

    /// What a task has sent may arrive after the task is gone.
    pub(crate) fn leave_start(&mut self, task: &Task) {
        let stray = Stray {
            call: task.call,
            worker: task.worker,
        };
        if task.link == Link::Starting && !self.strays.contains(&stray) {
            self.strays.push(stray);
            self.strays.sort_unstable();
        }
    }

    /// Looks for the call again: at the worker that the journal names.
    pub(crate) fn relink(&self, setup: &Setup, task: &mut Task) {
        task.link = Link::Attaching;
        if setup.plants(Fault::BlindRetry) {
            let workers = u8::try_from(self.workers.len()).expect("few workers");
            task.worker = (task.worker + 1) % workers;
            task.link = Link::Starting;
        }
    }

    /// The epoch that the node writes with.
    pub(crate) fn epoch_of(&self, node: NodeId) -> Epoch {
        match self.nodes[usize::from(node)].session {
            Session::Active(epoch) => epoch,
            other => unreachable!("{other:?} does not write"),
        }
    }

    pub(crate) fn task(&self, node: NodeId, call: CallId) -> Option<&Task> {
        let tasks = &self.nodes[usize::from(node)].tasks;
        tasks.iter().find(|task| task.call == call)
    }

    pub(crate) fn task_mut(&mut self, node: NodeId, call: CallId) -> &mut Task {
        let tasks = &mut self.nodes[usize::from(node)].tasks;
        let task = tasks.iter_mut().find(|task| task.call == call);
        task.expect("it drives the call")
    }

    pub(crate) fn add_task(&mut self, node: NodeId, task: Task) {
        let tasks = &mut self.nodes[usize::from(node)].tasks;
        tasks.push(task);
        tasks.sort_unstable_by_key(|task| task.call);
    }
}
