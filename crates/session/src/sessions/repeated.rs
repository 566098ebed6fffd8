//! Answers a POST that an edge repeats, because it has lost the first answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use shoal_ports::{CallFailure, CallId, Delivered, GatewayError, Post, SessionRef};
use shoal_protocol::{Body, Message, RequestId, batch, error_response};
use tokio::time::{Instant, sleep};

use super::Node;
use super::answered::AnsweredRequests;
use super::deliver::EarlierDelivery;
use crate::live::LiveSession;
use crate::state::CallSlot;

const LOOK_EVERY: Duration = Duration::from_millis(50);

enum FoundDelivery {
    Delivered(Delivered),
    Never,
    Nothing,
}

impl Node {
    /// Answers from the earlier delivery's calls, or delivers the body now. Looks again if the earlier delivery
    /// arrives just then.
    pub(super) async fn deliver_again(
        self: &Arc<Self>,
        to: &SessionRef,
        post: Post,
    ) -> Result<Delivered, GatewayError> {
        loop {
            let before = match self.find_delivered(to, &post).await? {
                FoundDelivery::Delivered(found) => return Ok(found),
                FoundDelivery::Never => EarlierDelivery::Never,
                FoundDelivery::Nothing => EarlierDelivery::Perhaps,
            };
            if let Some(delivered) = self.deliver_body(to, post.clone(), before).await? {
                return Ok(delivered);
            }
        }
    }

    /// The store finds a journaled call by its delivery. A bound call is in memory or at its worker. On a single
    /// stream, the answer of a running or finished request still reaches the client. On other streams, it does not,
    /// so this method waits until running requests end, and [ends the wait](CallSlot::want) of those whose callers
    /// have left.
    async fn find_delivered(
        self: &Arc<Self>,
        to: &SessionRef,
        post: &Post,
    ) -> Result<FoundDelivery, GatewayError> {
        let requests = requests_of(&post.body);
        if requests.is_empty() {
            return Ok(FoundDelivery::Nothing);
        }
        let live = self.find(to).await?;
        let single = Self::is_single_stream(&live);
        let until = Instant::now() + self.config.calls.timeout.get();
        loop {
            let found = match post.is_bound() {
                true => live.streams.delivered(post.delivery),
                false => self.driver.find_in_log(&live, post.delivery).await?,
            };
            if let Some(beginning) = found {
                let found = self.driver.read_again(&live, beginning).await;
                return found.map(FoundDelivery::Delivered);
            }
            let running = live.running(&requests, post.delivery);
            let held = |slot: &Arc<CallSlot>| slot.call() == CallId::from(post.delivery);
            if running.is_empty() || post.is_bound() && !running.iter().any(held) {
                return match single {
                    true => self.find_answered(&live, &requests).await,
                    false => Ok(FoundDelivery::Nothing),
                };
            }
            if single {
                return Ok(FoundDelivery::Delivered(Delivered::Accepted));
            }
            running.iter().for_each(|slot| slot.want());
            if Instant::now() >= until {
                let runs_once = running.iter().any(|slot| slot.runs_once());
                let answer = self.took_too_long(&post.body, runs_once);
                return Ok(FoundDelivery::Delivered(Delivered::Json(answer)));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// A single stream's calls are journaled first, so a call without a journal entry or an answer
    /// was not begun.
    async fn find_answered(
        &self,
        live: &LiveSession,
        requests: &[RequestId],
    ) -> Result<FoundDelivery, GatewayError> {
        if live.streams.owes(requests) {
            return Ok(FoundDelivery::Delivered(Delivered::Accepted));
        }
        Ok(match self.answered(live, requests).await? {
            AnsweredRequests::All => FoundDelivery::Delivered(Delivered::Accepted),
            AnsweredRequests::Nothing => FoundDelivery::Never,
            AnsweredRequests::Unknown => FoundDelivery::Nothing,
        })
    }

    fn took_too_long(&self, body: &Body, runs_once: bool) -> Bytes {
        let failure = match runs_once {
            true => CallFailure::outcome_unknown("the request was delivered before and still runs"),
            false => CallFailure::DeadlineExceeded {
                limit: self.config.calls.timeout.get(),
            },
        };
        let error = failure.to_rpc();
        let requests = requests_of(body);
        let answers = requests.iter().map(|id| error_response(id, &error));
        match body {
            Body::Single(_) => answers.last().unwrap_or_default(),
            Body::Batch(_) => batch(&Vec::from_iter(answers)),
        }
    }
}

fn requests_of(body: &Body) -> Vec<RequestId> {
    let id = |message: &Message| match message {
        Message::Request(request) => Some(request.id.clone()),
        _ => None,
    };
    match body {
        Body::Single(message) => id(message).into_iter().collect(),
        Body::Batch(members) => {
            let messages = members.iter().filter_map(|member| member.as_ref().ok());
            messages.filter_map(id).collect()
        }
    }
}
