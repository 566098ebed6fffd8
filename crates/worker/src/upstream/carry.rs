use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::future::{AbortHandle, Abortable, Aborted, BoxFuture};
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _, poll};
use shoal_ports::{Call, CallFailure, CallOutcome, LogFilter, Repeat};
use shoal_protocol::{Method, Outcome, RawJson, RawObject, RequestId, RpcError};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::error::NeverWritten;
use super::link::{RequestHandle, ServerLink};
use super::list_call;
use super::lists::List;
use super::params;
use super::pending::{CallMessage, PendingCall, RequestOutcome, ServerRequest};
use super::router::answer;
use super::server_task::{self, ServerTask};
use crate::CallContext;

/// Maximum messages that wait for the client. Further progress is dropped.
const INBOX: usize = 64;

/// How long a call waits for the client's roots before it continues without.
const ROOTS_WITHIN: Duration = Duration::from_secs(10);

pub(crate) trait ConnectionShare: Send + Sync {
    /// Whether a question on this connection can only come from this call.
    fn is_alone(&self) -> bool;

    /// Counts the call as waiting for its client.
    ///
    /// # Errors
    /// Too many calls wait for their clients.
    fn ask(&self) -> Result<Box<dyn OpenQuestion + '_>, RpcError>;
}

pub(crate) trait OpenQuestion: Send + Sync {
    fn takes_long(&self);
}

/// Runs a call on a connection.
///
/// # Errors
/// The call was never written, so another connection may run it.
pub(crate) async fn carry(
    link: &Arc<ServerLink>,
    call: &Call,
    context: &CallContext,
    share: Option<&dyn ConnectionShare>,
) -> Result<CallOutcome, NeverWritten> {
    if call.method.is_notification() {
        return Ok(tell(link, call, context).await);
    }
    if let Some(list) = List::of_method(&call.method) {
        return list_call::answer(link, list, call, context).await;
    }
    let (sender, inbox) = mpsc::channel(INBOX);
    let pending = PendingCall {
        inbox: sender,
        progress_token: call.progress_token.clone(),
        askable: share.is_some_and(ConnectionShare::is_alone),
        wants_log: call.log != LogFilter::Off,
        session: call.caller.session.clone(),
        repeatable: Cell::new(call.repeat == Repeat::Safe),
        elicitations: RefCell::default(),
    };
    let mut handle = match link.register(Some(pending)) {
        Ok(handle) => handle,
        Err(reason) => return Err(NeverWritten::new(reason)),
    };
    let params = params::for_server(call, link.greeting(), handle.id());
    let mut task = ServerTask::none(link, handle.id(), call);
    let answered = async {
        let mut traffic = Traffic::new(link, context, share, inbox);
        if let Some(ended) = traffic.answer_early(&mut handle).await {
            return ended;
        }
        let run = server_task::run(&mut handle, link, (call, params), context, &mut task);
        traffic.until_answered(run).await
    };
    tokio::select! {
        biased;
        outcome = answered => settle(outcome, call),
        () = context.cancelled().cancelled() => Ok(cancelled(&mut handle, &mut task)),
    }
}

async fn tell(link: &ServerLink, call: &Call, context: &CallContext) -> CallOutcome {
    let params = params::for_server(call, link.greeting(), 0);
    tokio::select! {
        biased;
        () = link.notify(call.method.clone(), params.as_ref()) => {
            CallOutcome::Result(RawJson::from_static("{}"))
        }
        () = context.cancelled().cancelled() => CallOutcome::Failed(CallFailure::Cancelled),
    }
}

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
        // The tool has run; a second run would end with the same large result.
        RequestOutcome::TooLarge => useless("it is larger than a message may be"),
        RequestOutcome::Refused(failure) => CallOutcome::Failed(failure),
        RequestOutcome::Declined(failure) if call.repeat == Repeat::Safe => {
            CallOutcome::Failed(failure)
        }
        // The server's claim that it did not run the call is no proof, so the client decides whether to resend.
        RequestOutcome::Declined(failure) => CallOutcome::Error(failure.to_rpc()),
        RequestOutcome::Unreadable(why) => useless(&format!("it is no message: {why}")),
        RequestOutcome::Lost {
            written: true,
            reason,
        } => outcome_unknown(&reason),
        RequestOutcome::Lost {
            written: false,
            reason,
        } => return Err(NeverWritten::new(reason)),
    })
}

/// Adds the empty `content` that SDK clients assume if a server omits it.
fn with_content(result: RawJson) -> RawJson {
    if !result.is_object() || result.member_begins("content").is_some() {
        return result;
    }
    let mut object = RawObject::of(&result).unwrap_or_default();
    // A result of another kind has no `content`.
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

async fn put(
    question: ServerRequest,
    link: &ServerLink,
    context: &CallContext,
    share: Option<&dyn ConnectionShare>,
) -> RequestId {
    let outcome = match share.map(ConnectionShare::ask).transpose() {
        Ok(asking) => {
            let mut asked = pin!(context.ask(question.method, question.params));
            match (poll!(asked.as_mut()), &asking) {
                // Shoal refused the question without asking the client.
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

/// One call's messages. Every question of the server gets an answer, however the call ends.
struct Traffic<'a> {
    link: &'a Arc<ServerLink>,
    context: &'a CallContext,
    share: Option<&'a dyn ConnectionShare>,
    inbox: mpsc::Receiver<CallMessage>,
    questions: FuturesUnordered<Abortable<BoxFuture<'a, RequestId>>>,
    open: HashMap<RequestId, (AbortHandle, ServerRequest)>,
}

impl<'a> Traffic<'a> {
    fn new(
        link: &'a Arc<ServerLink>,
        context: &'a CallContext,
        share: Option<&'a dyn ConnectionShare>,
        inbox: mpsc::Receiver<CallMessage>,
    ) -> Self {
        Self {
            link,
            context,
            share,
            inbox,
            questions: FuturesUnordered::new(),
            open: HashMap::new(),
        }
    }

    async fn answer_early(&mut self, handle: &mut RequestHandle) -> Option<RequestOutcome> {
        if !self.link.waits_for_roots() {
            return None;
        }
        while let Ok(message) = self.inbox.try_recv() {
            self.take(message).await;
        }
        if !self.asks_for_roots() {
            return None;
        }
        let answered = async {
            while self.asks_for_roots() {
                tokio::select! {
                    biased;
                    Some(answered) = self.questions.next() => self.answered(answered),
                    ended = handle.outcome() => return Some(ended),
                }
            }
            self.link.takes_in_roots().await;
            None
        };
        let Ok(ended) = timeout(ROOTS_WITHIN, answered).await else {
            self.link.goes_on_without_roots();
            return None;
        };
        ended
    }

    async fn until_answered(
        &mut self,
        outcome: impl Future<Output = RequestOutcome>,
    ) -> RequestOutcome {
        let mut outcome = pin!(outcome);
        let outcome = loop {
            tokio::select! {
                biased;
                Some(message) = self.inbox.recv() => self.take(message).await,
                Some(answered) = self.questions.next() => self.answered(answered),
                outcome = &mut outcome => break outcome,
            }
        };
        // Messages that came before the answer go to the client first.
        while let Ok(message) = self.inbox.try_recv() {
            match message {
                CallMessage::Notify(method, params) => self.context.notify(method, params).await,
                CallMessage::Ask(question) => self.link.return_question(question),
                CallMessage::Withdraw(id) => drop(self.open.remove(&id)),
            }
        }
        outcome
    }

    async fn take(&mut self, message: CallMessage) {
        match message {
            CallMessage::Notify(method, params) => self.context.notify(method, params).await,
            CallMessage::Ask(question) => {
                let (abort, registration) = AbortHandle::new_pair();
                let entry = (abort, question.clone());
                self.open.insert(question.id.clone(), entry);
                let put = put(question, self.link, self.context, self.share);
                self.questions
                    .push(Abortable::new(put.boxed(), registration));
            }
            CallMessage::Withdraw(id) => {
                if let Some((abort, _)) = self.open.remove(&id) {
                    abort.abort();
                }
            }
        }
    }

    fn answered(&mut self, answered: Result<RequestId, Aborted>) {
        if let Ok(id) = answered {
            self.open.remove(&id);
        }
    }

    fn asks_for_roots(&self) -> bool {
        let mut open = self.open.values();
        open.any(|(_, question)| question.method == Method::RootsList)
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
