//! Runs a call as a task (2025-11-25). The node first opens a session for the task and lists it in the session that
//! made the call, so that a later owner or a repeated delivery finds the task.
//!
//! If the task's session refuses the call, that is the call's answer.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use shoal_ports::{CallFailure, Delivered, GatewayError, Post, SessionId, SessionRef, TaskClient};
use shoal_protocol::task::{Task, TaskState};
use shoal_protocol::{Body, Message, error_response};
use shoal_telemetry::metrics::{EndReason, TaskOutcome, metrics};

use super::super::Node;
use super::super::tasks::NEVER_BEGUN;
use super::Posting;
use crate::actor::record::RecordStep;
use crate::call::InFlight;
use crate::clock::unix_millis;
use crate::here::in_task;
use crate::live::LiveSession;
use crate::record::MadeTask;
use crate::state::Input;
use crate::store_failure::store_failed;

impl Node {
    /// Makes a task for the call and runs it. Completes even if the caller leaves. Boxed because deliveries recurse.
    pub(super) fn run_as_task(
        self: &Arc<Self>,
        live: &Arc<LiveSession>,
        in_flight: Box<InFlight>,
        posting: Posting,
        to: &SessionRef,
    ) -> BoxFuture<'static, Result<Delivered, GatewayError>> {
        let (node, live, to) = (self.clone(), live.clone(), to.clone());
        in_task(async move {
            let made = node.make_task(&live, &in_flight, posting, &to).await;
            metrics().tasks.created(match made {
                Ok(Made::Task(_)) => TaskOutcome::Created,
                Ok(Made::Refused(_)) | Err(_) => TaskOutcome::Refused,
            });
            Ok(match made? {
                Made::Task(task) => Delivered::Task(node.created(&task)),
                Made::Refused(answer) => Delivered::Json(answer),
            })
        })
        .boxed()
    }

    async fn make_task(
        self: &Arc<Self>,
        live: &Arc<LiveSession>,
        in_flight: &InFlight,
        posting: Posting,
        to: &SessionRef,
    ) -> Result<Made, GatewayError> {
        let call = in_flight.to_request();
        let before = match posting.repeated {
            true => made_before(live, &posting),
            false => None,
        };
        let is_new = before.is_none();
        let made = match before {
            Some(made) => made,
            None => self.list_new(live, in_flight, &posting, to).await?,
        };
        let task = SessionRef {
            session: made.task.clone(),
            hinted: false,
            ..to.clone()
        };
        let id = call.id.clone();
        let post = Post {
            delivery: posting.delivery,
            repeated: posting.repeated,
            binding: posting.binding,
            ..Post::new(Body::Single(Message::Request(call)))
        };
        match self.deliver(&task, post).await {
            Ok(Delivered::Stream(_)) => Ok(Made::Task(made)),
            Ok(Delivered::Json(refusal)) if is_new => {
                self.unmake(live, &task).await;
                Ok(Made::Refused(refusal))
            }
            Ok(_) => Ok(Made::Task(made)),
            Err(GatewayError::Moved { .. }) if !is_new => Ok(Made::Task(made)),
            Err(GatewayError::NotFound) if !is_new => {
                let lost = CallFailure::outcome_unknown("the store has lost the call's task");
                Ok(Made::Refused(error_response(&id, &lost.to_rpc())))
            }
            Err(error @ GatewayError::Unreachable { .. }) => Err(error),
            Err(error) => {
                if is_new {
                    self.unmake(live, &task).await;
                }
                Err(error)
            }
        }
    }

    async fn list_new(
        self: &Arc<Self>,
        live: &Arc<LiveSession>,
        in_flight: &InFlight,
        posting: &Posting,
        to: &SessionRef,
    ) -> Result<MadeTask, GatewayError> {
        let task = SessionRef {
            session: SessionId::of_task_opened_by(&self.id),
            hinted: false,
            ..to.clone()
        };
        let client = in_flight.client();
        let client = TaskClient {
            client_info: client.client_info.clone(),
            capabilities: client.capabilities.clone(),
        };
        let opened = self.open_task(&task, &client).await?;
        let opened_at = opened.and_then(|live| live.opened_at);
        let made = MadeTask {
            task: task.session,
            delivery: posting.delivery.into(),
            made_at: opened_at.unwrap_or_else(unix_millis),
        };
        let listed = match live.apply(Input::TaskMade(made.clone())) {
            Ok(_) => live.write_record(RecordStep::Save).await,
            Err(_closed) => {
                self.end_task(&made.task, to).await;
                return Err(self.being_moved());
            }
        };
        if let Err(error) = listed {
            live.note(Input::TaskUnmade(made.task.clone()));
            self.end_task(&made.task, to).await;
            return Err(store_failed(&error, &self.config));
        }
        Ok(made)
    }

    /// If the list without the task cannot be stored, the client sees the task as expired.
    async fn unmake(&self, live: &Arc<LiveSession>, task: &SessionRef) {
        live.note(Input::TaskUnmade(task.session.clone()));
        self.end_task(&task.session, task).await;
        if let Err(error) = live.write_record(RecordStep::Save).await {
            tracing::debug!(session = %live.id, %error, "a task that never started is still listed");
        }
    }

    async fn end_task(&self, task: &SessionId, to: &SessionRef) {
        let task = SessionRef {
            session: task.clone(),
            ..to.clone()
        };
        let _ = self
            .end_if_here(&task, EndReason::Deleted, NEVER_BEGUN)
            .await;
    }

    fn created(&self, made: &MadeTask) -> Task {
        let times = self.limits().task;
        Task {
            id: made.task.as_str().to_owned(),
            state: TaskState::Working,
            created_at: made.made_at,
            updated_at: made.made_at,
            ttl_ms: times.ttl,
            poll_interval_ms: times.poll_interval,
        }
    }
}

enum Made {
    Task(MadeTask),
    Refused(Bytes),
}

fn made_before(live: &LiveSession, posting: &Posting) -> Option<MadeTask> {
    let delivery = posting.delivery.into();
    live.read(|record| {
        let mut made = record.made_tasks.iter();
        made.find(|made| made.delivery == delivery).cloned()
    })?
}
