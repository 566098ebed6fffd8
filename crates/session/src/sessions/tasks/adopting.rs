//! Makes a running call a task.
//!
//! The edge draws the task's id and repeats its request under this id, so that all attempts find one session. This
//! session journals the call once. The worker recognises the call by the call's id.

use std::sync::Arc;
use std::time::Duration;

use shoal_ports::{AdoptCall, GatewayError, SessionRef};
use shoal_protocol::task::Task;
use shoal_telemetry::metrics::EndReason;
use tokio::time::sleep;

use super::super::Node;
use super::NEVER_BEGUN;
use crate::here::in_task;
use crate::live::{Closed, LiveSession};
use crate::state::{Came, Effect, Input};
use crate::task_adoption::has_ended;

const LOOK_EVERY: Duration = Duration::from_millis(50);

impl Node {
    /// Completes even if the caller leaves.
    pub(crate) async fn adopt_call(
        self: &Arc<Self>,
        to: &SessionRef,
        call: AdoptCall,
    ) -> Result<Task, GatewayError> {
        let (node, to) = (self.clone(), to.clone());
        in_task(async move {
            let live = node.find_or_open(&to, &call).await?;
            node.take_in(&live, &to, call).await?;
            // The task exists now. Errors other than `Unreachable` would deny that.
            let gone = || GatewayError::Unreachable {
                reason: "the task's session has moved".to_owned(),
            };
            live.task().map(Task::without_result).ok_or_else(gone)
        })
        .await
    }

    async fn find_or_open(
        self: &Arc<Self>,
        to: &SessionRef,
        call: &AdoptCall,
    ) -> Result<Arc<LiveSession>, GatewayError> {
        if call.repeated {
            match self.find(to).await {
                Err(GatewayError::NotFound) => {}
                found => return found,
            }
        }
        match self.open_task(to, &call.client).await? {
            Some(live) => Ok(live),
            None => self.find(to).await,
        }
    }

    async fn take_in(
        self: &Arc<Self>,
        live: &Arc<LiveSession>,
        to: &SessionRef,
        call: AdoptCall,
    ) -> Result<(), GatewayError> {
        let came = Came {
            delivery: call.call.into(),
            call: Some(call.call),
        };
        loop {
            if live.is_lost() {
                return Err(GatewayError::Moved { owner: None });
            }
            if live.streams.delivered(came.delivery).is_some() || has_ended(live) {
                return Ok(());
            }
            match live.apply(Input::Repeated(call.request.clone(), came)) {
                Ok(Effect::Run(admitted)) => {
                    let adopted = self.driver.adopt(live, *admitted, call, to).await;
                    if adopted.is_err() && !live.is_lost() {
                        let why = EndReason::Deleted;
                        self.end_if_here(to, why, NEVER_BEGUN).await;
                    }
                    return adopted;
                }
                // An earlier attempt journals the call now.
                Ok(Effect::Running(_)) => sleep(LOOK_EVERY).await,
                Ok(_) => {
                    let refused = "a task's session did not take its call";
                    return Err(GatewayError::Internal(refused.to_owned()));
                }
                Err(Closed) => return Err(self.being_moved()),
            }
        }
    }
}
