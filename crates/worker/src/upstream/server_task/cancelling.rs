use std::sync::Arc;
use std::time::Duration;

use shoal_ports::Call;
use shoal_protocol::{Method, Outcome, RawJson, RawObject};
use tokio::time::timeout;

use super::super::link::{RequestHandle, ServerLink};
use super::super::pending::RequestOutcome;
use super::ask;

const NAMED_WITHIN: Duration = Duration::from_secs(30);
const CANCELLED_WITHIN: Duration = Duration::from_secs(10);

/// Dropping this before the task's end cancels the task.
pub(crate) struct ServerTask<'a> {
    link: &'a Arc<ServerLink>,
    call: &'a Call,
    request: u64,
    stage: CancelStage,
}

enum CancelStage {
    None,
    Creating(RequestHandle),
    Running(RawJson),
}

impl<'a> ServerTask<'a> {
    pub(crate) fn none(link: &'a Arc<ServerLink>, request: u64, call: &'a Call) -> Self {
        Self {
            link,
            call,
            request,
            stage: CancelStage::None,
        }
    }

    /// Sends the request that creates the task. Cancellation safe.
    pub(super) async fn create(
        &mut self,
        creating: RequestHandle,
        params: &RawJson,
    ) -> RequestOutcome {
        self.stage = CancelStage::Creating(creating);
        let CancelStage::Creating(creating) = &mut self.stage else {
            return std::future::pending().await;
        };
        let caller = Some(&self.call.caller);
        creating.send(&self.call.method, Some(params), caller).await;
        let outcome = creating.outcome().await;
        self.stage = CancelStage::None;
        outcome
    }

    pub(super) fn runs(&mut self, id: RawJson) {
        self.stage = CancelStage::Running(id);
    }

    pub(super) fn is_over(&mut self) {
        self.stage = CancelStage::None;
    }

    /// Cancels the task. Returns whether the server may have begun it.
    pub(crate) fn abandon(&mut self) -> bool {
        let stage = match std::mem::replace(&mut self.stage, CancelStage::None) {
            CancelStage::None => return false,
            CancelStage::Creating(creating) if creating.withdraw() => return false,
            stage => stage,
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (link, call, request) = (self.link.clone(), self.call.clone(), self.request);
            // Until the task has ended, it may ask only its own client.
            link.pending.owe(request, call.caller.session.clone());
            runtime.spawn(async move {
                if is_cancelled(&link, &call, stage).await {
                    link.pending.settle(request);
                }
            });
        }
        true
    }
}

impl Drop for ServerTask<'_> {
    fn drop(&mut self) {
        self.abandon();
    }
}

async fn is_cancelled(link: &Arc<ServerLink>, call: &Call, stage: CancelStage) -> bool {
    let id = match stage {
        CancelStage::None => return true,
        CancelStage::Running(id) => id,
        CancelStage::Creating(mut creating) => {
            // Servers may drop a task that is being created, or create it anyway.
            creating.tell_cancelled();
            let made = match timeout(NAMED_WITHIN, creating.outcome()).await {
                Ok(RequestOutcome::Answered(Outcome::Result(made))) => made,
                Ok(RequestOutcome::Answered(Outcome::Error(_))) => return true,
                _ => return false,
            };
            match made.member("task").and_then(|task| task.member("taskId")) {
                Some(id) => id,
                None => return true,
            }
        }
    };
    let cancelled = ask(link, call, (Method::TasksCancel, id), RawObject::default());
    match timeout(CANCELLED_WITHIN, cancelled).await {
        // An error means that the task has ended already.
        Ok(RequestOutcome::Answered(_)) => true,
        other => {
            tracing::debug!(target: "shoal::upstream", server = link.name(), ?other, "the server did not cancel a task");
            false
        }
    }
}
