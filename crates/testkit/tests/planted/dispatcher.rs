//! A dispatcher that goes on with the calls of earlier owners in its own way.

use std::sync::Arc;

use async_trait::async_trait;
use shoal_ports::{
    Binding, Call, CallFailure, CallId, CallPlan, Dispatcher, Planning, RunningCall, ServerFacts,
    SessionId, Starting, WorkerId,
};
use shoal_protocol::{RawJson, RpcError};
use tokio::sync::watch;

/// How it goes on with a call.
pub(crate) enum How {
    /// As it should, but not before this says so.
    Later(watch::Receiver<bool>),
    /// It starts the call under another id, as if nobody had begun it.
    Blindly,
}

/// A dispatcher with another `resume`.
pub(crate) struct Resuming {
    pub(crate) inner: Arc<dyn Dispatcher>,
    pub(crate) how: How,
}

#[async_trait]
impl Dispatcher for Resuming {
    async fn resume(&self, mut call: Call, after: u64) -> Result<RunningCall, CallFailure> {
        match &self.how {
            How::Later(now) => {
                let mut now = now.clone();
                now.wait_for(|now| *now).await.expect("the test lets it go");
                self.inner.resume(call, after).await
            }
            How::Blindly => {
                call.id = CallId::generate();
                match self.inner.plan(call).await {
                    Ok(plan) => self.inner.start(plan).await,
                    Err(refused) => panic!("a call that ran is planned again: {refused:?}"),
                }
            }
        }
    }

    fn facts(&self) -> watch::Receiver<Arc<ServerFacts>> {
        self.inner.facts()
    }

    fn check_param_headers(
        &self,
        params: Option<&RawJson>,
        header: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<(), RpcError> {
        self.inner.check_param_headers(params, header)
    }

    fn plan(&self, call: Call) -> Planning {
        self.inner.plan(call)
    }

    fn replan(&self, plan: &CallPlan, tried: &[WorkerId]) -> Option<Binding> {
        self.inner.replan(plan, tried)
    }

    fn start(&self, plan: CallPlan) -> Starting {
        self.inner.start(plan)
    }

    async fn subscribe(&self, uri: &str) -> Result<(), RpcError> {
        self.inner.subscribe(uri).await
    }

    async fn unsubscribe(&self, uri: &str) {
        self.inner.unsubscribe(uri).await;
    }

    async fn end_session(&self, session: &SessionId) {
        self.inner.end_session(session).await;
    }
}
