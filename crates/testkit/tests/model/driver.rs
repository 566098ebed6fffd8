//! How a node that believes it owns the session drives the call.

use super::action::Reply;
use super::fault::Fault;
use super::ownership::frame;
use super::setup::{Setup, Tool, Way};
use super::state::{Binding, Event, Link, NodeId, Phase, State, Step, Task, WORKERS, What};
use super::store::{Append, Stale};

impl State {
    pub(crate) fn receive(&mut self, setup: &Setup, node: NodeId) {
        let event = self.next_for(setup, node).expect("there is one");
        let (task, epoch) = (self.task(node).clone(), self.epoch_of(node));
        if setup.plants(Fault::FreedOnReceipt) && event.is_workers() {
            self.send(frame(task.binding, node, epoch, What::Free(task.seen + 1)));
        }
        if let Event::Write(_) = event
            && self.is_written(task.binding)
        {
            // An earlier driver has already confirmed this write to the worker.
            self.task_mut(node).seen += 1;
            return;
        }
        self.task_mut(node).pending = Some(event);
        if setup.plants(Fault::SentBeforeAppended)
            && self.client.phase == Phase::Reading(node)
            && self.client.read.len() == usize::from(task.after)
        {
            self.read(event);
        }
    }

    fn is_written(&self, binding: Binding) -> bool {
        let run = self.worker(binding.worker).run();
        run.is_some_and(|run| run.written)
    }

    /// Only the edge that receives the answer can confirm its arrival.
    pub(crate) fn answer(&mut self, setup: &Setup, node: NodeId, reply: Reply) {
        let task = self.task(node).clone();
        let answer = task.pending.expect("there is one");
        if answer == Event::Unknown && self.log_knows_more(setup) {
            return self.find_in_log(setup, node, task.waiter);
        }
        let mut is_safe = setup.plants(Fault::FreedWithAnswer);
        if self.client.phase == Phase::Delivered(node)
            && task.waiter == Some(self.client.attempt)
            && reply == Reply::Arrives
        {
            self.answer_json(answer);
            is_safe = true;
        } else if reply == Reply::Lost {
            self.lose_node();
        }
        if is_safe {
            self.free(node, &task, answer);
        }
        let this = self.node_mut(node);
        let entry_may_be_there = task.step == Step::Unsure;
        match entry_may_be_there && !setup.plants(Fault::EntryLeftOpen) {
            true => {
                let task = this.task.as_mut().expect("it drives the call");
                task.step = Step::Closing;
                task.waiter = None;
            }
            false => this.task = None,
        }
    }

    fn log_knows_more(&self, setup: &Setup) -> bool {
        let blind = [
            Fault::WorkerBelieved,
            Fault::NoLookUp,
            Fault::FailedStepEndsCall,
        ];
        let looks = !blind.iter().any(|fault| setup.plants(*fault));
        looks && self.store.entry.is_some()
    }

    /// Looks in the log for a call that the worker refuses or has forgotten, because an earlier delivery may have
    /// journaled it.
    fn find_in_log(&mut self, setup: &Setup, node: NodeId, waiter: Option<u8>) {
        self.node_mut(node).task = None;
        if self.store.entry.as_ref().is_some_and(|entry| !entry.ended) {
            self.take_up(setup, node);
        }
        if waiter.is_some_and(|attempt| self.is_awaited(node, attempt)) {
            self.give_id(node);
        }
    }

    pub(crate) fn answer_twice(&mut self, node: NodeId) {
        let answer = self.task(node).pending.expect("there is one");
        self.client.json.push(answer);
        self.node_mut(node).task = None;
    }

    fn free(&mut self, node: NodeId, task: &Task, answer: Event) {
        if let Event::Result(_) = answer {
            let epoch = self.epoch_of(node);
            self.send(frame(task.binding, node, epoch, What::Free(task.seen + 1)));
        }
    }

    /// The client gets an event id only after this step.
    pub(crate) fn journal(&mut self, setup: &Setup, node: NodeId, reply: Reply) {
        let (binding, epoch) = (self.task(node).binding, self.epoch_of(node));
        if setup.plants(Fault::IdBeforeStep) {
            self.tell_id(node);
        }
        let was_there = self.store.entry.is_some();
        let begun = self
            .store
            .begin(setup, &mut self.past, epoch, binding)
            .cloned();
        let Ok(entry) = begun else {
            return self.step_down(setup, node);
        };
        if reply == Reply::Lost {
            let task = self.task_mut(node);
            task.step = Step::Unsure;
            if setup.plants(Fault::FailedStepEndsCall) {
                task.pending = Some(Event::Unknown);
            }
            return;
        }
        self.task_mut(node).step = Step::Logged;
        self.tell_id(node);
        let task = self.task_mut(node);
        task.after = u8::try_from(entry.events.len()).expect("few events");
        if entry.ended {
            self.node_mut(node).task = None;
            return;
        }
        // If the journal comes before the start, a call without an entry was never started, so this
        // delivery is no repetition.
        let is_new = !was_there && setup.way != Way::Hold;
        task.repeated &= !is_new;
        let elsewhere = entry.binding.worker != task.binding.worker;
        if elsewhere {
            // The worker in the journal has precedence over the delivery's.
            task.binding = entry.binding;
            task.link = Link::Unsent;
        }
        if self.task(node).link == Link::Unsent {
            self.start_task(node);
        }
    }

    /// The worker gets the confirmation only after this step.
    pub(crate) fn write(&mut self, setup: &Setup, node: NodeId, reply: Reply) {
        let (binding, epoch) = (self.task(node).binding, self.epoch_of(node));
        let written = self.store.write(setup, &mut self.past, epoch, binding);
        if written.is_err() {
            return self.step_down(setup, node);
        }
        if reply == Reply::Lost {
            let journaled = !setup.plants(Fault::UnjournaledWriting);
            let task = self.task_mut(node);
            if task.step == Step::Hold && journaled {
                task.step = Step::Unsure;
            }
            return;
        }
        self.confirm_writing(binding.worker);
        let is_journaled = self.store.entry.is_some();
        let task = self.task_mut(node);
        task.pending = None;
        task.seen += 1;
        if is_journaled {
            task.step = Step::Logged;
            self.tell_id(node);
        }
    }

    /// Readers can see the event only after this step.
    pub(crate) fn append(&mut self, setup: &Setup, node: NodeId, reply: Reply) {
        let task = self.task(node).clone();
        let event = task.pending.expect("it has received one");
        let seen = task.seen + u8::from(event.is_workers());
        if self.append_event(setup, node, event, seen).is_err() {
            return self.step_down(setup, node);
        }
        if reply == Reply::Lost {
            if setup.plants(Fault::AbandonedAppend) {
                self.task_mut(node).pending = Some(Event::Unknown);
            }
            return;
        }
        if setup.plants(Fault::AbandonedAppend)
            && self.client.phase == Phase::Reading(node)
            && self.client.read.len() == usize::from(task.after)
        {
            self.read(event);
        }
        if event.is_answer() {
            self.free(node, &task, event);
            self.node_mut(node).task = None;
            return;
        }
        let next = self.task_mut(node);
        next.after += 1;
        next.seen = seen;
        next.pending = None;
    }

    pub(crate) fn close(&mut self, setup: &Setup, node: NodeId, reply: Reply) {
        let task = self.task(node).clone();
        let event = task.pending.expect("it is the answer");
        if self
            .append_event(setup, node, event, task.seen + 1)
            .is_err()
        {
            return self.step_down(setup, node);
        }
        if reply == Reply::Arrives {
            self.node_mut(node).task = None;
        }
    }

    fn append_event(
        &mut self,
        setup: &Setup,
        node: NodeId,
        event: Event,
        seen: u8,
    ) -> Result<(), Stale> {
        let (after, epoch) = (self.task(node).after, self.epoch_of(node));
        let append = Append { after, event, seen };
        self.store.append(setup, &mut self.past, epoch, append)
    }

    pub(crate) fn lose_patience(&mut self, node: NodeId) {
        self.past.unknowable = true;
        let task = self.task_mut(node);
        task.link = Link::Down;
        task.pending = Some(Event::Unknown);
    }

    /// Returns whether the call may be bound to another worker: the bound worker has refused it, or
    /// this owner has just journaled it and has sent nothing yet. Before the journal step, only the
    /// edge knows whether anything was sent, because a delivery that claims to be the first may be
    /// late.
    pub(crate) fn may_rebind(&self, setup: &Setup, node: NodeId) -> bool {
        let Some(task) = &self.node(node).task else {
            return false;
        };
        if task.pending.is_some() || (setup.way != Way::Hold && task.step != Step::Logged) {
            return false;
        }
        let cut = self.is_cut(node, task.binding.worker);
        match task.link {
            Link::Refused => true,
            Link::Unsent => {
                let first = setup.plants(Fault::LateFirstBoundAnew);
                cut && (task.step == Step::Logged || first)
            }
            Link::Away => cut && setup.plants(Fault::RepetitionBoundAnew),
            Link::Planning | Link::Starting | Link::Up | Link::Down => false,
        }
    }

    /// The new binding is journaled before the call starts.
    pub(crate) fn rebind(&mut self, setup: &Setup, node: NodeId, reply: Reply) {
        let task = self.task(node);
        if task.step != Step::Logged && self.log_knows_more(setup) {
            let waiter = task.waiter;
            return self.find_in_log(setup, node, waiter);
        }
        let (next, epoch) = (1 - task.binding.worker, self.epoch_of(node));
        let is_denied = task.denied;
        let no_other =
            is_denied || task.refused.count_ones() == u32::from(WORKERS) || self.is_cut(node, next);
        if no_other {
            let task = self.task_mut(node);
            task.link = Link::Down;
            task.pending = Some(Event::NotExecuted);
            return;
        }
        let binding = self.bind(next);
        if !setup.plants(Fault::UnjournaledBinding) {
            let rebound = self.store.rebind(setup, &mut self.past, epoch, binding);
            if rebound.is_err() {
                return self.step_down(setup, node);
            }
            if reply == Reply::Lost {
                let task = self.task_mut(node);
                if task.step == Step::Hold {
                    task.step = Step::Unsure;
                }
                return;
            }
            self.task_mut(node).step = Step::Logged;
            self.tell_id(node);
        }
        let task = self.task_mut(node);
        task.binding = binding;
        task.link = Link::Unsent;
        self.start_task(node);
    }

    /// Returns whether the result may be sent as JSON: it is the first event, and small.
    pub(crate) fn may_answer(&self, setup: &Setup, task: &Task) -> bool {
        let held = matches!(task.step, Step::Hold | Step::Unsure) && setup.way == Way::Hold;
        held && task.pending.is_some_and(Event::is_answer)
    }

    pub(crate) fn may_journal(&self, setup: &Setup, task: &Task) -> bool {
        let first = setup.way != Way::Hold && task.step == Step::Hold;
        let writes = matches!(task.pending, Some(Event::Write(_)));
        let held = setup.way == Way::Hold
            && matches!(task.step, Step::Hold | Step::Unsure)
            && matches!(task.link, Link::Starting | Link::Up)
            && !task.pending.is_some_and(Event::is_answer)
            && !(writes && setup.tool == Tool::Writes);
        let again = setup.way != Way::Hold && task.step == Step::Unsure;
        first || held || again
    }
}
