//! This node's calls in flight, which operators list and cancel.
//!
//! A call enters when it starts, unless it ends at once ([`now`](crate::now)). It leaves when its last event is read or
//! its reader stops.

mod stop;

use std::collections::{BTreeMap, HashMap};
use std::future::poll_fn;
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use futures::{StreamExt as _, ready, stream};
use parking_lot::Mutex;
use shoal_ports::{
    Call, CallControl, CallEvent, CallEventKind, CallEvents, CallFailure, CallId, CallOutcome,
    CallReport, CallState, Caller, Listing, Repeat, Route, RunningCall, SessionId, WorkerId,
    mark_of, shown,
};
use shoal_protocol::{Era, Method, RawJson, TraceContext};
use shoal_telemetry::metrics::{CountedOutcome, metrics};
use tokio::time::Instant;

use self::stop::Stop;
use crate::audit;

const LONGEST_TARGET: usize = 160;

/// Ordered from the oldest call, because call ids grow with time.
#[derive(Default)]
pub(crate) struct InFlightCalls(Mutex<InFlightTable>);

#[derive(Default)]
struct InFlightTable {
    calls: BTreeMap<RunKey, Arc<CallEntry>>,
    stopped: bool,
}

/// The number tells two runs of a call apart: a session's next owner may start it here while its earlier run is still
/// read.
type RunKey = (CallId, u64);

struct CallEntry {
    id: CallId,
    continues: OnceLock<CallId>,
    rule: OnceLock<Arc<str>>,
    method: Method,
    params: Option<RawJson>,
    caller: Arc<Caller>,
    repeat: Repeat,
    since: Instant,
    trace: Option<TraceContext>,
    state: Mutex<CallEntryState>,
    stop: Stop,
}

#[derive(Default)]
struct CallEntryState {
    worker: Option<WorkerId>,
    control: Option<Arc<dyn CallControl>>,
    cancelled: Option<String>,
    has_ended: bool,
}

pub(crate) struct InFlightCall {
    table: Arc<InFlightCalls>,
    key: RunKey,
    entry: Arc<CallEntry>,
}

impl InFlightCalls {
    pub(crate) fn enter(self: &Arc<Self>, call: &Call) -> InFlightCall {
        let entry = Arc::new(CallEntry {
            id: call.id,
            continues: OnceLock::new(),
            rule: OnceLock::new(),
            method: call.method.clone(),
            params: call.params.clone(),
            caller: Arc::clone(&call.caller),
            repeat: call.repeat,
            since: Instant::now(),
            trace: call.trace.clone(),
            state: Mutex::new(CallEntryState {
                worker: call.binding.as_ref().map(|to| to.worker.clone()),
                ..CallEntryState::default()
            }),
            stop: Stop::default(),
        });
        let mut table = self.0.lock();
        if table.stopped && call.caller.session.is_none() {
            entry.stop();
        }
        let calls = &mut table.calls;
        let latest = calls.range((call.id, 0)..=(call.id, u64::MAX)).next_back();
        let key = (call.id, latest.map_or(0, |((_, turn), _)| turn + 1));
        calls.insert(key, Arc::clone(&entry));
        drop(table);
        InFlightCall {
            table: Arc::clone(self),
            key,
            entry,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().calls.len()
    }

    pub(crate) fn by_worker(&self) -> HashMap<WorkerId, u64> {
        let mut counts = HashMap::new();
        for entry in self.0.lock().calls.values() {
            if let Some(worker) = &entry.state.lock().worker {
                *counts.entry(worker.clone()).or_default() += 1;
            }
        }
        counts
    }

    pub(crate) fn list(&self, session: Option<&SessionId>, limit: usize) -> Listing<CallReport> {
        let table = self.0.lock();
        let of_session =
            |entry: &&Arc<CallEntry>| session.is_none() || entry.caller.session.as_ref() == session;
        let total = match session {
            None => table.calls.len(),
            Some(_) => table.calls.values().filter(of_session).count(),
        };
        let chosen = table.calls.values().filter(of_session).take(limit);
        let chosen: Vec<_> = chosen.cloned().collect();
        drop(table);
        Listing {
            items: chosen.iter().map(|entry| entry.report()).collect(),
            total,
        }
    }

    /// Cancels a starting call once it runs. `false` if the call is not here.
    pub(crate) fn cancel(&self, call: CallId, reason: &str) -> bool {
        let found: Vec<_> = {
            let table = self.0.lock();
            let found = table.calls.range((call, 0)..=(call, u64::MAX));
            found.map(|(_, entry)| Arc::clone(entry)).collect()
        };
        for entry in &found {
            entry.cancel(reason);
        }
        !found.is_empty()
    }

    pub(crate) fn stop_without_session(&self) -> usize {
        let found: Vec<_> = {
            let mut table = self.0.lock();
            table.stopped = true;
            let all = table.calls.values();
            let found = all.filter(|entry| entry.caller.session.is_none());
            found.cloned().collect()
        };
        found.iter().for_each(|entry| entry.stop());
        found.len()
    }
}

impl CallEntry {
    fn stop(&self) {
        self.cancel(stop::WHY);
        self.stop.fire();
    }

    fn cancel(&self, reason: &str) {
        let control = {
            let mut state = self.state.lock();
            state.cancelled = Some(reason.to_owned());
            state.control.clone()
        };
        if let Some(control) = control {
            control.cancel(reason);
        }
    }

    fn started(&self, running: &RunningCall) {
        let cancelled = {
            let mut state = self.state.lock();
            state.worker.clone_from(&running.worker);
            state.control = Some(Arc::clone(&running.control));
            state.cancelled.clone()
        };
        if let Some(reason) = cancelled {
            running.control.cancel(&reason);
        }
    }

    fn subject(&self) -> audit::AuditedCall<'_> {
        audit::AuditedCall {
            id: self.id,
            continues: self.continues.get().copied(),
            rule: self.rule.get().map(|rule| &**rule),
            method: &self.method,
            params: self.params.as_ref(),
            caller: &self.caller,
            trace: self.trace.as_ref(),
        }
    }

    fn report(&self) -> CallReport {
        let state = self.state.lock();
        CallReport {
            id: self.id.to_string(),
            method: shown(self.method.as_str(), LONGEST_TARGET),
            target: target(&self.method, self.params.as_ref()),
            session: self.caller.session.as_ref().map(ToString::to_string),
            client: (self.caller.client_info.as_ref()).map(|info| info.name().to_owned()),
            principal: mark_of(&self.caller.principal),
            worker: state.worker.as_ref().map(ToString::to_string),
            journaled: self.repeat == Repeat::Never,
            modern: self.caller.revision.era() == Era::Modern,
            age_ms: u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX),
            state: match (&state.cancelled, &state.control) {
                (Some(_), _) => CallState::Cancelling,
                (None, Some(_)) => CallState::Running,
                (None, None) => CallState::Starting,
            },
        }
    }
}

impl InFlightCall {
    pub(crate) fn continues(&self, call: CallId) {
        let _ = self.entry.continues.set(call);
    }

    pub(crate) fn takes(&self, route: &Route) {
        if let Some(rule) = &route.rule {
            let _ = self.entry.rule.set(Arc::clone(rule));
        }
    }

    pub(crate) fn runs(&self, running: &RunningCall) {
        self.entry.started(running);
    }

    pub(crate) fn ended(&self, outcome: &CallOutcome) {
        let entry = &self.entry;
        entry.state.lock().has_ended = true;
        audit::ended(&entry.subject(), entry.since.elapsed(), outcome, || {
            CountedOutcome::of(outcome)
        });
    }

    pub(crate) async fn unless_stopped(
        &self,
        starting: impl Future<Output = Result<RunningCall, CallFailure>>,
    ) -> Result<RunningCall, CallFailure> {
        let stop = &self.entry.stop;
        // Only calls without a session end with the node. Others continue on another node.
        if self.entry.caller.session.is_some() {
            return starting.await;
        }
        if stop.has_fired() {
            return Err(stop::before_it_began());
        }
        tokio::select! {
            biased;
            started = starting => started,
            () = poll_fn(|cx| stop.poll(cx)) => Err(stop::amid(self.entry.repeat)),
        }
    }

    pub(crate) fn unless_failed<T>(
        &self,
        started: Result<T, CallFailure>,
    ) -> Result<T, CallFailure> {
        started.inspect_err(|failure| match failure {
            CallFailure::Superseded { .. } | CallFailure::WorkerAway { .. } => {}
            _ => self.ended(&CallOutcome::Failed(failure.clone())),
        })
    }

    pub(crate) fn is_told_elsewhere(&self) {
        self.entry.state.lock().has_ended = true;
    }

    pub(crate) fn follow(self, running: RunningCall, pool: Option<Arc<str>>) -> RunningCall {
        self.entry.started(&running);
        let entry = Arc::clone(&self.entry);
        let has_session = entry.caller.session.is_some();
        if running.worker.is_none() {
            running
                .events
                .ended()
                .inspect(|outcome| self.ended(outcome));
            return running;
        }
        let count = move |outcome: &CallOutcome| {
            // The closure must capture all of `self`, to keep the entry.
            let call = &self;
            call.ended(outcome);
            if let Some(pool) = &pool {
                let took = call.entry.since.elapsed();
                (metrics().pools).called(took, pool, CountedOutcome::of(outcome));
            }
        };
        if let Some(outcome) = running.events.ended() {
            count(outcome);
            return running;
        }
        if has_session {
            let events = running.events.map(move |event| {
                if let CallEventKind::Finished(outcome) = &event.kind {
                    count(outcome);
                }
                event
            });
            return RunningCall {
                events: CallEvents::from_stream(events),
                ..running
            };
        }
        let (mut events, mut last, mut is_over) = (running.events, 0, false);
        let events = stream::poll_fn(move |cx| {
            if is_over {
                return Poll::Ready(None);
            }
            let event = match events.poll_next_unpin(cx) {
                Poll::Ready(Some(event)) if is_cancelled(&event) && entry.stop.has_fired() => {
                    let failure = stop::amid(entry.repeat);
                    Some(CallEvent {
                        kind: CallEventKind::Finished(CallOutcome::Failed(failure)),
                        ..event
                    })
                }
                Poll::Ready(event) => event,
                Poll::Pending => {
                    ready!(entry.stop.poll(cx));
                    let failure = stop::amid(entry.repeat);
                    Some(CallEvent {
                        sequence: last + 1,
                        kind: CallEventKind::Finished(CallOutcome::Failed(failure)),
                    })
                }
            };
            if let Some(CallEvent { sequence, kind }) = &event {
                last = *sequence;
                if let CallEventKind::Finished(outcome) = kind {
                    is_over = true;
                    count(outcome);
                }
            }
            Poll::Ready(event)
        });
        RunningCall {
            events: CallEvents::from_stream(events),
            ..running
        }
    }
}

impl Drop for InFlightCall {
    fn drop(&mut self) {
        self.table.0.lock().calls.remove(&self.key);
        let entry = &self.entry;
        if !entry.state.lock().has_ended {
            audit::left(&entry.subject(), entry.since.elapsed());
        }
    }
}

fn is_cancelled(event: &CallEvent) -> bool {
    matches!(
        &event.kind,
        CallEventKind::Finished(CallOutcome::Failed(CallFailure::Cancelled))
    )
}

fn target(method: &Method, params: Option<&RawJson>) -> Option<String> {
    let named = method.named()?;
    let target = params?.member(named.as_str())?.string()?;
    Some(shown(&target, LONGEST_TARGET))
}
