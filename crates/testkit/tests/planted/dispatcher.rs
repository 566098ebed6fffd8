use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt as _;
use shoal_ports::{
    Binding, Call, CallEventKind, CallEvents, CallFailure, CallId, CallPlan, Caller, Dispatcher,
    Drawn, Planning, ResourceUpdated, RunningCall, ServerFacts, SessionId, SessionRef, Starting,
    WorkerId, later,
};
use shoal_protocol::{RawJson, Request, RpcError};
use tokio::sync::{broadcast, watch};

pub(crate) enum How {
    /// Resumes calls correctly, but waits until this value is true.
    Later(watch::Receiver<bool>),
    /// Starts the call as a new one, under another id.
    Blindly,
    /// Resumes calls correctly, but frees each result as soon as it has arrived.
    Hastily,
}

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
            How::Hastily => self.inner.resume(call, after).await,
            How::Blindly => {
                call.id = CallId::generate();
                match self.inner.plan(call).await {
                    Ok(plan) => self.inner.start(&plan).await,
                    Err(refused) => panic!("a call that ran is planned again: {refused:?}"),
                }
            }
        }
    }

    fn facts(&self) -> watch::Receiver<Arc<ServerFacts>> {
        self.inner.facts()
    }

    fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated> {
        self.inner.resource_updates()
    }

    fn check_param_headers(
        &self,
        caller: &Caller,
        params: Option<&RawJson>,
        header: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<(), RpcError> {
        self.inner.check_param_headers(caller, params, header)
    }

    fn plan(&self, call: Call) -> Planning {
        self.inner.plan(call)
    }

    fn draw(&self, to: &SessionRef, request: &Request, tried: &[WorkerId]) -> Drawn {
        self.inner.draw(to, request, tried)
    }

    fn replan(&self, plan: &CallPlan, tried: &[WorkerId]) -> Option<Binding> {
        self.inner.replan(plan, tried)
    }

    fn start(&self, plan: &CallPlan) -> Starting {
        let (inner, call) = (self.inner.clone(), plan.call.id);
        let starting = self.inner.start(plan);
        if !matches!(self.how, How::Hastily) {
            return starting;
        }
        later(async move {
            let running = starting.await?;
            let worker = running.worker.clone().expect("a worker runs it");
            let events = running.events.inspect(move |event| {
                if matches!(event.kind, CallEventKind::Finished(_)) {
                    inner.acknowledge(&worker, call);
                }
            });
            Ok(RunningCall {
                events: CallEvents::from_stream(events),
                ..running
            })
        })
    }

    async fn subscribe(&self, caller: Option<&Caller>, uri: &str) -> Result<(), RpcError> {
        self.inner.subscribe(caller, uri).await
    }

    async fn unsubscribe(&self, uri: &str) {
        self.inner.unsubscribe(uri).await;
    }

    async fn end_session(&self, session: &SessionId) {
        self.inner.end_session(session).await;
    }
}
