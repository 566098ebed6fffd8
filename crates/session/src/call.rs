//! Carrying one request from its admission to its answer.
//!
//! A call that is safe to repeat runs in its caller's own task and is answered as JSON if its result
//! comes first and soon. Every other call gets a stream in the log, and a task of its own that appends
//! what the call sends before anybody may read it.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use shoal_ports::{
    CallControl, CallEvent, CallEventKind, CallFailure, CallId, CallOutcome, Delivered, Dispatcher,
    Durability, GatewayError, JournalEntry, LogError, RunningCall, SessionTransport, Store,
    StoreError,
};
use shoal_protocol::{Outcome, RequestId, RpcError, code, error_response, notification, response};
use tokio::time::{Instant, timeout};

use crate::config::SessionConfig;
use crate::live::{LiveSession, log_failed};
use crate::state::{AdmittedCall, Effect, Input};
use crate::streams::Tail;

/// What a call needs of its node.
pub(crate) struct Carrier {
    pub(crate) config: Arc<SessionConfig>,
    pub(crate) store: Store,
    pub(crate) dispatcher: Arc<dyn Dispatcher>,
}

/// Frees a request's id when its call is over, however it ends.
struct InFlight {
    live: Arc<LiveSession>,
    request: RequestId,
    call: CallId,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.live.note(Input::Ended(self.request.clone()));
    }
}

impl Carrier {
    /// Runs an admitted call and says how its answer travels.
    ///
    /// If the future is dropped before a stream is open, a repeatable call's answer is lost with its
    /// connection: the client had no id to come back with and will ask again. A journaled call runs on.
    pub(crate) async fn carry(
        self: &Arc<Self>,
        live: &Arc<LiveSession>,
        admitted: AdmittedCall,
    ) -> Result<Delivered, GatewayError> {
        let (in_flight, durability, start) = self.prepare(live, admitted);
        if live.transport == SessionTransport::Streamable && durability == Durability::Repeatable {
            return self.carry_repeatable(start, in_flight).await;
        }
        // Boxed, so that the future of a repeatable call stays small.
        Box::pin(async {
            if live.transport == SessionTransport::SingleStream {
                let tail = live.streams.standalone().await;
                let tail = tail.map_err(|error| log_failed(&error, &self.config))?;
                self.spawn(start, in_flight, tail);
                return Ok(Delivered::Accepted);
            }
            let tail = self.journal(live, vec![in_flight.entry()]).await?;
            let opened = self.read_from_start(live, &tail);
            self.spawn(start, in_flight, tail);
            Ok(opened)
        })
        .await
    }

    /// Runs an admitted call whose answer goes to a stream that is open already (a batch's).
    pub(crate) fn carry_onto(
        self: &Arc<Self>,
        live: &Arc<LiveSession>,
        admitted: AdmittedCall,
        tail: Arc<Tail>,
    ) {
        let (in_flight, _, start) = self.prepare(live, admitted);
        self.spawn(start, in_flight, tail);
    }

    /// Gives an admitted call its deadline and its way; the future starts it.
    fn prepare(
        &self,
        live: &Arc<LiveSession>,
        admitted: AdmittedCall,
    ) -> (
        InFlight,
        Durability,
        impl Future<Output = Result<RunningCall, CallFailure>> + Send + use<>,
    ) {
        let AdmittedCall {
            request,
            call,
            slot,
        } = admitted;
        let in_flight = InFlight {
            live: live.clone(),
            request,
            call: call.id,
        };
        let durability = self
            .dispatcher
            .durability(&call.method, call.params.as_ref());
        let call = call.into_call(durability, Instant::now() + self.config.call_timeout);
        let dispatcher = self.dispatcher.clone();
        let start = async move {
            let running = dispatcher.start(call).await?;
            slot.started(running.control.clone());
            Ok(running)
        };
        (in_flight, durability, start)
    }

    /// Opens a stream whose calls are journaled.
    pub(crate) async fn journal(
        &self,
        live: &LiveSession,
        entries: Vec<JournalEntry>,
    ) -> Result<Arc<Tail>, GatewayError> {
        let answers = entries.len();
        let beginning = self
            .store
            .journal
            .begin(&live.id, live.epoch, entries)
            .await
            .map_err(|error| log_failed(&error, &self.config))?;
        Ok(live.streams.begin(beginning, answers))
    }

    /// The connection that asked reads the new stream.
    pub(crate) fn read_from_start(&self, live: &LiveSession, tail: &Arc<Tail>) -> Delivered {
        let beginning = tail.last();
        let attachment = live
            .streams
            .read_live(tail.clone(), beginning, live.primes_streams());
        Delivered::Stream(attachment.stream)
    }

    async fn carry_repeatable(
        self: &Arc<Self>,
        start: impl Future<Output = Result<RunningCall, CallFailure>>,
        in_flight: InFlight,
    ) -> Result<Delivered, GatewayError> {
        let mut running = match start.await {
            Ok(running) => running,
            Err(CallFailure::Overloaded {
                reason,
                retry_after,
            }) => {
                return Err(GatewayError::Overloaded {
                    reason,
                    retry_after,
                });
            }
            Err(failure) => {
                return Ok(in_flight.json(CallOutcome::Failed(failure)));
            }
        };
        let first = timeout(self.config.grace, running.events.next()).await;
        match first {
            Ok(Some(CallEvent {
                kind: CallEventKind::Finished(outcome),
                ..
            })) => Ok(in_flight.json(outcome)),
            Ok(None) => Ok(in_flight.json(CallOutcome::Failed(lost_worker()))),
            Ok(Some(event)) => Box::pin(self.become_stream(running, Some(event), in_flight)).await,
            Err(_) => Box::pin(self.become_stream(running, None, in_flight)).await,
        }
    }

    /// A repeatable call has something to say before its end, or takes long.
    async fn become_stream(
        self: &Arc<Self>,
        running: RunningCall,
        first: Option<CallEvent>,
        in_flight: InFlight,
    ) -> Result<Delivered, GatewayError> {
        let live = in_flight.live.clone();
        let beginning = match self.store.log.open(&live.id, live.epoch).await {
            Ok(beginning) => beginning,
            Err(error) => {
                running
                    .control
                    .cancel("no stream could be opened for its events");
                return Err(log_failed(&error, &self.config));
            }
        };
        let tail = live.streams.begin(beginning, 1);
        let opened = self.read_from_start(&live, &tail);
        let carrier = self.clone();
        tokio::spawn(async move {
            carrier.pump(running, first, &in_flight, &tail).await;
        });
        Ok(opened)
    }

    fn spawn(
        self: &Arc<Self>,
        start: impl Future<Output = Result<RunningCall, CallFailure>> + Send + 'static,
        in_flight: InFlight,
        tail: Arc<Tail>,
    ) {
        let carrier = self.clone();
        tokio::spawn(async move {
            match start.await {
                Ok(running) => carrier.pump(running, None, &in_flight, &tail).await,
                Err(failure) => {
                    let outcome = CallOutcome::Failed(failure);
                    carrier.finish(Vec::new(), outcome, &in_flight, &tail).await;
                }
            }
        });
    }

    /// Appends what the call sends until it ends.
    async fn pump(
        &self,
        running: RunningCall,
        first: Option<CallEvent>,
        in_flight: &InFlight,
        tail: &Tail,
    ) {
        let RunningCall {
            mut events,
            control,
            ..
        } = running;
        let mut next = first;
        loop {
            let event = match next.take() {
                Some(event) => Some(event),
                None => events.next().await,
            };
            // Events that are due together go into the log together.
            let mut due = Vec::new();
            let mut event = event;
            let outcome = loop {
                match event.map(|event| event.kind) {
                    None => break Some(CallOutcome::Failed(lost_worker())),
                    Some(CallEventKind::Finished(outcome)) => break Some(outcome),
                    Some(kind) => {
                        self.translate(kind, &control, in_flight, tail, &mut due)
                            .await
                    }
                }
                match events.next().now_or_never() {
                    Some(more) => event = more,
                    None => break None,
                }
            };
            match outcome {
                Some(outcome) => return self.finish(due, outcome, in_flight, tail).await,
                None => {
                    if let Err(error) = self.append(due, in_flight, tail).await {
                        control.cancel("its session has moved or ended");
                        tracing::debug!(session = %in_flight.live.id, %error, "gave up a call");
                        return;
                    }
                }
            }
        }
    }

    /// Turns an event of the call into a message for the client.
    async fn translate(
        &self,
        kind: CallEventKind,
        control: &Arc<dyn CallControl>,
        in_flight: &InFlight,
        tail: &Tail,
        due: &mut Vec<Bytes>,
    ) {
        match kind {
            CallEventKind::Notification { method, params } => {
                due.push(notification(method.as_str(), params.as_ref()));
            }
            CallEventKind::Ask {
                ask,
                method,
                params,
            } => {
                let request = in_flight.request.clone();
                let input = Input::Asked {
                    request,
                    ask,
                    method,
                    params,
                };
                match in_flight.live.apply(input, &self.config).await {
                    Ok(Effect::Ask(message)) => due.push(message),
                    _ => {
                        let refused = RpcError::internal("the session cannot put requests now");
                        control.answer(ask, Outcome::Error(refused));
                    }
                }
            }
            CallEventKind::CloseStream { retry } => {
                // What came before the hint must reach the client before the connection closes.
                if let Err(error) = self.append(std::mem::take(due), in_flight, tail).await {
                    tracing::debug!(session = %in_flight.live.id, %error, "could not append");
                }
                if in_flight.live.primes_streams() {
                    tail.close_reader(retry);
                }
            }
            CallEventKind::Finished(_) => {}
        }
    }

    /// Appends notifications and requests. When the log is full, they are dropped, and the call's answer
    /// is what is kept room for.
    async fn append(
        &self,
        due: Vec<Bytes>,
        in_flight: &InFlight,
        tail: &Tail,
    ) -> Result<(), LogError> {
        if due.is_empty() {
            return Ok(());
        }
        match in_flight.live.streams.append(tail, due).await {
            Err(LogError::Store(StoreError::Full(limit))) => {
                tracing::warn!(session = %in_flight.live.id, limit, "dropped events of a call");
                Ok(())
            }
            other => other,
        }
    }

    async fn finish(
        &self,
        mut due: Vec<Bytes>,
        outcome: CallOutcome,
        in_flight: &InFlight,
        tail: &Tail,
    ) {
        let streams = &in_flight.live.streams;
        // The id is free again before the client can know that.
        in_flight.live.note(Input::Ended(in_flight.request.clone()));
        due.push(in_flight.answer(outcome));
        let mut written = streams.append_answer(tail, due).await;
        if let Err(LogError::Store(StoreError::Full(limit))) = written {
            let error = RpcError::new(
                code::OVERLOADED,
                format!("the call has ended, but its result could not be kept: {limit}"),
            );
            let answer = error_response(&in_flight.request, &error);
            written = streams.append_answer(tail, vec![answer]).await;
        }
        if let Err(error) = written {
            tracing::warn!(session = %in_flight.live.id, request = %in_flight.request, %error,
                "could not append an answer");
            streams.abandon(tail);
        }
    }
}

impl InFlight {
    fn answer(&self, outcome: CallOutcome) -> Bytes {
        match outcome.into_outcome() {
            Outcome::Result(result) => response(&self.request, &result),
            Outcome::Error(error) => error_response(&self.request, &error),
        }
    }

    fn json(&self, outcome: CallOutcome) -> Delivered {
        Delivered::Json(self.answer(outcome))
    }

    fn entry(&self) -> JournalEntry {
        JournalEntry {
            call: self.call,
            request: self.request.clone(),
            worker: None,
        }
    }
}

fn lost_worker() -> CallFailure {
    CallFailure::OutcomeUnknown {
        reason: "the way to the worker broke".to_owned(),
    }
}
