//! POST: applies a client's message to its session.

mod as_task;
mod batch;
mod begun;
mod changing;
mod initialized;

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use shoal_ports::{
    Binding, CallFailure, CallId, Delivered, DeliveryId, GatewayError, Grant, Post, SessionRef,
};
use shoal_protocol::{Body, Message, Method, RequestId, error_response};
use shoal_telemetry::metrics::{ActorKind, metrics};
use shoal_telemetry::trace::{self, attributes as key, names};

use super::Node;
pub(crate) use begun::BegunBatch;
use changing::changes;

use crate::actor::SessionMsg;
use crate::actor::record::RecordStep;
use crate::live::{Closed, LiveSession};
use crate::state::{Came, Effect, Input, empty_result};
use crate::store_failure::{log_failed, store_failed};

pub(crate) const ATTEMPTS: usize = 3;

impl Node {
    pub(crate) async fn deliver(
        self: &Arc<Self>,
        to: &SessionRef,
        post: Post,
    ) -> Result<Delivered, GatewayError> {
        if post.repeated {
            return Box::pin(self.deliver_again(to, post)).await;
        }
        let delivered = self.deliver_body(to, post, EarlierDelivery::Never).await?;
        delivered.ok_or_else(|| self.being_moved())
    }

    /// Applies the message. `None` if an earlier delivery of the message was admitted meanwhile.
    pub(super) async fn deliver_body(
        self: &Arc<Self>,
        to: &SessionRef,
        post: Post,
        before: EarlierDelivery,
    ) -> Result<Option<Delivered>, GatewayError> {
        let (body, posting) = Posting::of(post, before);
        let (delivery, repeated) = (posting.delivery, posting.repeated);
        match body {
            Body::Single(message) if changes(&message) => {
                let change = |reply| SessionMsg::Change {
                    message: message.clone(),
                    repeated,
                    grant: to.grant.clone(),
                    reply,
                };
                let changed = Box::pin(self.ask_for_change(to, change)).await;
                changed.map(Some)
            }
            Body::Single(message) => {
                let steers = match &message {
                    Message::Response(_) => true,
                    Message::Notification(said) => said.method == Method::Cancelled,
                    Message::Request(_) => false,
                };
                let again = posting.is_bound() && posting.may_have_begun();
                let id = request_id(&message).filter(|_| again).cloned();
                let (live, effect) = self.apply(to, message, &posting).await?;
                if steers {
                    return Box::pin(self.steer(&live, effect)).await.map(Some);
                }
                if let (Some(id), Effect::Respond(_)) = (id, &effect) {
                    return self.respond(&live, refused_later(&id)).await.map(Some);
                }
                self.carry_out(&live, effect, posting, to).await
            }
            Body::Batch(members) => {
                let again = (repeated, posting.may_have_begun());
                Box::pin(self.deliver_batch(to, members, delivery, again)).await
            }
        }
    }

    async fn apply(
        self: &Arc<Self>,
        to: &SessionRef,
        message: Message,
        posting: &Posting,
    ) -> Result<(Arc<LiveSession>, Effect), GatewayError> {
        let kept = to.trace.as_ref().filter(|trace| trace.is_sampled());
        let _span = kept.map(|trace| {
            trace::internal(names::SESSION_DELIVER)
                .parent(Some(trace))
                .start_with(|set| {
                    set.set(key::MCP_SESSION_ID, to.session.as_str())
                        .set(key::ROLE, "session");
                })
        });
        for _ in 0..ATTEMPTS {
            let live = self.find(to).await?;
            let input = posting.input(message.clone());
            match live.apply(input) {
                Ok(effect) => return Ok((live, effect)),
                Err(Closed) => Box::pin(self.forget_dead(&live)).await,
            }
        }
        Err(self.being_moved())
    }

    pub(super) fn being_moved(&self) -> GatewayError {
        GatewayError::Unavailable {
            reason: "the session is being moved to another node".to_owned(),
            retry_after: self.config.calls.retry_after.get(),
        }
    }

    pub(crate) async fn forget_dead(&self, live: &Arc<LiveSession>) {
        let _alone = self.locks.lock(&live.id).await;
        let present = self
            .live(&live.id)
            .is_some_and(|present| present.epoch == live.epoch);
        if present && live.is_forgotten() {
            tracing::error!(session = %live.id, "a session has panicked; it is rebuilt from its record");
            metrics().actors.failed(ActorKind::Session);
            self.rebuild_later(live, BTreeSet::new());
        }
    }

    async fn carry_out(
        self: &Arc<Self>,
        live: &Arc<LiveSession>,
        effect: Effect,
        posting: Posting,
        to: &SessionRef,
    ) -> Result<Option<Delivered>, GatewayError> {
        let delivered = match effect {
            Effect::Run(admitted) => {
                let mut in_flight = Box::new(self.driver.prepare(live, *admitted, to));
                if live.offers_tasks(&self.config) {
                    match self.driver.is_for_task(&in_flight) {
                        Ok(false) => {}
                        Ok(true) => {
                            let made = self.run_as_task(live, in_flight, posting, to);
                            return made.await.map(Some);
                        }
                        Err(error) => {
                            let refused = in_flight.refused(&error);
                            return self.respond(live, refused).await.map(Some);
                        }
                    }
                }
                let (delivery, again) = (posting.delivery, posting.may_have_begun());
                if let Some(binding) = posting.binding {
                    in_flight.came_bound_to(binding, again);
                }
                match self.driver.plan(&mut in_flight, again).await? {
                    None => self.driver.carry(in_flight, delivery).await,
                    Some(answer) => {
                        let answer = in_flight.refuse(answer)?;
                        self.respond(live, answer).await
                    }
                }
            }
            Effect::Running(_) => return Ok(None),
            Effect::Respond(response) => self.respond(live, response).await,
            Effect::Overloaded { retry_after } => Err(GatewayError::Overloaded {
                reason: format!(
                    "the session has {} requests in flight, which is its limit",
                    self.config.limits.calls_per_session
                ),
                retry_after,
            }),
            other => match Box::pin(self.settle(live, other, to.grant.as_ref())).await? {
                Some(response) => self.respond(live, response).await,
                None => Ok(Delivered::Accepted),
            },
        };
        delivered.map(Some)
    }

    /// If the call cannot be reached, asks the store for the session's owner, because no failing write will show that
    /// the session is lost.
    async fn steer(
        self: &Arc<Self>,
        live: &Arc<LiveSession>,
        effect: Effect,
    ) -> Result<Delivered, GatewayError> {
        let reached = match effect {
            Effect::Answer { slot, ask, outcome } => slot.answer(ask, outcome).await,
            Effect::Cancel { slot, reason } => slot.cancel(&reason),
            _ => false,
        };
        if !reached {
            self.driver.check_ownership(live).await?;
        }
        Ok(Delivered::Accepted)
    }

    async fn respond(
        &self,
        live: &LiveSession,
        response: Bytes,
    ) -> Result<Delivered, GatewayError> {
        if !Self::is_single_stream(live) {
            return Ok(Delivered::Json(response));
        }
        Box::pin(async {
            let failed = |error| log_failed(&error, &self.config);
            let tail = live.streams.standalone().await.map_err(failed)?;
            let appended = live.streams.append_now(&tail, vec![response]).await;
            appended.map_err(failed)?;
            Ok(Delivered::Accepted)
        })
        .await
    }

    async fn settle(
        self: &Arc<Self>,
        live: &Arc<LiveSession>,
        effect: Effect,
        grant: Option<&Arc<Grant>>,
    ) -> Result<Option<Bytes>, GatewayError> {
        let saved = |error| store_failed(&error, &self.config);
        match effect {
            Effect::Respond(response)
            | Effect::InitializedAgain {
                refusal: response, ..
            } => Ok(Some(response)),
            Effect::RespondAndSave(response) => {
                live.write_record(RecordStep::Save).await.map_err(saved)?;
                Ok(Some(response))
            }
            Effect::Subscribe { request, uri } => {
                if let Err(full) = live.share.check() {
                    live.note(Input::SubscriptionFailed(uri));
                    return Err(full);
                }
                self.subscribe(live, grant, &request, uri).await.map(Some)
            }
            Effect::Unsubscribe { request, uri } => {
                self.unsubscribe(&live.id, &uri).await;
                live.write_record(RecordStep::Save).await.map_err(saved)?;
                Ok(Some(empty_result(&request)))
            }
            Effect::Answer { slot, ask, outcome } => {
                slot.answer(ask, outcome).await;
                Ok(None)
            }
            Effect::Cancel { slot, reason } => {
                slot.cancel(&reason);
                Ok(None)
            }
            Effect::None
            | Effect::Run(_)
            | Effect::Overloaded { .. }
            | Effect::TaskAnswer(_)
            | Effect::NotAskedYet
            | Effect::TaskCancel { .. }
            | Effect::Ask(_)
            | Effect::AskRefused
            | Effect::StateAnswer(_)
            | Effect::Keep { .. }
            | Effect::Running { .. }
            | Effect::Announce(_)
            | Effect::Pass(_) => Ok(None),
        }
    }
}

/// Whether an earlier delivery of the same body may have begun calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EarlierDelivery {
    Never,
    /// An earlier delivery may have begun calls, but left no trace of them.
    Perhaps,
}

struct Posting {
    delivery: DeliveryId,
    repeated: bool,
    before: EarlierDelivery,
    binding: Option<Binding>,
}

impl Posting {
    fn of(post: Post, before: EarlierDelivery) -> (Body, Self) {
        let Post {
            body,
            delivery,
            repeated,
            binding,
            repeat: _,
        } = post;
        let posting = Self {
            delivery,
            repeated,
            before,
            binding,
        };
        (body, posting)
    }

    fn may_have_begun(&self) -> bool {
        self.repeated && self.before == EarlierDelivery::Perhaps
    }

    fn is_bound(&self) -> bool {
        self.binding.is_some()
    }

    /// Only a bound call has an id yet.
    fn call(&self) -> Option<CallId> {
        self.is_bound().then(|| self.delivery.into())
    }

    fn input(&self, message: Message) -> Input {
        let came = Came {
            delivery: self.delivery,
            call: self.call(),
        };
        match message {
            Message::Request(request) if self.repeated => Input::Repeated(request, came),
            message => input(message, came),
        }
    }
}

/// Answers a request that an earlier owner may have run and that the session now refuses.
fn refused_later(id: &RequestId) -> Bytes {
    let failure = CallFailure::outcome_unknown(
        "the node that took the request was lost, and the session refuses it now",
    );
    error_response(id, &failure.to_rpc())
}

fn request_id(message: &Message) -> Option<&RequestId> {
    match message {
        Message::Request(request) => Some(&request.id),
        _ => None,
    }
}

fn input(message: Message, came: Came) -> Input {
    match message {
        Message::Request(request) => Input::Request(request, came),
        Message::Notification(notification) => Input::Notification(notification),
        Message::Response(response) => Input::Response(response),
    }
}
