//! The end of a server's task whose caller does not wait for it any more.

use std::sync::Arc;
use std::time::Duration;

use shoal_ports::Call;
use shoal_protocol::{Method, Outcome, RawJson, RawObject};
use tokio::time::timeout;

use super::super::link::{Link, RequestHandle};
use super::super::pending::RequestOutcome;
use super::ask;

/// How long a server has to name a task that is to be cancelled.
const NAMED_WITHIN: Duration = Duration::from_secs(30);
/// How long it has to say that it has cancelled it.
const CANCELLED_WITHIN: Duration = Duration::from_secs(10);

/// The task of one call, cancelled when it is dropped before it is over.
pub(crate) struct ServerTask<'a> {
    link: &'a Arc<Link>,
    call: &'a Call,
    /// The request that stands for the call.
    request: u64,
    stage: Stage,
}

enum Stage {
    /// There is none, or it has ended.
    None,
    /// The request that makes it has not been answered.
    Creating(RequestHandle),
    /// This one runs.
    Running(RawJson),
}

impl<'a> ServerTask<'a> {
    /// None yet.
    pub(crate) fn none(link: &'a Arc<Link>, request: u64, call: &'a Call) -> Self {
        Self {
            link,
            call,
            request,
            stage: Stage::None,
        }
    }

    /// Sends the request that makes it, and waits for the answer. Cancellation safe.
    pub(super) async fn create(
        &mut self,
        creating: RequestHandle,
        params: &RawJson,
    ) -> RequestOutcome {
        self.stage = Stage::Creating(creating);
        let Stage::Creating(creating) = &mut self.stage else {
            return std::future::pending().await;
        };
        let caller = Some(&self.call.caller);
        creating.send(&self.call.method, Some(params), caller).await;
        let outcome = creating.outcome().await;
        self.stage = Stage::None;
        outcome
    }

    /// The server has made it, under this id.
    pub(super) fn runs(&mut self, id: RawJson) {
        self.stage = Stage::Running(id);
    }

    /// It has ended.
    pub(super) fn is_over(&mut self) {
        self.stage = Stage::None;
    }

    /// Has it cancelled. Returns whether the server may have begun.
    pub(crate) fn abandon(&mut self) -> bool {
        let stage = match std::mem::replace(&mut self.stage, Stage::None) {
            Stage::None => return false,
            Stage::Creating(creating) if creating.withdraw() => return false,
            stage => stage,
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (link, call, request) = (self.link.clone(), self.call.clone(), self.request);
            // Until it has ended it may ask, and nobody else must be asked that.
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

/// Has a task cancelled. Returns whether the server has confirmed that nothing of it runs any more.
async fn is_cancelled(link: &Arc<Link>, call: &Call, stage: Stage) -> bool {
    let id = match stage {
        Stage::None => return true,
        Stage::Running(id) => id,
        Stage::Creating(mut creating) => {
            // Servers may take back what they have not made yet, or make it all the same.
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
        // An error: it has ended already.
        Ok(RequestOutcome::Answered(_)) => true,
        other => {
            tracing::debug!(target: "shoal::upstream", server = link.name(), ?other, "the server did not cancel a task");
            false
        }
    }
}
