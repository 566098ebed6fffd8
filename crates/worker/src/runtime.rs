//! Runs the calls of any backend in a bounded actor pool.
//!
//! | module | part |
//! |---|---|
//! | `admission` | limits on running, waiting and asking calls |
//! | `pool` | the actors that run calls |
//! | `form`, `change` | backend and limits, and their replacement |
//! | `slot` | a call's actor, released while the call asks |
//! | `execute` | one call's deadline, cancellation and panics |
//! | `record` | one call's events, questions and reader |
//! | `ledger` | the calls that readers can attach to |
//! | `fences` | sessions that have a later owner or have ended |
//! | `tombstones` | calls that must not run again, by ledger number |
//! | `gauges`, `measure` | metrics |

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use futures::future::join_all;
use parking_lot::{Mutex, RwLock};
use shoal_ports::{
    Announcement, Attach, Call, CallFailure, CallId, LedgerNumber, MayStart, OwnLists, Repeat,
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
mod overload;
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
use gauges::RuntimeGauges;
use ledger::{CallLedger, Entered};
use pool::{FirstTurn, PooledCall};
use record::CallRecord;

const BACKLOG: usize = 1024;

/// A worker: one pool's share of one process.
///
/// * A call runs even without a reader. One reader at a time reads its events from a bounded buffer; a later
///   reader takes over, with the control of the call. If a reader is too slow, its events end without
///   `Finished`, and it may attach again.
/// * The worker keeps a finished call for [`PoolConfig::result_retention`] or until its end is
///   acknowledged. It drops a repeatable call once its end is read, if the call sent nothing else,
///   was withdrawn, or may run again elsewhere.
/// * For [`PoolConfig::call_memory`], the worker remembers ids of journaled calls that ran or were refused.
///   It refuses calls that may have run here with `OutcomeUnknown`. It decides by ledger numbers instead of
///   clocks.
/// * A deadline or cancellation ends the call at once. The call keeps its place until the tool stops, or
///   until the worker drops the tool after [`PoolConfig::cancel_grace`].
/// * The backend and limits can [change](Self::change); the worker keeps its id and calls.
pub struct WorkerRuntime {
    id: WorkerId,
    pool: Arc<str>,
    forms: RwLock<Forms>,
    announcement: watch::Sender<Announcement>,
    updates: broadcast::Sender<ResourceUpdated>,
    own_lists: watch::Sender<OwnLists>,
    subscribed: Mutex<BTreeSet<String>>,
    ledger: Arc<CallLedger>,
    fences: SessionFences,
    draining: AtomicBool,
    _gauges: RuntimeGauges,
}

struct BegunCall {
    record: Arc<CallRecord>,
    reader: u64,
    is_new: bool,
}

impl WorkerRuntime {
    /// Starts a worker's actors for a running backend.
    pub async fn start(id: WorkerId, config: PoolConfig, backend: Arc<dyn Backend>) -> Arc<Self> {
        let form = Form::start(config, backend).await;
        let pool = Arc::clone(&form.config.pool);
        let announced = announcement_of(&id, &pool, &form.state.borrow());
        gauges::name(&announced);
        let runtime = Arc::new_cyclic(|own| Self {
            _gauges: RuntimeGauges::register(&pool, own),
            id,
            pool,
            announcement: watch::Sender::new(announced),
            updates: broadcast::Sender::new(BACKLOG),
            own_lists: watch::Sender::default(),
            subscribed: Mutex::default(),
            ledger: CallLedger::start(&form.config),
            fences: SessionFences::default(),
            draining: AtomicBool::new(false),
            forms: RwLock::new(Forms::new(Arc::clone(&form))),
        });
        runtime.follow_form(&form);
        runtime
    }

    fn announce(&self, form: &Arc<Form>) {
        let next = announcement_of(&self.id, &self.pool, &form.state.borrow());
        gauges::name(&next);
        // This lock is held so that a former form cannot announce after its successor.
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

    /// Returns a failed server's last stderr lines.
    pub fn last_words(&self) -> Vec<String> {
        self.forms.read().current().backend.last_words()
    }

    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    fn begin(
        &self,
        mut call: Call,
        ledger: Option<LedgerNumber>,
        first_turn: FirstTurn,
    ) -> Result<BegunCall, CallFailure> {
        // Checked first, because a former session owner must not take the call from its successor.
        self.fences.hear(&call.caller, call.epoch)?;
        let form = self.forms.read().enter(call.caller.session.as_ref());
        self.make_room(&form, &call);
        Ok(match self.enter(&form, &call, ledger, first_turn)? {
            Entered::Known(record) => self.rejoin(record, &call)?,
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

    fn rejoin(&self, record: Arc<CallRecord>, call: &Call) -> Result<BegunCall, CallFailure> {
        if record.is_withdrawn() && call.may_start != MayStart::No {
            let reason = "an earlier delivery of the call is being cancelled";
            return Err(CallFailure::not_executed(reason));
        }
        record.adopt(call.epoch)?;
        self.attached(&record, call.trace.as_ref());
        Ok(BegunCall {
            reader: record.attach(0),
            record,
            is_new: false,
        })
    }

    /// If the pool is full, removes a queued call to make room for `call`. Runs before `call`
    /// enters the ledger: a refusal there is final, and the locked entry would keep the removed
    /// call from leaving.
    fn make_room(&self, form: &Form, call: &Call) {
        let is_new = || call.may_start != MayStart::No && self.ledger.find(call.id).is_none();
        if form.admission.are_full() && is_new() && self.refusal(form, call).is_none() {
            form.pool.displace(call);
        }
    }

    fn enter(
        &self,
        form: &EnteredForm,
        call: &Call,
        ledger: Option<LedgerNumber>,
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
                    overload::RETRY_AFTER,
                )
            })
        };
        match (first_turn, call.repeat) {
            (FirstTurn::Here, Repeat::Safe) => self.ledger.enter_later(call, admit),
            _ => self.ledger.enter(call, ledger, admit),
        }
    }

    fn follow(&self, begun: BegunCall) -> RunningCall {
        self.ledger.keep(&begun.record);
        client::follow(begun.record, begun.reader, begun.reader, &self.id)
    }

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
            _ => return,
        };
        metrics().workers.refused(&self.pool, reason);
    }

    fn refusal(&self, form: &Form, call: &Call) -> Option<CallFailure> {
        let session = call.caller.session.as_ref();
        if session.is_some_and(|session| self.fences.has_ended(session)) {
            // The session's end cancelled its running calls, and cancels later ones too.
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

    async fn start(
        &self,
        call: Call,
        ledger: Option<LedgerNumber>,
    ) -> Result<RunningCall, CallFailure> {
        // One task delivers all calls of a link, so it must not run a tool.
        let begun = self.begin(call, ledger, FirstTurn::InActor);
        let begun = begun.inspect_err(|failure| self.refused(failure))?;
        Ok(self.follow(begun))
    }

    async fn start_known(
        &self,
        call: Call,
        ledger: Option<LedgerNumber>,
    ) -> Result<RunningCall, CallFailure> {
        self.fences.hear(&call.caller, call.epoch)?;
        let left = || Err::<Infallible, _>(CallFailure::worker_left());
        let known = self.ledger.enter(&call, ledger, left);
        match known.inspect_err(|failure| self.refused(failure))? {
            Entered::Known(record) => Ok(self.follow(self.rejoin(record, &call)?)),
            Entered::New(_, admission) => match admission {},
        }
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
            // A former reader gets number 0, which reads no events.
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
        // Recorded first, so that a new backend subscribes too.
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
        // Set first, so that every call of this and earlier owners is stopped or refused.
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
    fn start_now(
        &self,
        call: Call,
        ledger: Option<LedgerNumber>,
    ) -> Result<RunningCall, CallFailure> {
        let begun = self.begin(call, ledger, FirstTurn::Here)?;
        // If a new call has ended already, no other reader exists.
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
