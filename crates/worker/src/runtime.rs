//! The worker runtime: runs the calls of any backend in a bounded actor pool.
//!
//! | | |
//! |---|---|
//! | `admission` | admission: how many calls run, wait, and ask |
//! | `pool` | the actors that run them |
//! | `slot` | a call's actor, which it leaves while it asks |
//! | `execute` | one call's deadline, cancellation and panics |
//! | `record` | one call's events, questions and reader |
//! | `ledger` | which calls can be attached to |
//! | `fences` | which owners of sessions are former ones, and whose calls must not begin any more |
//! | `tombstones` | which calls must not run again, by the ledger's numbers |
//! | `gauges`, `measure` | what metrics are told |

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use parking_lot::Mutex;
use shoal_ports::{
    Announcement, Attach, BusEvent, Call, CallFailure, CallId, Durability, LedgerNumber,
    RunningCall, SessionId, Worker, WorkerHere, WorkerId, WorkerLoad,
};
use shoal_protocol::{RpcError, TraceContext};
use shoal_telemetry::metrics::{ShedReason, metrics};
use shoal_telemetry::trace::{self, Span, attributes as key, names};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;

use crate::backend::{Backend, BackendState};

mod admission;
mod client;
mod config;
mod deserted;
mod event_buffer;
mod execute;
mod fences;
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

use admission::{Admission, Permit};
use fences::SessionFences;
use gauges::Gauges;
use ledger::{Entered, Ledger};
use pool::{FirstTurn, Pool, PooledCall};
use record::CallRecord;

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
pub struct WorkerRuntime {
    id: WorkerId,
    config: PoolConfig,
    backend: Arc<dyn Backend>,
    state: watch::Receiver<BackendState>,
    announcement: watch::Sender<Announcement>,
    admission: Arc<Admission>,
    ledger: Arc<Ledger>,
    fences: SessionFences,
    pool: Pool,
    stopped: Mutex<Option<JoinHandle<()>>>,
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
        let admission = Admission::new(&config);
        let (pool, stopped) =
            Pool::start(&config, Arc::clone(&backend), Arc::clone(&admission)).await;
        let mut state = backend.state();
        let announced = announcement_of(&id, &config.pool, &state.borrow_and_update());
        gauges::name(&announced);
        let runtime = Arc::new_cyclic(|own| Self {
            _gauges: Gauges::register(&config.pool, own),
            id,
            admission,
            ledger: Ledger::start(&config),
            fences: SessionFences::default(),
            config,
            state: state.clone(),
            announcement: watch::Sender::new(announced),
            backend,
            pool,
            stopped: Mutex::new(Some(stopped)),
            draining: AtomicBool::new(false),
        });
        tokio::spawn(Self::announce(Arc::downgrade(&runtime), state));
        runtime
    }

    /// Passes on what the backend says of itself, until the runtime is gone or drains.
    async fn announce(runtime: Weak<Self>, mut state: watch::Receiver<BackendState>) {
        while state.changed().await.is_ok() {
            let Some(runtime) = runtime.upgrade() else {
                return;
            };
            let next = announcement_of(
                &runtime.id,
                &runtime.config.pool,
                &state.borrow_and_update(),
            );
            gauges::name(&next);
            runtime.announcement.send_if_modified(|announced| {
                let goes_on = !runtime.draining.load(Ordering::Acquire);
                if goes_on {
                    *announced = next;
                }
                goes_on
            });
        }
    }

    /// Has a call run, or finds it.
    fn begin(&self, mut call: Call, first_turn: FirstTurn) -> Result<BegunCall, CallFailure> {
        // Before it is looked for: a former owner would take it from the next one.
        self.fences.hear(&call.caller, call.epoch)?;
        self.make_room(&call);
        Ok(match self.enter(&call, first_turn)? {
            Entered::Known(record) => {
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
                self.pool.dispatch(work, first_turn);
                BegunCall {
                    record,
                    reader,
                    is_new: true,
                }
            }
        })
    }

    /// Before the call is entered: a refusal is final, and what is displaced is in the same ledger.
    fn make_room(&self, call: &Call) {
        let is_new = || !call.attach_only && self.ledger.find(call.id).is_none();
        if self.admission.are_full() && is_new() && self.refusal(call).is_none() {
            self.pool.displace(call);
        }
    }

    fn enter(&self, call: &Call, first_turn: FirstTurn) -> Result<Entered<Permit>, CallFailure> {
        let admit = || {
            self.refusal(call).map_or(Ok(()), Err)?;
            if self.admission.are_busy() {
                self.pool.admit(call)?;
            }
            self.admission.take().ok_or_else(|| {
                CallFailure::overloaded(
                    format!("the queue of pool {} is full", self.config.pool),
                    pool::RETRY_AFTER,
                )
            })
        };
        match (first_turn, call.durability) {
            (FirstTurn::Here, Durability::Repeatable) => self.ledger.enter_later(call, admit),
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
                set.set(key::POOL, &self.config.pool)
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
            CallFailure::NotExecuted { .. } if self.draining.load(Ordering::Acquire) => {
                ShedReason::Draining
            }
            CallFailure::NotExecuted { .. } => ShedReason::NoWorker,
            // It was admitted once before.
            _ => return,
        };
        metrics().workers.refused(&self.config.pool, reason);
    }

    fn refusal(&self, call: &Call) -> Option<CallFailure> {
        let session = call.caller.session.as_ref();
        if session.is_some_and(|session| self.fences.has_ended(session)) {
            // As those of its calls that were running: it is for no other worker either.
            return Some(CallFailure::Cancelled);
        }
        let reason = if self.draining.load(Ordering::Acquire) {
            "the worker is shutting down".to_owned()
        } else {
            let state = self.state.borrow();
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

    fn news(&self) -> broadcast::Receiver<BusEvent> {
        self.backend.news()
    }

    fn load(&self) -> WorkerLoad {
        self.admission.load()
    }

    fn open_calls(&self) -> usize {
        let load = self.admission.load();
        load.running + load.queued + self.admission.asking() + self.ledger.undelivered()
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
        self.backend.subscribe(uri).await
    }

    async fn unsubscribe(&self, uri: &str) {
        self.backend.unsubscribe(uri).await;
    }

    async fn end_session(&self, session: &SessionId) {
        // First, so that what its owner has sent before, and what an earlier one has, is either stopped or refused.
        self.fences.end(session);
        for call in self.ledger.open() {
            if call.caller.session.as_ref() == Some(session) {
                call.stop(CallFailure::Cancelled);
            }
        }
        self.backend.end_session(session).await;
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

impl Drop for WorkerRuntime {
    fn drop(&mut self) {
        // Actors outlive their handles. One that was shut down has stopped already.
        self.pool.stop();
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
