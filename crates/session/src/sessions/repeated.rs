//! POST again: what an edge delivers a second time because the answer to the first got lost.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use shoal_ports::{CallFailure, CallId, Delivered, DeliveryId, GatewayError, Post, SessionRef};
use shoal_protocol::{Body, Message, RequestId, batch, error_response};
use tokio::time::{Instant, sleep};

use super::Node;
use super::answered::Answered;
use super::deliver::Before;
use crate::live::LiveSession;
use crate::state::{CallSlot, Effect, Input};

/// How often the earlier delivery is looked for while its request still runs.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What is left of an earlier delivery.
enum Found {
    /// It has begun, and this is what its client is to have.
    Delivered(Delivered),
    /// Nothing has begun.
    Never,
    /// Nothing is left.
    Nothing,
}

impl Node {
    /// Delivers once more: what the earlier delivery began is found, and what it has not begun is delivered now. The
    /// earlier one may still be on its way here, and be admitted between the two.
    pub(super) async fn deliver_again(
        self: &Arc<Self>,
        to: &SessionRef,
        post: Post,
    ) -> Result<Delivered, GatewayError> {
        loop {
            let before = match self.find_delivered(to, &post).await? {
                Found::Delivered(found) => return Ok(found),
                Found::Never => Before::Never,
                Found::Nothing => Before::Perhaps,
            };
            if let Some(delivered) = self.deliver_body(to, post.clone(), before).await? {
                return Ok(delivered);
            }
        }
    }

    /// What the earlier delivery began. Where it began nothing that is left, the body is to be delivered as if for the first
    /// time.
    ///
    /// Journaled calls are found in the store by their delivery, or where their edge has bound them, in memory as long as they
    /// run, and by their worker afterwards. A request whose call is not, but which
    /// still runs, is one that is held, or safe to repeat, and whose answer has nowhere to go: it is let go here, or its end is
    /// waited for. What is held and begun again is found by its worker. Where all answers go on one stream, that has those of
    /// requests that do not run any more.
    async fn find_delivered(
        self: &Arc<Self>,
        to: &SessionRef,
        post: &Post,
    ) -> Result<Found, GatewayError> {
        let requests = requests_of(&post.body);
        if requests.is_empty() {
            return Ok(Found::Nothing);
        }
        let live = self.find(to).await?;
        let single = Self::is_single_stream(&live);
        let until = Instant::now() + self.config.call_timeout;
        loop {
            let found = match post.is_bound() {
                // What is open is in memory; of the rest its worker says at least that it was there.
                true => live.streams.delivered(post.delivery),
                false => self.driver.find_in_log(&live, post.delivery).await?,
            };
            if let Some(beginning) = found {
                let found = self.driver.read_again(&live, beginning).await;
                return found.map(Found::Delivered);
            }
            let running = running(&live, &requests, post.delivery);
            // Another request may have the id by now.
            let held = |slot: &Arc<CallSlot>| slot.call() == CallId::from(post.delivery);
            if running.is_empty() || post.is_bound() && !running.iter().any(held) {
                return match single {
                    true => self.find_answered(&live, &requests).await,
                    false => Ok(Found::Nothing),
                };
            }
            if single {
                return Ok(Found::Delivered(Delivered::Accepted));
            }
            running.iter().for_each(|slot| slot.want());
            if Instant::now() >= until {
                let once = running.iter().any(|slot| slot.runs_once());
                let answer = self.took_too_long(&post.body, once);
                return Ok(Found::Delivered(Delivered::Json(answer)));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// What became of requests that do not run any more where all answers go on one stream. A call is journaled there before
    /// it is started, so one that is neither in the journal nor answered was never begun.
    async fn find_answered(
        &self,
        live: &LiveSession,
        requests: &[RequestId],
    ) -> Result<Found, GatewayError> {
        if live.streams.owes(requests) {
            return Ok(Found::Delivered(Delivered::Accepted));
        }
        Ok(match self.answered(live, requests).await? {
            Answered::All => Found::Delivered(Delivered::Accepted),
            Answered::Nothing => Found::Never,
            Answered::Unknown => Found::Nothing,
        })
    }

    /// The answer to requests whose first delivery still goes on when no call may take longer: whoever asks again is told
    /// for good.
    fn took_too_long(&self, body: &Body, once: bool) -> Bytes {
        let failure = match once {
            true => {
                CallFailure::outcome_unknown("the request has been delivered before and still runs")
            }
            false => CallFailure::DeadlineExceeded {
                limit: self.config.call_timeout,
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

/// The calls of those of a delivery's requests that have not been answered.
pub(super) fn running(
    live: &LiveSession,
    requests: &[RequestId],
    delivery: DeliveryId,
) -> Vec<Arc<CallSlot>> {
    match live.apply(Input::Runs(requests.to_vec(), delivery)) {
        Ok(Effect::Running(running)) => running,
        _ => Vec::new(),
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
