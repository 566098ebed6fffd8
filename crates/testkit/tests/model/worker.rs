//! What a worker does with an attach and a start.

use super::setup::{Fault, Setup};
use super::state::{CallId, Event, Run, State, WorkerId};

/// A worker's reply to a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Started {
    /// It runs, or has run: the sender gets its events.
    Known,
    /// The worker is lost, or may have executed and forgotten the call.
    Unknown,
}

impl State {
    /// What the worker remembers of a call.
    pub(crate) fn run(&self, worker: WorkerId, call: CallId) -> Option<Run> {
        let runs = &self.workers[usize::from(worker)].runs;
        runs.iter().find(|run| run.call == call).copied()
    }

    /// A start reaches the worker: it is executed at most once, and a call that may have been forgotten is
    /// not executed.
    pub(crate) fn start(&mut self, setup: &Setup, worker: WorkerId, call: CallId) -> Started {
        let index = usize::from(worker);
        if !self.workers[index].alive {
            return Started::Unknown;
        }
        if self.run(worker, call).is_some() {
            return Started::Known;
        }
        let is_behind = self.workers[index].horizon.is_some_and(|last| call <= last);
        if is_behind && !setup.plants(Fault::NoHorizon) {
            return Started::Unknown;
        }
        let executions = &mut self.executions[usize::from(call)];
        *executions += 1;
        let run = Run {
            call,
            execution: *executions,
            produced: 0,
        };
        let runs = &mut self.workers[index].runs;
        runs.push(run);
        runs.sort_unstable();
        Started::Known
    }

    /// The call produces its next event.
    pub(crate) fn produce(&mut self, worker: WorkerId, call: CallId) {
        let runs = &mut self.workers[usize::from(worker)].runs;
        let run = runs.iter_mut().find(|run| run.call == call);
        run.expect("it runs").produced += 1;
    }

    /// The worker's event after the first `seen`, if there is one.
    pub(crate) fn event_after(&self, worker: WorkerId, call: CallId, seen: u8) -> Option<Event> {
        let run = self.run(worker, call).filter(|run| run.produced > seen)?;
        Some(match seen {
            0 => Event::Progress(run.execution),
            _ => Event::Result(run.execution),
        })
    }

    /// Retention is over: all that remains of the call is that ids up to its own are not new.
    pub(crate) fn forget(&mut self, worker: WorkerId, call: CallId) {
        let worker = &mut self.workers[usize::from(worker)];
        worker.runs.retain(|run| run.call != call);
        worker.horizon = worker.horizon.max(Some(call));
    }
}
