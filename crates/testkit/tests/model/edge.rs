use super::fault::Fault;
use super::ownership::frame;
use super::setup::{Setup, Way};
use super::state::{
    Asked, Belief, Event, Link, NodeId, Phase, Post, State, Step, Task, WORKERS, What,
};
use super::worker::Known;

impl State {
    pub(crate) fn deliver(&mut self, setup: &Setup, node: NodeId) {
        let client = &mut self.client;
        client.phase = Phase::Delivered(node);
        self.posts.push(Post {
            node,
            attempt: client.attempt,
            repeated: client.left,
            binding: client.binding,
        });
        self.posts.sort_unstable();
        if setup.way == Way::SingleStream && setup.plants(Fault::AcceptedBeforeLog) {
            self.give_id(node);
        }
    }

    pub(crate) fn lose_node(&mut self) {
        self.client.phase = Phase::Waiting;
        self.client.attempt += 1;
        self.client.left = true;
    }

    pub(crate) fn is_awaited(&self, node: NodeId, attempt: u8) -> bool {
        self.client.phase == Phase::Delivered(node) && self.client.attempt == attempt
    }

    fn take_post(&mut self, post: Post) {
        let at = self.posts.iter().position(|other| *other == post);
        self.posts.remove(at.expect("it is on its way"));
    }

    /// The edge tries another node, because no worker has the request. If the session was deleted,
    /// refuses the request.
    pub(crate) fn send_back(&mut self, setup: &Setup, post: Post) {
        if self.store.deleted {
            return self.refuse(setup, post);
        }
        self.take_post(post);
        if self.is_awaited(post.node, post.attempt) {
            self.client.phase = Phase::Waiting;
        }
    }

    /// If the request is a repetition, the outcome is unknown, because the call may have run.
    pub(crate) fn refuse(&mut self, setup: &Setup, post: Post) {
        self.take_post(post);
        if !self.is_awaited(post.node, post.attempt) {
            return;
        }
        if post.repeated && !setup.plants(Fault::FinalRefusalPassedOn) {
            self.past.unknowable |= self.store.deleted;
            self.answer_json(Event::Unknown);
        } else {
            self.answer_json(Event::NotExecuted);
        }
    }

    pub(crate) fn answer_json(&mut self, answer: Event) {
        self.client.json.push(answer);
        self.client.phase = Phase::Answered;
    }

    pub(crate) fn give_id(&mut self, node: NodeId) {
        self.client.has_id = true;
        self.client.phase = Phase::Reading(node);
    }

    /// Looks for the call: in memory, then in the log if the delivery is a repetition, then at the worker.
    pub(crate) fn admit(&mut self, setup: &Setup, post: Post) {
        let node = post.node;
        self.past.admitted_uncertain |= !self.node(node).certain;
        if self.store.deleted && self.epoch_of(node) == self.store.epoch {
            return self.refuse(setup, post);
        }
        self.take_post(post);
        let waits = self.is_awaited(node, post.attempt).then_some(post.attempt);
        if let Some(task) = &mut self.node_mut(node).task {
            task.waiter = task.waiter.max(waits);
            task.repeated |= post.repeated;
            if task.step == Step::Logged {
                self.tell_id(node);
            }
            return;
        }
        let looks = post.repeated && !setup.plants(Fault::NoLookUp);
        if looks && let Some(entry) = &self.store.entry {
            if !entry.ended {
                self.take_up(setup, node);
            } else if waits.is_some() && setup.plants(Fault::OneStreamUnread) {
                return self.answer_json(Event::Unknown);
            }
            if waits.is_some() {
                self.give_id(node);
            }
            return;
        }
        let mut task = Task {
            waiter: waits,
            repeated: post.repeated,
            ..Task::new(post.binding)
        };
        task.cancel = std::mem::take(&mut self.node_mut(node).cancels);
        task.attach_only = task.cancel;
        if setup.plans() {
            task.link = Link::Planning;
        }
        self.node_mut(node).task = Some(task);
        if setup.way == Way::Hold && !setup.plans() {
            self.start_task(node);
        }
    }

    /// Refuses the call if the delivery is the first. A repetition only attaches to the call at the
    /// worker, because an earlier owner may have allowed the call. The worker either has the call,
    /// or refuses it for good.
    pub(crate) fn plan_refuses(&mut self, setup: &Setup, node: NodeId) {
        let believed = setup.plants(Fault::RefusedRepetitionBelieved);
        if self.task(node).repeated && !believed {
            return self.attach_only(node);
        }
        let task = self.node_mut(node).task.take().expect("it plans the call");
        self.lose_requests(node, Some(&task));
        if let Some(attempt) = task.waiter
            && self.is_awaited(node, attempt)
        {
            self.answer_json(Event::NotExecuted);
        }
    }

    /// Does not start the call, because the owner has checked the rules for another pool than the
    /// worker's. If the delivery is the call's first, the edge draws another worker.
    pub(crate) fn plan_disagrees(&mut self, setup: &Setup, node: NodeId) {
        let repeated = self.task(node).repeated;
        let elsewhere = match repeated {
            true => setup.plants(Fault::DisagreementStartsElsewhere),
            false => setup.plants(Fault::FirstStartsElsewhere),
        };
        if elsewhere {
            let other = 1 - self.task(node).binding.worker;
            self.task_mut(node).binding = self.bind(other);
            return self.start_task(node);
        }
        match repeated {
            true => self.attach_only(node),
            false => self.send_back_unsent(setup, node),
        }
    }

    fn attach_only(&mut self, node: NodeId) {
        let task = self.task_mut(node);
        task.attach_only = true;
        task.denied = true;
        task.link = Link::Unsent;
        self.start_task(node);
    }

    pub(crate) fn tell_id(&mut self, node: NodeId) {
        let waiter = self.task_mut(node).waiter.take();
        if let Some(attempt) = waiter
            && self.is_awaited(node, attempt)
        {
            self.give_id(node);
        }
    }

    /// Drops a delivery whose edge is gone. The call stays with its owner.
    pub(crate) fn drop_delivery(&mut self, setup: &Setup, node: NodeId) {
        let attempt = self.client.attempt;
        let Some(task) = &mut self.node_mut(node).task else {
            return;
        };
        if task.waiter != Some(attempt) {
            return;
        }
        task.waiter = None;
        let (binding, held) = (task.binding, task.step == Step::Hold);
        let epoch = self.epoch_of(node);
        if setup.plants(Fault::DroppedIsForgotten) && held {
            self.node_mut(node).task = None;
        }
        if setup.plants(Fault::DroppedIsCancelled) {
            self.send(frame(binding, node, epoch, What::Cancel));
        }
    }

    /// If nothing can have been sent, the edge binds the call again. Otherwise the outcome is
    /// unknown.
    pub(crate) fn send_back_unsent(&mut self, setup: &Setup, node: NodeId) {
        let task = self.node_mut(node).task.take().expect("it has the call");
        self.lose_requests(node, Some(&task));
        if !task
            .waiter
            .is_some_and(|attempt| self.is_awaited(node, attempt))
        {
            return;
        }
        let next = 1 - task.binding.worker;
        let is_unsent = !self.client.left || setup.plants(Fault::EdgeBindsAnewAfterSending);
        if self.client.binding.worker == 0 && is_unsent {
            self.client.binding = self.bind(next);
            self.client.phase = Phase::Waiting;
        } else if self.client.left {
            self.past.unknowable = true;
            self.answer_json(Event::Unknown);
        } else {
            self.answer_json(Event::NotExecuted);
        }
    }

    /// Returns whether the edge gets an answer from the worker. The edge may use only a result, because other
    /// answers are for owners.
    pub(crate) fn worker_tells(&self, setup: &Setup) -> bool {
        let worker = self.worker(self.client.binding.worker);
        let has = worker.run().is_some_and(|run| run.ended && run.freed == 0);
        let denies = setup.plants(Fault::NotThereIsNotExecuted) && worker.known == Known::Nothing;
        self.client.left && worker.is_bound(self.client.binding) && (has || denies)
    }

    pub(crate) fn ask_worker(&mut self, setup: &Setup) {
        let Some(run) = self.worker(self.client.binding.worker).run() else {
            return self.answer_json(Event::NotExecuted);
        };
        let answer = run.event(setup.tool, 0);
        self.answer_json(answer);
        self.send(frame(self.client.binding, 0, 0, What::Free(1)));
    }

    pub(crate) fn next_to_read(&self) -> Option<Event> {
        let entry = self.store.entry.as_ref()?;
        entry.events.get(self.client.read.len()).copied()
    }

    pub(crate) fn read(&mut self, event: Event) {
        self.client.read.push(event);
        if event.is_answer() {
            self.client.phase = Phase::Answered;
        }
    }

    pub(crate) fn is_asked(&self) -> bool {
        let mut read = self.client.read.iter();
        read.any(|event| matches!(event, Event::Question(_)))
    }

    pub(crate) fn reply_to(&mut self, setup: &Setup, node: NodeId) {
        let (binding, epoch) = (self.task(node).binding, self.epoch_of(node));
        self.send(frame(binding, node, epoch, What::Input));
        self.client.reply = match setup.plants(Fault::AnswerAcceptedEarly) {
            true => Asked::Accepted,
            false => Asked::At(node),
        };
    }

    pub(crate) fn reply_arrived(&mut self, node: NodeId) {
        if self.client.reply == Asked::At(node) {
            self.client.reply = Asked::Accepted;
        }
    }

    /// The cancellation may overtake the call's delivery.
    pub(crate) fn cancel(&mut self, setup: &Setup, node: NodeId) {
        self.client.also = Asked::Accepted;
        let is_over = self.store.entry.as_ref().is_some_and(|entry| entry.ended);
        let this = self.node_mut(node);
        match &mut this.task {
            Some(task) => task.cancel = true,
            None => {
                this.cancels = !is_over && !setup.plants(Fault::OvertakingCancelForgotten);
            }
        }
    }

    pub(crate) fn pass_cancel(&mut self, node: NodeId) {
        let worker = self.task(node).binding.worker;
        self.task_mut(node).cancel = false;
        self.cancel_run(worker);
    }

    pub(crate) fn delete(&mut self, setup: &Setup, node: NodeId) {
        let epoch = self.epoch_of(node);
        let (store, past) = (&mut self.store, &mut self.past);
        if store.delete(setup, past, epoch).is_err() {
            return self.step_down(setup, node);
        }
        self.client.also = Asked::Accepted;
        self.past.unknowable = true;
        for worker in 0..WORKERS {
            let bound = self.bind(worker);
            self.send(frame(bound, node, epoch, What::EndSession));
        }
        if let Some(task) = self.node_mut(node).task.take()
            && let Some(attempt) = task.waiter
            && self.is_awaited(node, attempt)
        {
            self.answer_json(Event::Unknown);
        }
    }

    pub(crate) fn start_task(&mut self, node: NodeId) {
        let epoch = self.epoch_of(node);
        let task = self.task(node);
        let (binding, attach_only) = (task.binding, task.attach_only);
        if self.is_cut(node, binding.worker) {
            let task = self.task_mut(node);
            task.link = match (task.repeated, task.link) {
                (true, _) => Link::Away,
                (false, Link::Planning) => Link::Unsent,
                (false, link) => link,
            };
            return;
        }
        self.task_mut(node).link = Link::Starting;
        self.send(frame(binding, node, epoch, What::Start { attach_only }));
    }

    pub(crate) fn believes(&self, node: NodeId) -> bool {
        matches!(self.node(node).belief, Belief::Owner(_))
    }
}
