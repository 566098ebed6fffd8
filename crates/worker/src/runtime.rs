//! The worker runtime: runs the calls of any backend in a bounded actor pool.
//!
//! | | |
//! |---|---|
//! | `admission` | admission: how many calls run, wait, and ask |
//! | `pool` | the actors that run them |
//! | `form`, `change` | what calls run with, and how that is changed under them |
//! | `slot` | a call's actor, which it leaves while it asks |
//! | `execute` | one call's deadline, cancellation and panics |
//! | `record` | one call's events, questions and reader |
//! | `ledger` | which calls can be attached to |
//! | `fences` | which owners of sessions are former ones, and whose calls must not begin any more |
//! | `tombstones` | which calls must not run again, by the ledger's numbers |
//! | `gauges`, `measure` | what metrics are told |

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use futures::future::join_all;
use parking_lot::{Mutex, RwLock};
use shoal_ports::{
    Announcement, Attach, Call, CallFailure, CallId, LedgerNumber, OwnLists, Repeat,
    ResourceUpdated, RunningCall, SessionId, Worker, WorkerHere, WorkerId, WorkerLoad,
};
use shoal_protocol::{RpcError, TraceContext};
use shoal_telemetry::metrics::{ShedReason, metrics};
use shoal_telemetry::trace::{self, Span, attributes as key, names};
use tokio::sync::{broadcast, watch};

use crate::backend::{Backend, BackendState};

mod admission;
mod change;
mod client;
mod config;
mod deserted;
mod event_buffer;
mod execute;
mod fences;
mod form;
mod gauges;
mod ledger;
mod line;
mod measure;
mod pool;
mod record;
mod shutdown;
mod slot;
#[cfg(test)]
mod tests;
mod tombstones;

pub use config::PoolConfig;

use admission::Permit;
use fences::SessionFences;
use form::{EnteredForm, Form, Forms};
use gauges::Gauges;
use ledger::{Entered, Ledger};
use pool::{FirstTurn, PooledCall};
use record::CallRecord;

/// Updates that may wait for whoever listens.
const BACKLOG: usize = 1024;

/// A worker: one pool's share of one process.
///
/// * A call runs whoever listens. Its events are read from a bounded buffer, by one reader at a time;
///   a later one takes over. A reader that stays too far behind is let go: its events end without
///   `Finished`, and it may attach again.
/// * A finished call is kept for [`PoolConfig::result_retention`], except one that is safe to repeat,
///   sent nothing but its end or was lost, and was read to that end; and any other until its end is acknowledged.
/// * A later reader takes over the steering too: what the control of an earlier one is told has no effect.
/// * The id of a journaled call that has run is remembered for [`PoolConfig::call_memory`] after its result
///   is gone, and so is the refusal of one that was refused. Journaled calls that may have run here are refused with
///   `OutcomeUnknown`: by the number of the worker's ledger under which they were bound, never by a clock.
/// * A deadline and a cancellation end the call at once; its tool then has
///   [`PoolConfig::cancel_grace`] before it is dropped, and keeps its place in the pool until then.
/// * What calls run with can be [changed](Self::change): it is the same worker then, and knows the same calls.
pub struct WorkerRuntime {
    id: WorkerId,
    pool: Arc<str>,
    forms: RwLock<Forms>,
    announcement: watch::Sender<Announcement>,
    updates: broadcast::Sender<ResourceUpdated>,
    own_lists: watch::Sender<OwnLists>,
    /// The resources that the backend is to report.
    subscribed: Mutex<BTreeSet<String>>,
    ledger: Arc<Ledger>,
    fences: SessionFences,
    draining: AtomicBool,
    _gauges: Gauges,
}

/// A call that has begun, and whoever reads it first.
struct BegunCall {
    record: Arc<CallRecord>,
    reader: u64,
    /// Whether it was begun just now.
    is_new: bool,
}

impl WorkerRuntime {
    /// Starts a worker's actors for a backend that is running.
    pub async fn start(id: WorkerId, config: PoolConfig, backend: Arc<dyn Backend>) -> Arc<Self> {
        let form = Form::start(config, backend).await;
        let pool = Arc::clone(&form.config.pool);
        let announced = announcement_of(&id, &pool, &form.state.borrow());
        gauges::name(&announced);
        let runtime = Arc::new_cyclic(|own| Self {
            _gauges: Gauges::register(&pool, own),
            id,
            pool,
            announcement: watch::Sender::new(announced),
            updates: broadcast::Sender::new(BACKLOG),
            own_lists: watch::Sender::default(),
            subscribed: Mutex::default(),
            ledger: Ledger::start(&form.config),
            fences: SessionFences::default(),
            draining: AtomicBool::new(false),
            forms: RwLock::new(Forms::new(Arc::clone(&form))),
        });
        runtime.follow_form(&form);
        runtime
    }

    /// Announces what the backend of this form says of itself, if that is the current one and the worker goes on.
    fn announce(&self, form: &Arc<Form>) {
        let next = announcement_of(&self.id, &self.pool, &form.state.borrow());
        gauges::name(&next);
        // Held, so that no form announces itself after the next one.
        let forms = self.forms.read();
        let is_current = Arc::ptr_eq(forms.current(), form);
        self.announcement.send_if_modified(|announced| {
            let goes_on = is_current && !self.is_draining();
            if goes_on {
                *announced = next;
            }
            goes_on
        });
    }

    /// What the server that runs the calls wrote last for its operators before it failed, line by line.
    pub fn last_words(&self) -> Vec<String> {
        self.forms.read().current().backend.last_words()
    }

    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Has a call run, or finds it.
    fn begin(&self, mut call: Call, first_turn: FirstTurn) -> Result<BegunCall, CallFailure> {
        // Before it is looked for: a former owner would take it from the next one.
        self.fences.hear(&call.caller, call.epoch)?;
        let form = self.forms.read().enter(call.caller.session.as_ref());
        self.make_room(&form, &call);
        Ok(match self.enter(&form, &call, first_turn)? {
            Entered::Known(record) if record.is_withdrawn() && !call.attach_only => {
                let reason = "an earlier delivery of the call is being cancelled";
                return Err(CallFailure::not_executed(reason));
            }
            Entered::Known(record) => {
                record.adopt(call.epoch)?;
                self.attached(&record, call.trace.as_ref());
                BegunCall {
                    reader: record.attach(0),
                    record,
                    is_new: false,
                }
            }
            Entered::New(record, permit) => {
                let reader = record.attach(0);
                let span = self.runs(&call);
                call.trace = span.context().cloned();
                record.runs_in(call.trace.as_ref());
                let work = PooledCall::new(call, Arc::clone(&record), permit, span);
                form.pool.dispatch(work, first_turn);
                BegunCall {
                    record,
                    reader,
                    is_new: true,
                }
            }
        })
    }

    /// Before the call is entered: a refusal is final, and what is displaced is in the same ledger.
    fn make_room(&self, form: &Form, call: &Call) {
        let is_new = || !call.attach_only && self.ledger.find(call.id).is_none();
        if form.admission.are_full() && is_new() && self.refusal(form, call).is_none() {
            form.pool.displace(call);
        }
    }

    fn enter(
        &self,
        form: &EnteredForm,
        call: &Call,
        first_turn: FirstTurn,
    ) -> Result<Entered<Permit>, CallFailure> {
        let admit = || {
            self.refusal(form, call).map_or(Ok(()), Err)?;
            if form.admission.are_busy() {
                form.pool.admit(call)?;
            }
            form.admission.take().ok_or_else(|| {
                CallFailure::overloaded(
                    format!("the queue of pool {} is full", self.pool),
                    pool::RETRY_AFTER,
                )
            })
        };
        match (first_turn, call.repeat) {
            (FirstTurn::Here, Repeat::Safe) => self.ledger.enter_later(call, admit),
            _ => self.ledger.enter(call, admit),
        }
    }

    /// Lets a call be read by whoever began it, and be attached to.
    fn follow(&self, begun: BegunCall) -> RunningCall {
        self.ledger.keep(&begun.record);
        client::follow(begun.record, begun.reader, begun.reader, &self.id)
    }

    /// The span of a call, from its admission to its end.
    fn runs(&self, call: &Call) -> Span {
        trace::server(names::WORKER_RUN)
            .parent(call.trace.as_ref())
            .start_with(|set| {
                set.set(key::POOL, &self.pool)
                    .set(key::WORKER, &self.id.to_string())
                    .set(key::CALL_ID, &call.id.to_string())
                    .set(key::MCP_METHOD_NAME, call.method.as_str())
                    .set(key::ROLE, "worker");
            })
    }

    /// Tells of somebody who takes a running call over, in the trace of that one.
    fn attached(&self, record: &CallRecord, trace: Option<&TraceContext>) {
        trace::server(names::WORKER_ATTACH)
            .parent(trace)
            .link(record.runs())
            .start_with(|set| {
                set.set(key::WORKER, &self.id.to_string())
                    .set(key::CALL_ID, &record.id.to_string())
                    .set(key::ROLE, "worker");
            })
            .end();
    }

    fn known(&self, call: CallId) -> Result<Arc<CallRecord>, CallFailure> {
        let forgotten = || CallFailure::outcome_unknown("its worker does not know it any more");
        self.ledger.find(call).ok_or_else(forgotten)
    }

    fn refused(&self, failure: &CallFailure) {
        let reason = match failure {
            CallFailure::Overloaded { .. } => ShedReason::QueueFull,
            CallFailure::NotExecuted { .. } if self.is_draining() => ShedReason::Draining,
            CallFailure::NotExecuted { .. } => ShedReason::NoWorker,
            // It was admitted once before.
            _ => return,
        };
        metrics().workers.refused(&self.pool, reason);
    }

    fn refusal(&self, form: &Form, call: &Call) -> Option<CallFailure> {
        let session = call.caller.session.as_ref();
        if session.is_some_and(|session| self.fences.has_ended(session)) {
            // As those of its calls that were running: it is for no other worker either.
            return Some(CallFailure::Cancelled);
        }
        let reason = if self.is_draining() {
            "the worker is shutting down".to_owned()
        } else {
            let state = form.state.borrow();
            if state.catalog.is_some() {
                return None;
            }
            let detail = state.detail.as_deref();
            detail.unwrap_or("the worker is not ready").to_owned()
        };
        Some(CallFailure::NotExecuted { reason })
    }
}

#[async_trait]
impl Worker for WorkerRuntime {
    fn announcement(&self) -> watch::Receiver<Announcement> {
        self.announcement.subscribe()
    }

    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated> {
        self.updates.subscribe()
    }

    fn own_lists(&self) -> watch::Receiver<OwnLists> {
        self.own_lists.subscribe()
    }

    fn load(&self) -> WorkerLoad {
        self.forms.read().load()
    }

    fn open_calls(&self) -> usize {
        let calls: usize = self.forms.read().all().map(|form| form.calls()).sum();
        calls + self.ledger.undelivered()
    }

    fn ledger(&self) -> Option<LedgerNumber> {
        Some(self.ledger.number())
    }

    async fn start(&self, call: Call) -> Result<RunningCall, CallFailure> {
        // Whoever brings calls over a link brings all of them.
        let begun = self.begin(call, FirstTurn::InActor);
        let begun = begun.inspect_err(|failure| self.refused(failure))?;
        Ok(self.follow(begun))
    }

    fn here(&self) -> Option<&dyn WorkerHere> {
        Some(self)
    }

    async fn attach(&self, attach: Attach) -> Result<RunningCall, CallFailure> {
        let record = self.known(attach.call)?;
        self.fences.hear(&record.caller, attach.epoch)?;
        record.adopt(attach.epoch)?;
        let number = match attach.reader {
            None => record.attach(attach.after),
            // The number of a reader that was replaced reads nothing.
            Some(reader) => record.reattach(reader, attach.after).unwrap_or(0),
        };
        if number > 0 {
            self.attached(&record, attach.trace.as_ref());
        }
        let name = attach.reader.unwrap_or(number);
        Ok(client::follow(record, number, name, &self.id))
    }

    fn acknowledge(&self, call: CallId) {
        self.ledger.acknowledge(call);
    }

    async fn subscribe(&self, uri: &str) -> Result<(), RpcError> {
        // First, so that one that comes in its place hears of it too.
        let is_new = self.subscribed.lock().insert(uri.to_owned());
        let current = Arc::clone(self.forms.read().current());
        let subscribed = current.backend.subscribe(uri).await;
        if is_new && subscribed.is_err() {
            self.subscribed.lock().remove(uri);
        }
        subscribed
    }

    async fn unsubscribe(&self, uri: &str) {
        self.subscribed.lock().remove(uri);
        let backends = self.forms.read().backends();
        join_all(backends.iter().map(|backend| backend.unsubscribe(uri))).await;
    }

    async fn end_session(&self, session: &SessionId) {
        // First, so that what its owner has sent before, and what an earlier one has, is either stopped or refused.
        self.fences.end(session);
        for call in self.ledger.open() {
            if call.caller.session.as_ref() == Some(session) {
                call.stop(CallFailure::Cancelled);
            }
        }
        let backends = self.forms.read().backends();
        join_all(backends.iter().map(|backend| backend.end_session(session))).await;
    }
}

impl WorkerHere for WorkerRuntime {
    fn start_now(&self, call: Call) -> Result<RunningCall, CallFailure> {
        let begun = self.begin(call, FirstTurn::Here)?;
        // Whoever gets the end from here has it, and nobody else asks for that of a call that is safe to repeat.
        if let Some(outcome) = begun.record.ended().filter(|_| begun.is_new) {
            begun.record.deliver();
            return Ok(RunningCall::ended(outcome, Some(self.id.clone())));
        }
        Ok(self.follow(begun))
    }
}

fn announcement_of(worker: &WorkerId, pool: &Arc<str>, state: &BackendState) -> Announcement {
    Announcement {
        worker: worker.clone(),
        pool: Arc::clone(pool),
        catalog: state.catalog.clone(),
        detail: state.detail.clone(),
    }
}
