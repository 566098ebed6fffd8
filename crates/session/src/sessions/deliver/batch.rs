//! Batches. Only 2025-03-26 has them, but Shoal accepts them in every session, as the TypeScript SDK does.

use std::sync::Arc;

use futures::future::try_join_all;
use shoal_ports::{CallFailure, Delivered, DeliveryId, GatewayError, Grant, SessionRef};
use shoal_protocol::{InvalidMessage, Message, batch, error_response, error_response_without_id};

use super::super::Node;
use super::begun::BegunBatch;
use super::request_id;
use crate::actor::SessionMsg;
use crate::live::{Closed, LiveSession};
use crate::state::{Came, Effect};

impl Node {
    /// Delivers a batch. If it has calls, all answers share one stream. Otherwise they are a JSON array.
    pub(super) async fn deliver_batch(
        self: &Arc<Self>,
        to: &SessionRef,
        members: Vec<Result<Message, InvalidMessage>>,
        delivery: DeliveryId,
        (repeated, again): (bool, bool),
    ) -> Result<Option<Delivered>, GatewayError> {
        let begin = |reply| SessionMsg::Batch {
            members: members.clone(),
            delivery,
            repeated,
            grant: to.grant.clone(),
            reply,
        };
        let Some(begun) = self.ask_for_change(to, begin).await? else {
            return Ok(None);
        };
        let BegunBatch {
            live,
            mut answers,
            calls,
        } = begun;
        let driver = &self.driver;
        let calls = calls.into_iter().map(|call| {
            let mut in_flight = driver.prepare(&live, call, to);
            async move {
                let answer = driver.plan(&mut in_flight, again).await?;
                Ok::<_, GatewayError>((in_flight, answer))
            }
        });
        let calls: Vec<_> = calls.collect();
        let mut planned = Vec::new();
        for (in_flight, answer) in try_join_all(calls).await? {
            match answer {
                None => planned.push(in_flight),
                Some(answer) => answers.push(in_flight.answer(answer)),
            }
        }
        let delivered = match (answers.is_empty(), planned.is_empty()) {
            (true, true) => Ok(Delivered::Accepted),
            (false, true) => self.respond(&live, batch(&answers)).await,
            (_, false) => driver.carry_journaled(planned, answers, delivery).await,
        };
        delivered.map(Some)
    }

    /// Carries out all members but the calls, which it admits. If a member fails, the admitted calls end. `None` if
    /// an earlier delivery of the batch was admitted. Runs in the session's actor.
    pub(crate) async fn begin_batch(
        self: &Arc<Self>,
        live: &Arc<LiveSession>,
        members: Vec<Result<Message, InvalidMessage>>,
        (delivery, repeated): (DeliveryId, bool),
        grant: Option<&Arc<Grant>>,
    ) -> Result<Result<Option<BegunBatch>, GatewayError>, Closed> {
        let came = Came {
            delivery,
            call: None,
        };
        let requests = members.iter().flatten().filter_map(request_id);
        let requests: Vec<_> = requests.cloned().collect();
        if repeated && !live.running(&requests, delivery).is_empty() {
            return Ok(Ok(None));
        }
        let (mut answers, mut calls) = (Vec::new(), Vec::new());
        for member in members {
            match member {
                Ok(message) => {
                    let request = request_id(&message).cloned();
                    match self.apply_knowing(live, message, came).await? {
                        Effect::Run(admitted) => calls.push(*admitted),
                        Effect::Overloaded { retry_after } => {
                            let reason = "the session has too many requests in flight".to_owned();
                            let error = CallFailure::Overloaded {
                                reason,
                                retry_after,
                            }
                            .to_rpc();
                            answers.extend(request.map(|id| error_response(&id, &error)));
                        }
                        effect => match self.settle(live, effect, grant).await {
                            Ok(answer) => answers.extend(answer),
                            Err(error) => return Ok(Err(error)),
                        },
                    }
                }
                Err(InvalidMessage {
                    id: Some(id),
                    error,
                }) => {
                    answers.push(error_response(&id, &error));
                }
                Err(InvalidMessage { id: None, error }) => {
                    answers.push(error_response_without_id(&error));
                }
            }
        }
        Ok(Ok(Some(BegunBatch {
            live: live.clone(),
            answers,
            calls,
        })))
    }
}
