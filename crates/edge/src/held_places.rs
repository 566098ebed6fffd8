use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use shoal_ports::{
    CallEventKind, Delivered, GatewayError, RunningCall, SessionGateway, SessionId, SessionRef,
};
use shoal_protocol::{Body, Message, Request, RequestId};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};

use crate::awaited_answers::{AwaitedAnswers, ExpectedAnswer};
use crate::call_end::ends_call;
use crate::places::{QuotaPlaces, SharedPlaces};
use crate::state::EdgeState;

/// Maximum wait for an answer of a session's owner. Then the edge asks again, because the answer
/// may be lost.
const ASKED_FOR: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_secs(1);
/// How long tools may take to stop after the call's deadline, or after the session's end, when no
/// owner reports on them.
const STOPS_WITHIN: Duration = Duration::from_secs(5);

/// Quota places that a session's requests hold until their tools have stopped. If dropped early, a
/// Tokio task keeps the places until the session's owner says that the requests are over, or stays
/// unreachable.
pub(crate) struct SessionPlaces {
    places: SharedPlaces,
    expected: Option<ExpectedAnswer>,
    gateway: Arc<dyn SessionGateway>,
    session: SessionRef,
    requests: Option<Vec<RequestId>>,
    deadline: Duration,
}

impl SessionPlaces {
    pub(crate) fn of(
        edge: &EdgeState,
        session: SessionRef,
        body: &Body,
        places: QuotaPlaces,
    ) -> Self {
        let requests = messages(body).filter_map(request);
        Self {
            places: Arc::new(Mutex::new(places)),
            expected: None,
            gateway: Arc::clone(&edge.gateway),
            session,
            requests: Some(requests.map(|request| request.id.clone()).collect()),
            deadline: edge.config.calls.timeout.get(),
        }
    }

    pub(crate) fn of_task(
        gateway: Arc<dyn SessionGateway>,
        task: SessionRef,
        places: QuotaPlaces,
        deadline: Duration,
    ) -> Self {
        Self {
            places: Arc::new(Mutex::new(places)),
            expected: None,
            gateway,
            session: task,
            requests: None,
            deadline,
        }
    }

    pub(crate) fn expect_on_stream(&mut self, answers: &AwaitedAnswers) {
        if let Some([request]) = self.requests.as_deref() {
            self.expected = answers.expect(&self.session.session, request, &self.places);
        }
    }

    pub(crate) fn delivered(&mut self, delivered: Result<&Delivered, &GatewayError>) {
        match delivered {
            Ok(Delivered::Json(text)) => self.answered(text),
            Ok(Delivered::Task(task)) => self.becomes(SessionId::new(task.id.as_str())),
            Ok(Delivered::Accepted | Delivered::Stream(_)) => {}
            // The session's node may have accepted the requests.
            Err(GatewayError::Unreachable { .. }) => {}
            Err(_) => self.free(),
        }
    }

    /// Frees the places if `text` answers the only request and its tool has stopped.
    pub(crate) fn answered(&mut self, text: &[u8]) {
        let is_one = (self.requests.as_ref()).is_some_and(|requests| requests.len() == 1);
        if is_one && ends_call(text) {
            self.free();
        }
    }

    fn becomes(&mut self, task: SessionId) {
        self.session.session = task;
        self.requests = None;
    }

    fn free(&self) {
        *self.places.lock() = QuotaPlaces::default();
    }
}

impl Drop for SessionPlaces {
    fn drop(&mut self) {
        let (places, expected) = (Arc::clone(&self.places), self.expected.take());
        if places.lock().is_empty() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let gateway = Arc::clone(&self.gateway);
        let (session, requests) = (self.session.clone(), self.requests.take());
        let patience = self.deadline + STOPS_WITHIN;
        runtime.spawn(async move {
            until_over(&*gateway, &session, requests.as_deref(), patience).await;
            drop((places, expected));
        });
    }
}

/// `patience` limits how long the owner may be unreachable.
async fn until_over(
    gateway: &dyn SessionGateway,
    session: &SessionRef,
    requests: Option<&[RequestId]>,
    patience: Duration,
) {
    let mut heard = Instant::now();
    while heard.elapsed() < patience {
        let asked = gateway.until_over(session, requests);
        match timeout(ASKED_FOR, asked).await {
            Ok(Ok(())) => return,
            Ok(Err(GatewayError::NotFound)) => return sleep(STOPS_WITHIN).await,
            Ok(Err(error)) => {
                tracing::debug!(session = %session.session, %error, "cannot wait for the end of a call");
                sleep(AGAIN).await;
            }
            Err(_) => heard = Instant::now(),
        }
    }
}

/// The call's tool holds the places, even if the call is dropped.
pub(crate) struct CallPlaces {
    places: QuotaPlaces,
    deadline: Duration,
}

impl CallPlaces {
    pub(crate) fn new(edge: &EdgeState, places: QuotaPlaces) -> Self {
        Self {
            places,
            deadline: edge.config.calls.timeout.get(),
        }
    }

    pub(crate) fn take(&mut self) -> Self {
        Self {
            places: std::mem::take(&mut self.places),
            deadline: self.deadline,
        }
    }

    pub(crate) fn ended(self, running: &RunningCall) {
        if !self.places.is_empty()
            && let Some(over) = running.control.over()
        {
            self.keep(over);
        }
    }

    pub(crate) fn see_out(self, mut running: RunningCall) {
        if self.places.is_empty() {
            return;
        }
        self.keep(Box::pin(async move {
            while let Some(event) = running.events.next().await {
                if matches!(event.kind, CallEventKind::Finished(_)) {
                    break;
                }
            }
            if let Some(over) = running.control.over() {
                over.await;
            }
        }));
    }

    pub(crate) fn becomes(self, gateway: Arc<dyn SessionGateway>, task: SessionRef) {
        drop(SessionPlaces::of_task(
            gateway,
            task,
            self.places,
            self.deadline,
        ));
    }

    fn keep(self, over: BoxFuture<'static, ()>) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let Self { places, deadline } = self;
        runtime.spawn(async move {
            let _ = timeout(deadline + STOPS_WITHIN, over).await;
            drop(places);
        });
    }
}

pub(crate) fn runs(body: &Body) -> bool {
    let mut requests = messages(body).filter_map(request);
    requests.any(|request| request.method.runs_on_backend())
}

fn messages(body: &Body) -> impl Iterator<Item = &Message> {
    let (one, many) = match body {
        Body::Single(message) => (Some(message), None),
        Body::Batch(members) => (None, Some(members.iter().flatten())),
    };
    one.into_iter().chain(many.into_iter().flatten())
}

fn request(message: &Message) -> Option<&Request> {
    match message {
        Message::Request(request) => Some(request),
        _ => None,
    }
}
