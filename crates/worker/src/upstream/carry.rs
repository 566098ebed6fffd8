//! Carrying one call over a connection, from its queue to its outcome.

use std::cell::Cell;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use futures::future::{AbortHandle, AbortRegistration, Abortable};
use futures::stream::FuturesUnordered;
use futures::{StreamExt, poll};
use shoal_ports::{Call, CallFailure, CallOutcome, Durability, LogFilter};
use shoal_protocol::{Method, Outcome, RawJson, RawObject, RequestId, RpcError};
use tokio::sync::mpsc;

use super::link::{Link, RequestHandle};
use super::params;
use super::pending::{CallMessage, PendingCall, RequestOutcome, ServerRequest};
use super::router::answer;
use super::server_task::{self, ServerTask};
use crate::CallContext;

/// Messages of one call that may wait for its client; progress beyond it is dropped.
const INBOX: usize = 64;

/// A call's share of a connection.
pub(crate) trait ConnectionShare: Send + Sync {
    /// Whether nothing else runs there, so that a question can only be the call's.
    fn is_alone(&self) -> bool;

    /// The call is about to ask its client.
    ///
    /// # Errors
    /// What the server is told when too many calls do.
    fn ask(&self) -> Result<Box<dyn OpenQuestion + '_>, RpcError>;
}

/// A question to a client, until it is dropped.
pub(crate) trait OpenQuestion: Send + Sync {
    /// It takes a while.
    fn takes_long(&self);
}

/// The connection ended before anything of the call was written to it, for this reason.
#[derive(Debug)]
pub(crate) struct NeverWritten(Arc<str>);

impl From<NeverWritten> for CallFailure {
    fn from(NeverWritten(reason): NeverWritten) -> Self {
        Self::not_executed(&*reason)
    }
}

/// Runs a call on a connection, at this place where it has one.
///
/// # Errors
/// Another connection may run the call.
pub(crate) async fn carry(
    link: &Arc<Link>,
    call: &Call,
    context: &CallContext,
    share: Option<&dyn ConnectionShare>,
) -> Result<CallOutcome, NeverWritten> {
    if call.method.is_notification() {
        return Ok(tell(link, call, context).await);
    }
    let (sender, inbox) = mpsc::channel(INBOX);
    let pending = PendingCall {
        inbox: sender,
        progress_token: call.progress_token.clone(),
        askable: share.is_some_and(ConnectionShare::is_alone),
        wants_log: call.log != LogFilter::Off,
        session: call.caller.session.clone(),
        repeatable: Cell::new(call.durability == Durability::Repeatable),
    };
    let mut handle = match link.register(Some(pending)) {
        Ok(handle) => handle,
        Err(reason) => return Err(NeverWritten(reason)),
    };
    let params = params::for_server(call, link.greeting(), handle.id());
    let mut task = ServerTask::none(link, handle.id(), call);
    let answered = async {
        let run = server_task::run(&mut handle, link, (call, params), context, &mut task);
        until_answered(run, link, context, share, inbox).await
    };
    tokio::select! {
        biased;
        outcome = answered => settle(outcome, call),
        () = context.cancelled().cancelled() => Ok(cancelled(&mut handle, &mut task)),
    }
}

/// Passes a notification on, which has no answer.
async fn tell(link: &Link, call: &Call, context: &CallContext) -> CallOutcome {
    let params = params::for_server(call, link.greeting(), 0);
    tokio::select! {
        biased;
        () = link.notify(call.method.clone(), params.as_ref()) => {
            CallOutcome::Result(RawJson::from_static("{}"))
        }
        () = context.cancelled().cancelled() => CallOutcome::Failed(CallFailure::Cancelled),
    }
}

/// What a call that was given up leaves behind.
fn cancelled(handle: &mut RequestHandle, task: &mut ServerTask<'_>) -> CallOutcome {
    let has_begun = task.abandon();
    if handle.abandon() || has_begun {
        CallOutcome::Failed(CallFailure::Cancelled)
    } else {
        let reason = "it was cancelled before the server had read it";
        CallOutcome::Failed(CallFailure::not_executed(reason))
    }
}

fn settle(outcome: RequestOutcome, call: &Call) -> Result<CallOutcome, NeverWritten> {
    Ok(match outcome {
        RequestOutcome::Answered(Outcome::Result(result)) if call.method == Method::ToolsCall => {
            CallOutcome::Result(with_content(result))
        }
        RequestOutcome::Answered(Outcome::Result(result)) => CallOutcome::Result(result),
        RequestOutcome::Answered(Outcome::Error(error)) | RequestOutcome::Rejected(error) => {
            CallOutcome::Error(error)
        }
        // The call has run, and its server is well: to run it again would end the same.
        RequestOutcome::TooLarge => useless("it is larger than a message may be"),
        RequestOutcome::Refused(failure) => CallOutcome::Failed(failure),
        RequestOutcome::Declined(failure) if call.durability == Durability::Repeatable => {
            CallOutcome::Failed(failure)
        }
        // On the server's word alone, only its client may send it again.
        RequestOutcome::Declined(failure) => CallOutcome::Error(failure.to_rpc()),
        RequestOutcome::Unreadable(why) => useless(&format!("it is no message: {why}")),
        RequestOutcome::Lost {
            written: true,
            reason,
        } => outcome_unknown(&reason),
        RequestOutcome::Lost {
            written: false,
            reason,
        } => return Err(NeverWritten(reason)),
    })
}

/// A tool's result with `content`, which not all servers write: SDKs' clients take it for empty then.
fn with_content(result: RawJson) -> RawJson {
    if !result.is_object() || result.member_begins("content").is_some() {
        return result;
    }
    let mut object = RawObject::of(&result).unwrap_or_default();
    // Of another kind than a complete result.
    if object.has("resultType") {
        return result;
    }
    object.set("content", RawJson::from_static("[]"));
    object.to_json()
}

fn useless(why: &str) -> CallOutcome {
    let message = format!("the call has run, but the server's answer cannot be passed on: {why}");
    CallOutcome::Error(RpcError::internal(message))
}

fn outcome_unknown(reason: &str) -> CallOutcome {
    let reason = reason.to_owned();
    CallOutcome::Failed(CallFailure::OutcomeUnknown { reason })
}

/// Passes messages on, in order, until the call is answered.
async fn until_answered(
    outcome: impl Future<Output = RequestOutcome>,
    link: &Link,
    context: &CallContext,
    share: Option<&dyn ConnectionShare>,
    inbox: mpsc::Receiver<CallMessage>,
) -> RequestOutcome {
    let mut traffic = Traffic {
        link,
        inbox,
        open: HashMap::new(),
    };
    let mut questions = FuturesUnordered::new();
    let mut outcome = pin!(outcome);
    let outcome = loop {
        tokio::select! {
            biased;
            Some(message) = traffic.inbox.recv() => match message {
                CallMessage::Notify(method, params) => context.notify(method, params).await,
                CallMessage::Ask(question) => {
                    let abortable = traffic.open(&question);
                    questions.push(Abortable::new(put(question, link, context, share), abortable));
                }
                CallMessage::Withdraw(id) => {
                    if let Some((abort, _)) = traffic.open.remove(&id) {
                        abort.abort();
                    }
                }
            },
            Some(answered) = questions.next() => {
                if let Ok(id) = answered {
                    traffic.open.remove(&id);
                }
            }
            outcome = &mut outcome => break outcome,
        }
    };
    // What came before the answer reaches the client before the answer.
    while let Ok(message) = traffic.inbox.try_recv() {
        match message {
            CallMessage::Notify(method, params) => context.notify(method, params).await,
            CallMessage::Ask(question) => link.return_question(question),
            CallMessage::Withdraw(id) => drop(traffic.open.remove(&id)),
        }
    }
    outcome
}

async fn put(
    question: ServerRequest,
    link: &Link,
    context: &CallContext,
    share: Option<&dyn ConnectionShare>,
) -> RequestId {
    let outcome = match share.map(ConnectionShare::ask).transpose() {
        Ok(asking) => {
            let mut asked = pin!(context.ask(question.method, question.params));
            match (poll!(asked.as_mut()), &asking) {
                // The client was not asked at all.
                (Poll::Ready(refused), _) => refused,
                (Poll::Pending, Some(asking)) => {
                    asking.takes_long();
                    asked.await
                }
                (Poll::Pending, None) => asked.await,
            }
        }
        Err(refused) => Outcome::Error(refused),
    };
    link.answer(answer(&question.id, &outcome)).await;
    question.id
}

/// Messages of one call. However the call ends, no question of the server stays without an answer.
struct Traffic<'a> {
    link: &'a Link,
    inbox: mpsc::Receiver<CallMessage>,
    open: HashMap<RequestId, (AbortHandle, ServerRequest)>,
}

impl Traffic<'_> {
    fn open(&mut self, question: &ServerRequest) -> AbortRegistration {
        let (abort, registration) = AbortHandle::new_pair();
        let entry = (abort, question.clone());
        self.open.insert(question.id.clone(), entry);
        registration
    }
}

impl Drop for Traffic<'_> {
    fn drop(&mut self) {
        self.inbox.close();
        while let Ok(message) = self.inbox.try_recv() {
            if let CallMessage::Ask(question) = message {
                self.link.return_question(question);
            }
        }
        for (_, (_, question)) in self.open.drain() {
            self.link.return_question(question);
        }
    }
}
