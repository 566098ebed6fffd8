//! Carrying one call over a connection, from its queue to its outcome.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use futures::future::{AbortHandle, AbortRegistration, Abortable};
use futures::stream::FuturesUnordered;
use futures::{StreamExt, poll};
use shoal_ports::{Call, CallFailure, CallOutcome, LogFilter};
use shoal_protocol::{Outcome, RequestId, RpcError};
use tokio::sync::mpsc;

use super::flights::{Landing, Message, Passenger, Question};
use super::link::{Link, Ticket};
use super::params;
use super::router::answer;
use crate::CallContext;

/// Messages of one call that may wait for its client; progress beyond it is dropped.
const INBOX: usize = 64;

/// A call's place on a connection that others share.
pub(crate) trait Place: Send + Sync {
    /// Whether nothing else runs there, so that a question can only be the call's.
    fn is_alone(&self) -> bool;

    /// The call is about to ask its client.
    ///
    /// # Errors
    /// What the server is told when too many calls do.
    fn ask(&self) -> Result<Box<dyn Asking + '_>, RpcError>;
}

/// A question to a client, until it is dropped.
pub(crate) trait Asking: Send + Sync {
    /// It takes a while.
    fn takes_long(&self);
}

/// Runs a call on a connection, at this place where it has one.
pub(crate) async fn carry(
    link: &Arc<Link>,
    call: &Call,
    context: &CallContext,
    place: Option<&dyn Place>,
) -> CallOutcome {
    let (sender, inbox) = mpsc::channel(INBOX);
    let passenger = Passenger {
        inbox: sender,
        progress_token: call.progress_token.clone(),
        askable: place.is_some_and(Place::is_alone),
        wants_log: call.log != LogFilter::Off,
        session: call.caller.session.clone(),
    };
    let mut ticket = match link.board(Some(passenger)) {
        Ok(ticket) => ticket,
        Err(reason) => return not_executed(&reason),
    };
    let params = params::for_server(call, link.greeting().era, ticket.id());
    let ride = async {
        let caller = Some(&call.caller);
        ticket.send(&call.method, params.as_ref(), caller).await;
        until_landed(&mut ticket, link, context, place, inbox).await
    };
    tokio::select! {
        biased;
        landing = ride => settle(landing),
        () = context.cancelled().cancelled() => cancelled(&mut ticket),
    }
}

/// What a call that was given up leaves behind.
fn cancelled(ticket: &mut Ticket) -> CallOutcome {
    if ticket.abandon() {
        CallOutcome::Failed(CallFailure::Cancelled)
    } else {
        not_executed("it was cancelled before the server had read it")
    }
}

fn not_executed(reason: &str) -> CallOutcome {
    CallOutcome::Failed(CallFailure::not_executed(reason))
}

fn settle(landing: Landing) -> CallOutcome {
    match landing {
        Landing::Answered(Outcome::Result(result)) => CallOutcome::Result(result),
        Landing::Answered(Outcome::Error(error)) => CallOutcome::Error(error),
        // The call has run, and its server is well: to run it again would end the same.
        Landing::TooLarge => useless("it is larger than a message may be"),
        Landing::Refused(failure) => CallOutcome::Failed(failure),
        Landing::Unreadable(why) => useless(&format!("it is no message: {why}")),
        Landing::Lost {
            written: true,
            reason,
        } => outcome_unknown(&reason),
        Landing::Lost {
            written: false,
            reason,
        } => not_executed(&reason),
    }
}

fn useless(why: &str) -> CallOutcome {
    let message = format!("the call has run, but the server's answer cannot be passed on: {why}");
    CallOutcome::Error(RpcError::internal(message))
}

fn outcome_unknown(reason: &str) -> CallOutcome {
    let reason = reason.to_owned();
    CallOutcome::Failed(CallFailure::OutcomeUnknown { reason })
}

/// Passes messages on, in order, until the call has landed.
async fn until_landed(
    ticket: &mut Ticket,
    link: &Link,
    context: &CallContext,
    place: Option<&dyn Place>,
    inbox: mpsc::Receiver<Message>,
) -> Landing {
    let mut traffic = Traffic {
        link,
        inbox,
        open: HashMap::new(),
    };
    let mut questions = FuturesUnordered::new();
    let landing = loop {
        tokio::select! {
            biased;
            Some(message) = traffic.inbox.recv() => match message {
                Message::Notify(method, params) => context.notify(method, params).await,
                Message::Ask(question) => {
                    let abortable = traffic.open(&question);
                    questions.push(Abortable::new(put(question, link, context, place), abortable));
                }
                Message::Withdraw(id) => {
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
            landing = ticket.landing() => break landing,
        }
    };
    // What came before the answer reaches the client before the answer.
    while let Ok(message) = traffic.inbox.try_recv() {
        match message {
            Message::Notify(method, params) => context.notify(method, params).await,
            Message::Ask(question) => link.return_question(question),
            Message::Withdraw(id) => drop(traffic.open.remove(&id)),
        }
    }
    landing
}

async fn put(
    question: Question,
    link: &Link,
    context: &CallContext,
    place: Option<&dyn Place>,
) -> RequestId {
    let outcome = match place.map(Place::ask).transpose() {
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
    inbox: mpsc::Receiver<Message>,
    open: HashMap<RequestId, (AbortHandle, Question)>,
}

impl Traffic<'_> {
    fn open(&mut self, question: &Question) -> AbortRegistration {
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
            if let Message::Ask(question) = message {
                self.link.return_question(question);
            }
        }
        for (_, (_, question)) in self.open.drain() {
            self.link.return_question(question);
        }
    }
}
