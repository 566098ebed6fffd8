use super::action::Reply;
use super::fault::Fault;
use super::setup::{Setup, Tool};
use super::state::{
    Asked, Binding, Epoch, Event, Frame, Link, NodeId, State, Task, What, WorkerId,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Worker {
    pub(crate) incarnation: u8,
    pub(crate) number: u8,
    pub(crate) epoch: Epoch,
    pub(crate) ended: bool,
    pub(crate) known: Known,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Known {
    Nothing,
    Refused(u8),
    Cancelled,
    Taken(Run),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Run {
    /// The number of executions at all workers when this one began.
    pub(crate) execution: u8,
    pub(crate) produced: u8,
    pub(crate) freed: u8,
    pub(crate) reader: (NodeId, Epoch),
    pub(crate) inputs: u8,
    pub(crate) written: bool,
    pub(crate) cancelled: bool,
    pub(crate) ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Started {
    Attached,
    /// The worker refused the call, now or before. The call cannot run under this number.
    Refused,
    /// The call may have run at this worker.
    Unknown,
    Cancelled,
    Superseded,
}

impl Worker {
    pub(crate) fn new(incarnation: u8) -> Self {
        Self {
            incarnation,
            number: 0,
            epoch: 0,
            ended: false,
            known: Known::Nothing,
        }
    }

    pub(crate) fn run(&self) -> Option<&Run> {
        match &self.known {
            Known::Taken(run) => Some(run),
            Known::Nothing | Known::Refused(_) | Known::Cancelled => None,
        }
    }

    fn run_mut(&mut self) -> Option<&mut Run> {
        match &mut self.known {
            Known::Taken(run) => Some(run),
            Known::Nothing | Known::Refused(_) | Known::Cancelled => None,
        }
    }

    pub(crate) fn is_bound(&self, binding: Binding) -> bool {
        self.incarnation == binding.incarnation
    }
}

impl Run {
    pub(crate) fn next(&self, tool: Tool) -> Option<Event> {
        let of = self.execution;
        if self.ended {
            return None;
        }
        if self.cancelled {
            return Some(Event::Cancelled);
        }
        match (tool, self.produced) {
            (Tool::Endless, _) => None,
            (Tool::Answers, _) => Some(Event::Result(of)),
            (Tool::Speaks, 0) => Some(Event::Progress(of)),
            (Tool::Asks, 0) => Some(Event::Question(of)),
            (Tool::Writes, 0) => Some(Event::Write(of)),
            (Tool::Asks, _) if self.inputs == 0 => None,
            (Tool::Writes, _) if !self.written => None,
            _ => Some(Event::Result(of)),
        }
    }

    pub(crate) fn event(&self, tool: Tool, index: u8) -> Event {
        let last = index + 1 == self.produced && self.ended;
        let of = self.execution;
        match (last, tool) {
            (true, _) if self.cancelled => Event::Cancelled,
            (true, _) => Event::Result(of),
            (false, Tool::Asks) => Event::Question(of),
            (false, Tool::Writes) => Event::Write(of),
            (false, _) => Event::Progress(of),
        }
    }
}

impl State {
    pub(crate) fn worker(&self, worker: WorkerId) -> &Worker {
        &self.workers[usize::from(worker)]
    }

    pub(crate) fn worker_mut(&mut self, worker: WorkerId) -> &mut Worker {
        &mut self.workers[usize::from(worker)]
    }

    pub(crate) fn bind(&self, worker: WorkerId) -> Binding {
        let Worker {
            incarnation,
            number,
            ..
        } = *self.worker(worker);
        Binding {
            worker,
            incarnation,
            number,
        }
    }

    pub(crate) fn arrive(&mut self, setup: &Setup, frame: Frame, full: bool, reply: Reply) {
        self.take_frame(frame);
        let worker = frame.binding.worker;
        let newest = self.worker(worker).epoch;
        let is_former = frame.epoch < newest;
        let is_fenced = frame.what.is_fenced() && !takes_any_epoch(setup);
        if is_former && is_fenced {
            if matches!(frame.what, What::Start { .. }) {
                self.told(setup, frame, Started::Superseded);
            }
            return;
        }
        self.past.obeyed_former |= is_former && frame.what.is_fenced();
        self.worker_mut(worker).epoch = newest.max(frame.epoch);
        match frame.what {
            What::Start { attach_only } => {
                let started = self.start(setup, frame, attach_only, full);
                match reply {
                    Reply::Arrives => self.told(setup, frame, started),
                    Reply::Lost => self.start_task(frame.node),
                }
            }
            What::Input => {
                if let Some(run) = self.worker_mut(worker).run_mut() {
                    let is_new = run.inputs == 0 || setup.plants(Fault::AnswerWithoutRound);
                    run.inputs += u8::from(is_new);
                }
                self.reply_arrived(frame.node);
            }
            What::Free(events) => {
                if let Some(run) = self.worker_mut(worker).run_mut() {
                    run.freed = run.freed.max(events);
                }
            }
            What::Cancel => self.cancel_run(worker),
            What::EndSession => {
                self.worker_mut(worker).ended = true;
                self.cancel_run(worker);
            }
        }
    }

    fn start(&mut self, setup: &Setup, frame: Frame, attach_only: bool, full: bool) -> Started {
        let reader = (frame.node, frame.epoch);
        let bound = frame.binding;
        let worker = self.worker_mut(bound.worker);
        let runs_again = setup.plants(Fault::ResentStartRuns);
        match &mut worker.known {
            Known::Taken(run) if !runs_again => {
                run.reader = reader;
                return Started::Attached;
            }
            Known::Refused(number) if bound.number <= *number => return Started::Refused,
            Known::Cancelled => return Started::Cancelled,
            Known::Taken(_) | Known::Refused(_) | Known::Nothing => {}
        }
        let forgotten = match setup.fault {
            Some(Fault::NumbersIgnored) => false,
            // The edge's clock is ahead, so the call's id is newer than every forgotten call.
            Some(Fault::ClocksCompared) => false,
            _ => bound.number < worker.number,
        };
        if !worker.is_bound(bound) || forgotten {
            return Started::Unknown;
        }
        let number = worker.number;
        if attach_only && !setup.plants(Fault::CancelledRepetitionStarts) {
            worker.known = match setup.fault {
                Some(Fault::CancelledIsPlain) => Known::Refused(number),
                Some(Fault::AttachmentForgotten) => Known::Nothing,
                _ => Known::Cancelled,
            };
            return Started::Cancelled;
        }
        let over = worker.ended && !setup.plants(Fault::StartsAfterEnd);
        if full || over {
            if !setup.plants(Fault::RefusalsForgotten) {
                worker.known = Known::Refused(number);
            }
            return Started::Refused;
        }
        let is_over = worker.ended;
        self.past.started_after_end |= is_over;
        self.past.started_cancelled |= attach_only;
        self.past.executions += 1;
        let execution = self.past.executions;
        self.worker_mut(bound.worker).known = Known::Taken(Run {
            execution,
            produced: 0,
            freed: 0,
            reader,
            inputs: 0,
            written: false,
            cancelled: false,
            ended: false,
        });
        Started::Attached
    }

    fn told(&mut self, setup: &Setup, frame: Frame, started: Started) {
        let waits = |task: &Task| task.link == Link::Starting && task.binding == frame.binding;
        let node = self.node(frame.node);
        if !node.task.as_ref().is_some_and(waits) || self.epoch_of(frame.node) != frame.epoch {
            return;
        }
        let task = self.task_mut(frame.node);
        let answer = match started {
            Started::Attached => {
                task.link = Link::Up;
                return;
            }
            Started::Refused => {
                task.link = Link::Refused;
                task.refused |= 1 << frame.binding.worker;
                return;
            }
            Started::Superseded => return self.superseded(setup, frame.node),
            Started::Unknown => Event::Unknown,
            Started::Cancelled if task.denied => Event::NotExecuted,
            Started::Cancelled => Event::Cancelled,
        };
        task.link = Link::Down;
        task.pending = Some(answer);
    }

    pub(crate) fn produce(&mut self, setup: &Setup, worker: WorkerId) {
        let run = self.worker_mut(worker).run_mut().expect("it runs");
        let event = run.next(setup.tool).expect("there is one");
        run.produced += 1;
        run.ended = event.is_answer();
    }

    pub(crate) fn next_for(&self, setup: &Setup, node: NodeId) -> Option<Event> {
        let task = self.node(node).task.as_ref()?;
        let reader = (node, self.epoch_of(node));
        let run = self.worker(task.binding.worker).run()?;
        if task.link != Link::Up || run.reader != reader || task.pending.is_some() {
            return None;
        }
        let is_there = task.seen < run.produced;
        is_there.then(|| match task.seen < run.freed {
            true => Event::Unknown,
            false => run.event(setup.tool, task.seen),
        })
    }

    pub(crate) fn is_superseded(&self, node: NodeId) -> bool {
        let Some(task) = &self.node(node).task else {
            return false;
        };
        let run = self.worker(task.binding.worker).run();
        let is_read = run.is_some_and(|run| run.reader == (node, self.epoch_of(node)));
        task.link == Link::Up && !is_read
    }

    pub(crate) fn cancel_run(&mut self, worker: WorkerId) {
        let is_asked = self.client.also != Asked::No || self.store.deleted;
        if let Some(run) = self.worker_mut(worker).run_mut()
            && !run.ended
        {
            run.cancelled = true;
            self.past.cancelled_unasked |= !is_asked;
        }
    }

    pub(crate) fn confirm_writing(&mut self, worker: WorkerId) {
        if let Some(run) = self.worker_mut(worker).run_mut() {
            run.written = true;
        }
    }

    pub(crate) fn forget(&mut self, worker: WorkerId) {
        self.past.unknowable = true;
        let worker = self.worker_mut(worker);
        worker.number += 1;
        worker.known = Known::Nothing;
    }

    fn take_frame(&mut self, frame: Frame) {
        let at = self.frames.iter().position(|other| *other == frame);
        self.frames.remove(at.expect("it is on its way"));
    }

    pub(crate) fn send(&mut self, frame: Frame) {
        self.frames.push(frame);
        self.frames.sort_unstable();
    }

    pub(crate) fn lose_frame(&mut self, frame: Frame) {
        self.take_frame(frame);
    }
}

impl What {
    /// Returns whether the worker checks the sender's epoch. `Free` needs no check, because it is
    /// true from any sender.
    fn is_fenced(self) -> bool {
        !matches!(self, Self::Free(_))
    }
}

fn takes_any_epoch(setup: &Setup) -> bool {
    setup.plants(Fault::NoEpochTowardsWorkers) || setup.plants(Fault::StolenReaderIsOutcome)
}
