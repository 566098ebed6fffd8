//! One process as seen by those who send it requests.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use shoal_protocol::{Method, Outcome, RawJson, RawObject, RequestId};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};

use super::binding::Binding;
use super::era::Greeting;
use super::error::RequestError;
use super::flights::{Boarded, Flights, Landing, Passenger};
use super::outgoing::{Outgoing, Stage};
use super::params;
use super::subscriptions::Subscriptions;
use super::throttle::Throttle;

/// The connection to one process, alive or not: requests after its end are refused at once.
pub(super) struct Link {
    /// What is in flight.
    pub(super) flights: Flights,
    /// Where changes of resources are told.
    pub(super) subscriptions: Arc<Subscriptions>,
    /// Bounds complaints about what the process writes.
    pub(super) complaints: Throttle,
    queue: mpsc::Sender<Outgoing>,
    binding: Binding,
    greeting: OnceLock<Greeting>,
    changes: watch::Sender<[u64; 3]>,
    subscribed: Mutex<BTreeSet<String>>,
    request_timeout: Duration,
    pid: u32,
}

impl Link {
    /// The connection to a process that has just been started and reads from the other end of `queue`.
    pub(super) fn new(
        pid: u32,
        queue: mpsc::Sender<Outgoing>,
        binding: Binding,
        subscriptions: Arc<Subscriptions>,
        request_timeout: Duration,
    ) -> Self {
        Self {
            flights: Flights::default(),
            subscriptions,
            complaints: Throttle::default(),
            queue,
            binding,
            greeting: OnceLock::new(),
            changes: watch::Sender::new([0; 3]),
            subscribed: Mutex::default(),
            request_timeout,
            pid,
        }
    }

    /// The process id, for logs.
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// For whom the process runs.
    pub(super) fn binding(&self) -> &Binding {
        &self.binding
    }

    /// What the process said of itself; before the handshake, that it is legacy and offers nothing.
    pub(super) fn greeting(&self) -> &Greeting {
        static NONE: Greeting = Greeting::NONE;
        self.greeting.get().unwrap_or(&NONE)
    }

    /// Remembers what the process said of itself, once.
    pub(super) fn set_greeting(&self, greeting: Greeting) {
        let _ = self.greeting.set(greeting);
    }

    /// How often the process has announced changes of tools, resources and prompts.
    pub(super) fn changes(&self) -> watch::Receiver<[u64; 3]> {
        self.changes.subscribe()
    }

    /// The process announced a change.
    pub(super) fn list_changed(&self, list: usize) {
        self.changes.send_modify(|changes| changes[list] += 1);
    }

    /// The resources that this process has been told to watch (legacy).
    pub(super) fn subscribed(&self) -> BTreeSet<String> {
        self.subscribed.lock().clone()
    }

    /// Remembers whether this process watches a resource.
    pub(super) fn set_subscribed(&self, uri: &str, watched: bool) {
        let mut subscribed = self.subscribed.lock();
        if watched {
            subscribed.insert(uri.to_owned());
        } else {
            subscribed.remove(uri);
        }
    }

    /// Adds what a modern process must be told with a request of Shoal's own.
    pub(super) fn with_own_meta(&self, params: RawObject) -> RawJson {
        let (info, capabilities) = (self.binding.client_info(), self.binding.capabilities());
        params::with_own_meta(params, info, capabilities)
    }

    /// Registers a request; it is not sent yet.
    ///
    /// # Errors
    /// How the process ended, if it has.
    pub(super) fn board(self: &Arc<Self>, call: Option<Passenger>) -> Result<Ticket, Arc<str>> {
        let Boarded { id, stage, landing } = self.flights.board(call)?;
        Ok(Ticket {
            id,
            stage,
            landing,
            link: self.clone(),
            told_when_dropped: true,
        })
    }

    /// Sends a request of Shoal's own.
    ///
    /// # Errors
    /// How the process ended, if it has.
    pub(super) async fn open(
        self: &Arc<Self>,
        method: Method,
        params: Option<RawJson>,
    ) -> Result<Ticket, Arc<str>> {
        let ticket = self.board(None)?;
        ticket.send(&method, params.as_ref()).await;
        Ok(ticket)
    }

    /// Sends a request of Shoal's own and waits for the result.
    pub(super) async fn request(
        self: &Arc<Self>,
        method: Method,
        params: Option<RawJson>,
    ) -> Result<RawJson, RequestError> {
        let answered = async {
            let opened = self.open(method, params).await;
            opened.map_err(RequestError::Ended)?.landed().await
        };
        tokio::time::timeout(self.request_timeout, answered)
            .await
            .unwrap_or(Err(RequestError::TimedOut))
    }

    /// Sends a notification or an answer, waiting while the process does not read.
    pub(super) async fn send(&self, text: Bytes) {
        // Sending fails only when the process has ended, and with it whoever wanted this.
        let _ = self.queue.send(Outgoing { text, stage: None }).await;
    }

    /// Sends a notification without waiting, even when the process does not read at the moment.
    fn send_later(self: Arc<Self>, text: Bytes) {
        let message = Outgoing { text, stage: None };
        if let Err(TrySendError::Full(message)) = self.queue.try_send(message)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            // It waits no longer than the process lives.
            runtime.spawn(async move { self.queue.send(message).await.is_ok() });
        }
    }

    /// Sends a notification or an answer unless the process does not read. For those that must not
    /// wait: the reader of the process's output would wait for a process that waits for its reader.
    pub(super) fn try_send(&self, text: Bytes) {
        if self.queue.try_send(Outgoing { text, stage: None }).is_err() {
            tracing::debug!(target: "shoal::stdio", pid = self.pid, "the server does not read its input; a message was dropped");
        }
    }
}

/// A registered request. Dropping it stops waiting and tells the process.
pub(super) struct Ticket {
    id: u64,
    stage: Arc<Stage>,
    landing: oneshot::Receiver<Landing>,
    link: Arc<Link>,
    told_when_dropped: bool,
}

impl Ticket {
    /// The request's id, which is also its progress token.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Puts the request into the queue; waits while the process does not read. Cancellation safe.
    pub(super) async fn send(&self, method: &Method, params: Option<&RawJson>) {
        let message = Outgoing {
            text: shoal_protocol::request(
                &RequestId::from_number(self.id),
                method.as_str(),
                params,
            ),
            stage: Some(self.stage.clone()),
        };
        if self.link.queue.send(message).await.is_err() {
            // Nobody writes any more; the end of the process may not have been noticed yet.
            let lost = Landing::Lost {
                written: false,
                reason: "the server has closed its input".into(),
            };
            self.link.flights.land(self.id, lost);
        }
    }

    /// How the request ended. Cancellation safe; afterwards it waits forever.
    pub(super) async fn landing(&mut self) -> Landing {
        match (&mut self.landing).await {
            Ok(landing) => landing,
            Err(_) => std::future::pending().await,
        }
    }

    /// The result of a request of Shoal's own.
    pub(super) async fn landed(mut self) -> Result<RawJson, RequestError> {
        match self.landing().await {
            Landing::Answered(Outcome::Result(result)) => Ok(result),
            Landing::Answered(Outcome::Error(error)) => Err(RequestError::Rpc(error)),
            Landing::TooLarge => Err(RequestError::TooLarge),
            Landing::Unreadable(why) => Err(RequestError::Unreadable(why)),
            Landing::Lost { reason, .. } => Err(RequestError::Ended(reason)),
        }
    }

    /// Stops waiting. Returns whether the request had reached the process, which has been told.
    pub(super) fn abandon(&mut self) -> bool {
        let reached = self.link.flights.abandon(self.id);
        if reached && self.told_when_dropped {
            let params = format!(
                r#"{{"requestId":{},"reason":"the caller no longer waits"}}"#,
                self.id
            );
            let params = RawJson::from_valid(params.into());
            let text = shoal_protocol::notification(Method::Cancelled.as_str(), Some(&params));
            self.link.clone().send_later(text);
        }
        reached
    }

    /// For the handshake, which must not be cancelled.
    pub(super) fn never_cancelled(mut self) -> Self {
        self.told_when_dropped = false;
        self
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.abandon();
    }
}
