//! Runs calls that are journaled before a worker gets them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures::future::Either;
use futures::poll;
use parking_lot::Mutex;
use shoal_ports::{
    Begin, Begun, Binding, CallFailure, CallOutcome, Delivered, DeliveryId, GatewayError, LogError,
    Retry, RunningCall, SessionTransport, Starting, StoreError, WorkerId,
};
use shoal_protocol::{EventId, StreamId};
use shoal_telemetry::trace::{self, names};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::{CallDriver, InFlight};
use crate::actor::record::RecordStep;
use crate::live::LiveSession;
use crate::measure;
use crate::store_failure::{AGAIN, log_failed, store_failed};
use crate::streams::{Attachment, Tail};

/// How long a reader waits for a stream that no one writes yet, while its call is journaled or taken over.
const ORPHANED_FOR: Duration = Duration::from_secs(10);

const FORGOTTEN: &str = "the store has lost the newest events of the stream";

pub(super) type Opened = oneshot::Sender<Result<Delivered, GatewayError>>;

/// The caller, which gets one answer: a JSON text, a stream or an error.
pub(super) struct WaitingCaller {
    opened: Mutex<Option<Opened>>,
    /// If the calls already run, the caller waits for as long as their events may wait for the store.
    runs: bool,
}

impl WaitingCaller {
    fn to_start(opened: Opened) -> Self {
        let (opened, runs) = (Mutex::new(Some(opened)), false);
        Self { opened, runs }
    }

    pub(super) fn to_go_on(opened: Opened) -> Self {
        let (opened, runs) = (Mutex::new(Some(opened)), true);
        Self { opened, runs }
    }

    pub(super) fn for_nobody() -> Self {
        Self::to_go_on(oneshot::channel().0)
    }

    pub(super) fn take(&self) -> Option<Opened> {
        self.opened.lock().take()
    }

    fn is_told(&self) -> bool {
        self.opened.lock().is_none()
    }

    /// Answers the caller, unless it has an answer. Returns whether it had none.
    pub(super) fn tell(&self, told: Result<Delivered, GatewayError>) -> bool {
        let waiting = self.take();
        let first = waiting.is_some();
        if let Some(waiting) = waiting {
            let _ = waiting.send(told);
        }
        first
    }
}

impl CallDriver {
    /// Journals calls that share a stream and runs them. The stream begins with `answers`. Completes even if the caller
    /// leaves.
    pub(crate) async fn carry_journaled(
        self: &Arc<Self>,
        calls: Vec<InFlight>,
        answers: Vec<Bytes>,
        delivery: DeliveryId,
    ) -> Result<Delivered, GatewayError> {
        let (opened, opening) = oneshot::channel();
        tokio::spawn(self.clone().begin_and_run(calls, answers, delivery, opened));
        opening.await.unwrap_or_else(|_| Err(died()))
    }

    async fn begin_and_run(
        self: Arc<Self>,
        mut calls: Vec<InFlight>,
        answers: Vec<Bytes>,
        delivery: DeliveryId,
        opened: Opened,
    ) {
        let Some(live) = calls.first().map(|call| call.live.clone()) else {
            return;
        };
        // Bind each call, because only the worker named in the journal may run it.
        calls.iter_mut().for_each(|call| call.plan.bind());
        // A call that already ran when it became a task must not be reported as not executed.
        let runs = |call: &InFlight| call.is_task() && (call.repeated || !call.runs_once());
        let waiting = match calls.iter().all(runs) {
            true => WaitingCaller::to_go_on(opened),
            false => WaitingCaller::to_start(opened),
        };
        let tail = match self.begin(&live, &calls, delivery, &waiting).await {
            Ok(tail) => tail,
            Err(instead) => {
                waiting.tell(instead);
                return;
            }
        };
        let Some(opened) = waiting.take() else {
            return self.take_back(&calls, &tail).await;
        };
        for call in calls
            .iter_mut()
            .filter(|call| call.is_task() && !call.runs_once())
        {
            call.unbind();
        }
        for call in calls.iter_mut().filter(|call| !call.repeated) {
            call.begins_here();
        }
        let open = |from| match live.transport {
            SessionTransport::Streamable | SessionTransport::Task => {
                self.read_from(&live, &tail, from)
            }
            SessionTransport::SingleStream => Delivered::Accepted,
        };
        let beginning = tail.last();
        if let ([], [_]) = (&answers[..], &calls[..])
            && let Some(call) = calls.pop()
        {
            let mut run = Box::pin(self.run(call, &tail, None));
            let ended = poll!(&mut run).is_ready();
            let _ = opened.send(Ok(open(beginning)));
            if !ended {
                run.await;
            }
            return;
        }
        let _ = opened.send(Ok(open(beginning)));
        if !answers.is_empty()
            && let Err(error) = live.streams.append(&tail, answers, None).await
        {
            tracing::warn!(session = %live.id, %error, "cannot append the answers of a batch");
        }
        let last = calls.pop();
        for call in calls {
            let (driver, tail) = (self.clone(), tail.clone());
            tokio::spawn(async move { driver.run(call, &tail, None).await });
        }
        if let Some(call) = last {
            Box::pin(self.run(call, &tail, None)).await;
        }
    }

    /// Opens a stream for the calls. The error is the caller's answer.
    pub(super) async fn begin(
        &self,
        live: &Arc<LiveSession>,
        calls: &[InFlight],
        delivery: DeliveryId,
        waiting: &WaitingCaller,
    ) -> Result<Arc<Tail>, Result<Delivered, GatewayError>> {
        live.share.check().map_err(Err)?;
        let single = live.transport == SessionTransport::SingleStream;
        let begin = Begin {
            delivery,
            stream: single.then_some(StreamId::STANDALONE),
            entries: calls.iter().map(InFlight::entry).collect(),
            running: false,
        };
        let _span = trace::client(names::JOURNAL_BEGIN)
            .parent(calls.first().and_then(|call| call.span.context()))
            .start();
        let since = Instant::now();
        // Run-once calls that already run may use the store's reserve. Without room, they continue without a journal
        // entry, Shoal cancels other running calls, and a task continues as a plain call.
        let kept = |call: &InFlight| call.runs_once() && !call.is_task();
        let keeps = waiting.runs && calls.iter().all(kept);
        let begun = self.begin_surely(live, begin, since, waiting, keeps).await;
        measure::begun(since, &begun);
        if let Ok(Begun::Now(_)) = begun {
            calls.iter().for_each(|call| call.journaled(&self.running));
        }
        let tail = match begun {
            Ok(Begun::Now(id)) => self.tail_of(live, id, delivery).await,
            Ok(Begun::Before(id)) => return Err(self.read_again(live, id).await),
            Err(error) => Err(error),
        };
        let tail = tail.map_err(|error| Err(log_failed(&error, &self.config)))?;
        tail.enter(calls.iter().map(|call| call.open_call(0)));
        Ok(tail)
    }

    async fn tail_of(
        &self,
        live: &LiveSession,
        begun: EventId,
        delivery: DeliveryId,
    ) -> Result<Arc<Tail>, LogError> {
        match live.transport {
            SessionTransport::SingleStream => live.streams.standalone().await,
            SessionTransport::Streamable | SessionTransport::Task => {
                Ok(live.streams.begin(begun, Some(delivery)))
            }
        }
    }

    /// Answers a repeated delivery with the stream that its earlier delivery opened.
    pub(crate) async fn read_again(
        &self,
        live: &LiveSession,
        beginning: EventId,
    ) -> Result<Delivered, GatewayError> {
        if live.transport == SessionTransport::SingleStream {
            return Ok(Delivered::Accepted);
        }
        let prime = live.primes_streams();
        let attachment = self.resume_stream(live, beginning, prime).await?;
        Ok(Delivered::Stream(attachment.start(())))
    }

    /// Resumes a stream. If the stream is open but this node does not write it, waits: either this node is about to
    /// write it, or the session has moved.
    ///
    /// # Errors
    /// The log's error; `Moved` if the session has moved; `HistoryGone` if no node writes the stream in time.
    pub(crate) async fn resume_stream(
        &self,
        live: &LiveSession,
        cursor: EventId,
        prime: bool,
    ) -> Result<Attachment, GatewayError> {
        let until = Instant::now() + ORPHANED_FOR;
        loop {
            let attachment = live.streams.resume(cursor, prime).await;
            let attachment = attachment.map_err(|error| log_failed(&error, &self.config))?;
            if !attachment.orphaned {
                return Ok(attachment);
            }
            self.check_ownership(live).await?;
            if Instant::now() >= until {
                return Err(GatewayError::HistoryGone(FORGOTTEN.into()));
            }
            sleep(AGAIN).await;
        }
    }

    /// Asks the store whether this node owns the session; `Moved` if not.
    pub(crate) async fn check_ownership(&self, live: &LiveSession) -> Result<(), GatewayError> {
        let asked = [(live.id.clone(), live.epoch)];
        let held = self.store.directory.held(&asked).await;
        let held = held.map_err(|error| store_failed(&error, &self.config))?;
        if held.first() == Some(&true) {
            return Ok(());
        }
        live.lose();
        Err(GatewayError::Moved { owner: None })
    }

    /// Journals calls and opens their stream. Repeats a step that the store did not confirm, because a later owner
    /// could start an abandoned call. If the calls do not run yet, the client waits less: it learns that the outcome is
    /// unknown, and the calls do not run.
    ///
    /// A full store refuses new calls, but running ones (`keeps`) may use its reserve. If they did, later calls are
    /// journaled before their start.
    async fn begin_surely(
        &self,
        live: &Arc<LiveSession>,
        mut begin: Begin,
        began: Instant,
        waiting: &WaitingCaller,
        keeps: bool,
    ) -> Result<Begun, LogError> {
        let journal = &self.store.journal;
        let mut doubtful = false;
        loop {
            let begun = journal.begin(&live.id, live.epoch, begin.clone()).await;
            match begun {
                Err(LogError::Store(StoreError::Stale)) => {
                    live.lose();
                    return begun;
                }
                Err(LogError::Store(StoreError::NotFound)) => {
                    live.streams.end();
                    return begun;
                }
                Err(LogError::Store(StoreError::Forgotten)) => {
                    let _ = live.write_record(RecordStep::Restore).await;
                }
                Err(LogError::Store(StoreError::Unavailable(_))) => doubtful = true,
                Err(LogError::Store(StoreError::Away(_))) => {}
                Err(LogError::Store(StoreError::Full(_))) if keeps && !begin.running => {
                    begin.running = true;
                    continue;
                }
                Ok(_) => {
                    self.is_full.store(begin.running, Ordering::Relaxed);
                    return begun;
                }
                begun => return begun,
            }
            if waiting.runs && waiting.is_told() && !doubtful {
                return begun;
            }
            let patience = match doubtful || waiting.runs {
                true => self.config.streams.store_patience.get(),
                false => self.config.begin_patience,
            };
            if began.elapsed() >= patience || live.is_lost() {
                return begun;
            }
            if doubtful && !waiting.runs && began.elapsed() >= self.config.begin_patience {
                waiting.tell(Err(GatewayError::Unreachable {
                    reason: "the store did not confirm that the request was taken".to_owned(),
                }));
            }
            sleep(AGAIN).await;
        }
    }

    async fn take_back(&self, calls: &[InFlight], tail: &Tail) {
        for call in calls {
            let failure = CallFailure::not_executed("the store was unreachable for too long");
            self.finish_failed(failure, call, tail).await;
        }
    }

    /// Runs a journaled call on its worker. If that worker refuses, journals the call for another worker and runs it
    /// there.
    pub(super) async fn run(
        &self,
        mut in_flight: InFlight,
        tail: &Tail,
        mut starting: Option<Starting>,
    ) {
        let mut tried: Vec<WorkerId> = Vec::new();
        let failure = loop {
            let starting = starting.take().unwrap_or_else(|| self.start(&in_flight));
            let Some(started) = self.start_in_session(starting, &in_flight, tail).await else {
                return;
            };
            match started {
                Ok(mut running) => {
                    if let Some(outcome) = running.events.take_ended() {
                        return self.finish(Vec::new(), outcome, 1, &in_flight, tail).await;
                    }
                    in_flight.started(&running);
                    return self.pump(running, &mut in_flight, tail).await;
                }
                Err(CallFailure::Superseded { epoch }) => {
                    match self.reclaim(&mut in_flight, 0, Some(epoch)).await {
                        Some(Ok(running)) => {
                            in_flight.started(&running);
                            return self.pump(running, &mut in_flight, tail).await;
                        }
                        Some(Err(failure)) => break failure,
                        None => return self.end_with_session(0, &in_flight, tail).await,
                    }
                }
                Err(CallFailure::WorkerAway { reason }) if in_flight.came_bound => {
                    break CallFailure::OutcomeUnknown { reason };
                }
                Err(failure) if failure.retry() == Retry::Always && in_flight.refused.is_none() => {
                    if in_flight.slot.is_cancelled() {
                        break CallFailure::Cancelled;
                    }
                    let Some(next) = self.next_worker(&mut in_flight, &mut tried) else {
                        break failure;
                    };
                    if !self.rebind(&in_flight, &next).await {
                        break failure;
                    }
                    in_flight.bind(next);
                }
                Err(failure) => break failure,
            }
        };
        let refused = in_flight.refusal_after(&failure);
        let outcome = refused.unwrap_or(CallOutcome::Failed(failure));
        self.finish(Vec::new(), outcome, 0, &in_flight, tail).await;
    }

    /// Starts the call at its worker. `None` if the session ends or moves first.
    async fn start_in_session(
        &self,
        starting: Starting,
        in_flight: &InFlight,
        tail: &Tail,
    ) -> Option<Result<RunningCall, CallFailure>> {
        let mut starting = match starting {
            Either::Left(started) => return Some(started.into_inner()),
            Either::Right(starting) => starting,
        };
        tokio::select! {
            biased;
            started = &mut starting => return Some(started),
            () = in_flight.live.until_over() => {}
        }
        self.end_with_session(0, in_flight, tail).await;
        if let Ok(running) = starting.await
            && !in_flight.live.is_lost()
        {
            running.control.cancel(in_flight.live.streams.why_ending());
        }
        None
    }

    async fn finish_failed(&self, failure: CallFailure, in_flight: &InFlight, tail: &Tail) {
        let outcome = CallOutcome::Failed(failure);
        self.finish(Vec::new(), outcome, 0, in_flight, tail).await;
    }

    /// Returns `None` if there is no other worker, or the call has tried enough.
    pub(super) fn next_worker(
        &self,
        in_flight: &mut InFlight,
        tried: &mut Vec<WorkerId>,
    ) -> Option<Binding> {
        let refused = in_flight.plan.call.binding.take();
        tried.extend(refused.map(|binding| binding.worker));
        let may_try = !tried.is_empty() && tried.len() < self.config.calls.attempts;
        may_try.then(|| self.dispatcher.replan(&in_flight.plan, tried))?
    }

    async fn rebind(&self, in_flight: &InFlight, binding: &Binding) -> bool {
        let (live, call) = (&in_flight.live, in_flight.plan.call.id);
        let journal = &self.store.journal;
        let rebound = journal.rebind(&live.id, live.epoch, call, binding).await;
        live.streams.rebound(call, binding);
        if let Err(error) = &rebound {
            tracing::warn!(session = %live.id, %call, %error, "cannot journal the call's new worker");
        }
        rebound.is_ok()
    }
}

pub(super) fn died() -> GatewayError {
    GatewayError::Internal("the internal task that runs the call failed".to_owned())
}
