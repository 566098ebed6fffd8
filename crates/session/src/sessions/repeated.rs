//! POST again: what an edge delivers a second time because the answer to the first got lost.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use shoal_ports::{CallFailure, CallId, Delivered, GatewayError, Post, SessionRef};
use shoal_protocol::{Body, Message, RequestId, batch, error_response};
use tokio::time::{Instant, sleep};

use super::Node;
use crate::live::LiveSession;
use crate::state::{CallSlot, Effect, Input};

/// How often the earlier delivery is looked for while its request still runs.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl Node {
    /// Delivers once more: what the earlier delivery began is found, and what it has not begun is delivered now. The
    /// earlier one may still be on its way here, and be admitted between the two.
    pub(super) async fn deliver_again(
        self: &Arc<Self>,
        to: &SessionRef,
        post: Post,
    ) -> Result<Delivered, GatewayError> {
        loop {
            if let Some(found) = self.find_delivered(to, &post).await? {
                return Ok(found);
            }
            if let Some(delivered) = self.deliver_body(to, post.clone()).await? {
                return Ok(delivered);
            }
        }
    }

    /// What the earlier delivery began; `None` when it began nothing that is left, and the body is to be
    /// delivered as if for the first time.
    ///
    /// Journaled calls are found in the store by their delivery, or where their edge has bound them, in memory as long as they
    /// run, and by their worker afterwards. A request whose call is not, but which
    /// still runs, is one that is held, or safe to repeat, and whose answer has nowhere to go: it is let go here, or its end is
    /// waited for. What is held and begun again is found by its worker.
    async fn find_delivered(
        self: &Arc<Self>,
        to: &SessionRef,
        post: &Post,
    ) -> Result<Option<Delivered>, GatewayError> {
        let requests = requests_of(&post.body);
        if requests.is_empty() {
            return Ok(None);
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
                return self.driver.read_again(&live, beginning).await.map(Some);
            }
            let running = running(&live, &requests);
            // Another request may have the id by now.
            let held = |slot: &Arc<CallSlot>| slot.call() == CallId::from(post.delivery);
            if running.is_empty() || post.is_bound() && !running.iter().any(held) {
                return Ok(None);
            }
            if single {
                return Ok(Some(Delivered::Accepted));
            }
            running.iter().for_each(|slot| slot.want());
            if Instant::now() >= until {
                let once = running.iter().any(|slot| slot.runs_once());
                return Ok(Some(Delivered::Json(self.took_too_long(&post.body, once))));
            }
            sleep(LOOK_EVERY).await;
        }
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

/// The calls of those of the requests that have not been answered.
pub(super) fn running(live: &LiveSession, requests: &[RequestId]) -> Vec<Arc<CallSlot>> {
    match live.apply(Input::Runs(requests.to_vec())) {
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
