//! Calls that are journaled before they are dispatched, and the step that journals.

use std::pin::pin;
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
use crate::actor::record::Step;
use crate::live::{LiveSession, log_failed, store_failed};
use crate::measure;
use crate::streams::{Attachment, Tail};

/// How often a step that the store did not confirm is tried again.
pub(crate) const AGAIN: Duration = Duration::from_millis(100);
/// How long a stream that nobody writes is waited for: its call is being journaled, or taken over.
const ORPHANED_FOR: Duration = Duration::from_secs(10);

/// What a client is told of a stream whose end was lost.
const FORGOTTEN: &str = "the store has lost the end of the stream";

pub(super) type Opened = oneshot::Sender<Result<Delivered, GatewayError>>;

/// Whoever waits for the answer, until told. There is one way out, under one lock: a JSON text, or a stream that is in the
/// log.
pub(super) struct Waiting {
    opened: Mutex<Option<Opened>>,
    /// Whether the calls run: then the client waits for as long as what they send may wait for the store.
    runs: bool,
}

impl Waiting {
    fn to_start(opened: Opened) -> Self {
        let (opened, runs) = (Mutex::new(Some(opened)), false);
        Self { opened, runs }
    }

    pub(super) fn to_go_on(opened: Opened) -> Self {
        let (opened, runs) = (Mutex::new(Some(opened)), true);
        Self { opened, runs }
    }

    /// The client of a call that runs has gone.
    pub(super) fn for_nobody() -> Self {
        Self::to_go_on(oneshot::channel().0)
    }

    pub(super) fn take(&self) -> Option<Opened> {
        self.opened.lock().take()
    }

    fn is_told(&self) -> bool {
        self.opened.lock().is_none()
    }

    /// Tells it, unless something has been told; whether nothing had.
    pub(super) fn tell(&self, told: Result<Delivered, GatewayError>) -> bool {
        let waiting = self.take();
        let first = waiting.is_some();
        if let Some(waiting) = waiting {
            // Nobody is left to tell when the connection is gone.
            let _ = waiting.send(told);
        }
        first
    }
}

impl CallDriver {
    /// Journals calls that are answered on one stream, and runs them; `answers` go on the stream before.
    ///
    /// Begins in a task of its own: whatever becomes of the caller, what was journaled is also run.
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
        // The journal names the only worker that may run a call.
        calls.iter_mut().for_each(|call| call.plan.bind());
        // A call that became a task runs already: that it was not executed must never be said of it. One that begins as a task is
        // known not to run, unless it was delivered before.
        let runs = |call: &InFlight| call.is_task() && (call.repeated || !call.is_once());
        let waiting = match calls.iter().all(runs) {
            true => Waiting::to_go_on(opened),
            false => Waiting::to_start(opened),
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
            .filter(|call| call.is_task() && !call.is_once())
        {
            // It is found where its edge has begun it, and may run elsewhere if that worker is lost.
            call.unbind();
        }
        for call in calls.iter_mut().filter(|call| !call.repeated) {
            // It is begun here and now, before its start.
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
            let mut run = pin!(self.run(call, &tail, None));
            // An answer that needs no waiting is written by now, and leaves together with what opens the stream.
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
            tracing::warn!(session = %live.id, %error, "could not append the answers of a batch");
        }
        let last = calls.pop();
        for call in calls {
            let (driver, tail) = (self.clone(), tail.clone());
            tokio::spawn(async move { driver.run(call, &tail, None).await });
        }
        if let Some(call) = last {
            self.run(call, &tail, None).await;
        }
    }

    /// One step: the stream is opened, and the calls are in the journal.
    ///
    /// # Errors
    /// What whoever waits is to be told instead.
    pub(super) async fn begin(
        &self,
        live: &Arc<LiveSession>,
        calls: &[InFlight],
        delivery: DeliveryId,
        waiting: &Waiting,
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
        // What has begun and must not run twice is seen through; whatever else runs is told to stop, and may come again. What finds no
        // room as a task goes on without being one.
        let kept = |call: &InFlight| call.is_once() && !call.is_task();
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

    /// What an earlier delivery began. The client, which may have got nothing of it, is given an id.
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

    /// Resumes a stream. One that has not finished and that nobody writes here is about to be written, or
    /// somebody else owns the session.
    ///
    /// # Errors
    /// As the log says; `Moved` when the session is not this node's any more.
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
                // Its end is not in the log, and nobody will write it.
                return Err(GatewayError::HistoryGone(FORGOTTEN.into()));
            }
            sleep(AGAIN).await;
        }
    }

    /// Asks the store whether the session is still this node's.
    ///
    /// # Errors
    /// `Moved` when it is not.
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

    /// Journals. A step that the store does not confirm is repeated: whether it was done must be known
    /// before this node may forget it, lest a later owner starts a call that nobody waits for. The client
    /// does not wait that long for a call to start; it is told that the outcome is unknown, and the call is
    /// not run.
    ///
    /// A store that is full refuses what begins. Of calls that it `keeps` it is asked to take them from its reserve, and those
    /// that begin after them are journaled before their start, until it has room again.
    async fn begin_surely(
        &self,
        live: &Arc<LiveSession>,
        mut begin: Begin,
        began: Instant,
        waiting: &Waiting,
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
                    // The store has no such session any more: whoever waits or reads is to find that out.
                    live.streams.end();
                    return begun;
                }
                Err(LogError::Store(StoreError::Forgotten)) => {
                    // What fails here is asked for again below.
                    let _ = live.write_record(Step::Restore).await;
                }
                Err(LogError::Store(StoreError::Unavailable(_))) => doubtful = true,
                Err(LogError::Store(StoreError::Away(_))) => {}
                Err(LogError::Store(StoreError::Full(_))) if keeps && !begin.running => {
                    begin.running = true;
                    continue;
                }
                Ok(_) => {
                    // By its reserve, or not.
                    self.is_full.store(begin.running, Ordering::Relaxed);
                    return begun;
                }
                begun => return begun,
            }
            // It was answered meanwhile: only what may have been done is to be seen through.
            if waiting.runs && waiting.is_told() && !doubtful {
                return begun;
            }
            let patience = match doubtful || waiting.runs {
                true => self.config.store_patience,
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

    /// Ends calls that were journaled too late: their client has been told already.
    async fn take_back(&self, calls: &[InFlight], tail: &Tail) {
        for call in calls {
            let failure = CallFailure::not_executed("the store was away too long");
            self.finish_failed(failure, call, tail).await;
        }
    }

    /// Runs a journaled call on the worker that its journal names, where it may be `starting` already; if that does not take
    /// it, on another, which is journaled first.
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
                // It may have gone there by another delivery.
                Err(CallFailure::WorkerAway { reason }) if in_flight.came_bound => {
                    break CallFailure::OutcomeUnknown { reason };
                }
                Err(failure) if failure.retry() == Retry::Safe => {
                    if in_flight.slot.is_cancelled() {
                        break CallFailure::Cancelled;
                    }
                    // Nothing of it has begun there, and never will: it is planned anew.
                    tried.extend(in_flight.plan.call.worker.take());
                    in_flight.plan.call.ledger = None;
                    if tried.is_empty() || tried.len() >= self.config.start_attempts {
                        break failure;
                    }
                    let Some(next) = self.dispatcher.replan(&in_flight.plan, &tried) else {
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
        self.finish_failed(failure, &in_flight, tail).await;
    }

    /// Starts a call; `None` when its session is over before it has started.
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
        // Nobody else could tell it to stop; that of a session that is lost is found by the next owner.
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

    async fn rebind(&self, in_flight: &InFlight, binding: &Binding) -> bool {
        let (live, call) = (&in_flight.live, in_flight.plan.call.id);
        let journal = &self.store.journal;
        let rebound = journal.rebind(&live.id, live.epoch, call, binding).await;
        live.streams.rebound(call, binding);
        if let Err(error) = &rebound {
            tracing::warn!(session = %live.id, %call, %error, "could not journal another worker");
        }
        rebound.is_ok()
    }
}

pub(super) fn died() -> GatewayError {
    GatewayError::Internal("the task that carries the call died".to_owned())
}
