//! One connection as seen by those who send it requests.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use shoal_ports::{Call, Caller};
use shoal_protocol::{Era, Method, Outcome, RawJson, RawObject, RequestId, RpcError, code};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};

use super::binding::Binding;
use super::era::Greeting;
use super::error::RequestError;
use super::last_words::LastWords;
use super::outgoing::{OutgoingMessage, OutgoingRequest, WriteState};
use super::params;
use super::pending::{PendingCall, PendingRequests, RegisteredRequest, RequestOutcome};
use super::server_task::TaskTools;
use super::subscriptions::Subscriptions;
use super::throttle::Throttle;

/// How long a server may take to answer a `ping` that it was sent to learn that it has read what came before.
const REPLY: Duration = Duration::from_secs(1);
/// How long a server may take to look at the directories that are its roots.
const TAKES_IN: Duration = Duration::from_millis(100);

/// The way to one server, alive or not: requests after its end are refused at once.
pub(crate) struct Link {
    /// What is in flight.
    pub(crate) pending: PendingRequests,
    /// Where changes of resources are told.
    pub(crate) subscriptions: Arc<Subscriptions>,
    /// Bounds complaints about what the server writes.
    pub(crate) complaints: Throttle,
    /// What the server writes for its operators, where that comes here.
    pub(crate) last_words: LastWords,
    queue: mpsc::Sender<OutgoingMessage>,
    binding: Binding,
    greeting: OnceLock<Greeting>,
    task_tools: OnceLock<Arc<TaskTools>>,
    changes: watch::Sender<[u64; 3]>,
    /// Of the changes, those that the server has said itself.
    announced: watch::Sender<[u64; 3]>,
    subscribed: Mutex<BTreeSet<String>>,
    stateless: AtomicBool,
    /// Whether the server's early question for roots found no answer in time.
    has_no_roots: AtomicBool,
    lost: OnceLock<Arc<str>>,
    request_timeout: Duration,
    name: Arc<str>,
}

impl Link {
    /// The way to a server that reads from the other end of `queue`.
    pub(crate) fn new(
        name: Arc<str>,
        queue: mpsc::Sender<OutgoingMessage>,
        binding: Binding,
        subscriptions: Arc<Subscriptions>,
        request_timeout: Duration,
    ) -> Self {
        Self {
            pending: PendingRequests::default(),
            subscriptions,
            complaints: Throttle::default(),
            last_words: LastWords::default(),
            queue,
            binding,
            greeting: OnceLock::new(),
            task_tools: OnceLock::new(),
            changes: watch::Sender::new([0; 3]),
            announced: watch::Sender::new([0; 3]),
            subscribed: Mutex::default(),
            stateless: AtomicBool::new(false),
            has_no_roots: AtomicBool::new(false),
            lost: OnceLock::new(),
            request_timeout,
            name,
        }
    }

    /// What the server is called in logs.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// For whom the connection is.
    pub(crate) fn binding(&self) -> &Binding {
        &self.binding
    }

    /// What the server said of itself; before the handshake, that it is legacy and offers nothing.
    pub(crate) fn greeting(&self) -> &Greeting {
        static NONE: Greeting = Greeting::NONE;
        self.greeting.get().unwrap_or(&NONE)
    }

    /// Remembers what the server said of itself, once, and where the names of its tools are that need tasks.
    pub(crate) fn set_greeting(&self, greeting: Greeting, task_tools: Arc<TaskTools>) {
        let _ = self.task_tools.set(task_tools);
        let _ = self.greeting.set(greeting);
    }

    /// Takes in the server's list of tools.
    pub(crate) fn learn_task_tools(&self, tools: &mut [RawJson]) {
        let greeting = self.greeting();
        if let Some(known) = self.task_tools.get()
            && greeting.tasks
            && greeting.era == Era::Legacy
        {
            known.learn(tools);
        }
    }

    /// Takes in tools that are listed to one caller, besides those that are known.
    pub(crate) fn learn_own_task_tools(&self, tools: &mut [RawJson]) {
        let greeting = self.greeting();
        if let Some(known) = self.task_tools.get()
            && greeting.tasks
            && greeting.era == Era::Legacy
        {
            known.add(tools);
        }
    }

    /// Whether the server takes a call as a task alone.
    pub(crate) fn runs_as_task(&self, call: &Call) -> bool {
        let greeting = self.greeting();
        if !greeting.tasks || greeting.era != Era::Legacy || call.method != Method::ToolsCall {
            return false;
        }
        let Some(known) = self.task_tools.get().filter(|known| !known.is_empty()) else {
            return false;
        };
        let name = call
            .params
            .as_ref()
            .and_then(|params| params.member("name"));
        let name = name.and_then(|name| name.string());
        name.is_some_and(|name| known.has(&name))
    }

    /// The server remembers nothing from one request to the next (legacy): it has no use for answers to its own requests.
    pub(crate) fn set_stateless(&self) {
        self.stateless.store(true, Ordering::Release);
    }

    /// Whether it is so.
    pub(crate) fn is_stateless(&self) -> bool {
        self.stateless.load(Ordering::Acquire)
    }

    /// Why the connection is of no use any more, although what is in flight may still be answered.
    pub(crate) fn lose(&self, reason: &str) {
        let _ = self.lost.set(reason.into());
    }

    /// Why that is so, if it is.
    pub(crate) fn lost(&self) -> Option<Arc<str>> {
        self.lost.get().cloned()
    }

    /// How often the server has announced changes of tools, resources and prompts.
    pub(crate) fn changes(&self) -> watch::Receiver<[u64; 3]> {
        self.changes.subscribe()
    }

    /// The same without changes that may have been missed.
    pub(crate) fn announced(&self) -> watch::Receiver<[u64; 3]> {
        self.announced.subscribe()
    }

    /// The server announced a change.
    pub(crate) fn list_changed(&self, list: usize) {
        for told in [&self.changes, &self.announced] {
            told.send_modify(|changes| changes[list] += 1);
        }
    }

    /// The server may have announced changes that did not arrive.
    pub(crate) fn lists_may_have_changed(&self) {
        self.changes.send_modify(|changes| {
            for change in changes {
                *change += 1;
            }
        });
    }

    /// The resources that this server has been told to watch (legacy).
    pub(crate) fn subscribed(&self) -> BTreeSet<String> {
        self.subscribed.lock().clone()
    }

    /// Remembers whether this server watches a resource.
    pub(crate) fn set_subscribed(&self, uri: &str, watched: bool) {
        let mut subscribed = self.subscribed.lock();
        if watched {
            subscribed.insert(uri.to_owned());
        } else {
            subscribed.remove(uri);
        }
    }

    /// Adds what a modern server must be told with a request of Shoal's own.
    pub(crate) fn with_own_meta(&self, params: RawObject) -> RawJson {
        let (info, capabilities) = (self.binding.client_info(), self.binding.capabilities());
        params::with_own_meta(params, info, capabilities)
    }

    /// Registers a request; it is not sent yet.
    ///
    /// # Errors
    /// How the server ended, if it has.
    pub(crate) fn register(
        self: &Arc<Self>,
        call: Option<PendingCall>,
    ) -> Result<RequestHandle, Arc<str>> {
        Ok(self.handle(self.pending.register(call)?))
    }

    /// Registers a request of the same call as another one.
    ///
    /// # Errors
    /// How the server ended, if it has.
    pub(crate) fn register_for(self: &Arc<Self>, request: u64) -> Result<RequestHandle, Arc<str>> {
        Ok(self.handle(self.pending.register_for(request)?))
    }

    fn handle(self: &Arc<Self>, registered: RegisteredRequest) -> RequestHandle {
        let RegisteredRequest {
            id,
            write_state,
            outcome,
        } = registered;
        RequestHandle {
            id,
            write_state,
            outcome,
            link: self.clone(),
            waits: None,
            told_when_dropped: true,
        }
    }

    /// Sends a request of Shoal's own.
    ///
    /// # Errors
    /// How the server ended, if it has.
    pub(crate) async fn open(
        self: &Arc<Self>,
        method: Method,
        params: Option<RawJson>,
    ) -> Result<RequestHandle, Arc<str>> {
        let mut handle = self.register(None)?;
        handle.send(&method, params.as_ref(), None).await;
        Ok(handle)
    }

    /// Sends a request of Shoal's own and waits for the result.
    pub(crate) async fn request(
        self: &Arc<Self>,
        method: Method,
        params: Option<RawJson>,
    ) -> Result<RawJson, RequestError> {
        self.request_of(None, method, params).await
    }

    /// The same in the name of a caller, if one is given.
    pub(crate) async fn request_of(
        self: &Arc<Self>,
        caller: Option<&Arc<Caller>>,
        method: Method,
        params: Option<RawJson>,
    ) -> Result<RawJson, RequestError> {
        let answered = async {
            let mut handle = self.register(None).map_err(RequestError::Ended)?;
            handle.send(&method, params.as_ref(), caller).await;
            handle.result().await
        };
        timeout(self.request_timeout, answered)
            .await
            .unwrap_or(Err(RequestError::TimedOut))
    }

    /// Waits until the server has had the time to ask for roots: before its answer to a request, it says what it was to say
    /// after the handshake.
    pub(crate) async fn asks_for_roots(self: &Arc<Self>) {
        let _ = timeout(REPLY, self.request(Method::Ping, None)).await;
    }

    /// Whether a call waits for the roots that the server asked for before there was a call.
    pub(crate) fn waits_for_roots(&self) -> bool {
        self.binding.gives_roots_early() && !self.has_no_roots.load(Ordering::Relaxed)
    }

    /// No other call waits for them.
    pub(crate) fn goes_on_without_roots(&self) {
        self.has_no_roots.store(true, Ordering::Relaxed);
    }

    /// Waits until the server has had the time to take in the roots that it was told. Servers do so beside other requests, and
    /// say nothing when they have.
    pub(crate) async fn takes_in_roots(self: &Arc<Self>) {
        let _ = timeout(REPLY, self.request(Method::Ping, None)).await;
        sleep(TAKES_IN).await;
    }

    /// Sends a notification, waiting while the server does not read.
    pub(crate) async fn notify(&self, method: Method, params: Option<&RawJson>) {
        let text = shoal_protocol::notification(method.as_str(), params);
        // Sending fails only when the server has ended, and with it whoever wanted this.
        let _ = self.queue.send(aside(text, Some(method))).await;
    }

    /// Sends an answer, waiting while the server does not read.
    pub(crate) async fn answer(&self, text: Bytes) {
        let _ = self.queue.send(aside(text, None)).await;
    }

    /// Sends a notification without waiting, even when the server does not read at the moment.
    fn notify_later(self: Arc<Self>, method: Method, params: &RawJson) {
        let text = shoal_protocol::notification(method.as_str(), Some(params));
        let message = aside(text, Some(method));
        if let Err(TrySendError::Full(message)) = self.queue.try_send(message)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            // It waits no longer than the server lives.
            runtime.spawn(async move { self.queue.send(message).await.is_ok() });
        }
    }

    /// Sends an answer unless the server does not read. For those that must not
    /// wait: the reader of the server's output would wait for a server that waits for its reader.
    pub(crate) fn try_answer(&self, text: Bytes) {
        if self.queue.try_send(aside(text, None)).is_err() {
            tracing::debug!(target: "shoal::upstream", server = self.name(), "the server does not read its input; a message was dropped");
        }
    }
}

/// A message that nobody waits for an answer to.
fn aside(text: Bytes, method: Option<Method>) -> OutgoingMessage {
    OutgoingMessage {
        text,
        method,
        request: None,
    }
}

/// A registered request. Dropping it stops waiting and tells the server.
pub(crate) struct RequestHandle {
    id: u64,
    write_state: Arc<WriteState>,
    outcome: oneshot::Receiver<RequestOutcome>,
    link: Arc<Link>,
    /// Tells the transport, by its end, that nobody waits any more.
    waits: Option<oneshot::Sender<()>>,
    told_when_dropped: bool,
}

impl RequestHandle {
    /// The request's id, which is also its progress token.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Puts the request into the queue; waits while the server does not read. Cancellation safe.
    pub(crate) async fn send(
        &mut self,
        method: &Method,
        params: Option<&RawJson>,
        caller: Option<&Arc<Caller>>,
    ) {
        let (waits, given_up) = oneshot::channel();
        self.waits = Some(waits);
        let message = OutgoingMessage {
            text: shoal_protocol::request(
                &RequestId::from_number(self.id),
                method.as_str(),
                params,
            ),
            method: Some(method.clone()),
            request: Some(OutgoingRequest {
                id: self.id,
                caller: caller.cloned(),
                params: params.cloned(),
                write_state: self.write_state.clone(),
                given_up,
            }),
        };
        if self.link.queue.send(message).await.is_err() {
            // Nobody writes any more; the end of the server may not have been noticed yet.
            let lost = RequestOutcome::Lost {
                written: false,
                reason: "the server has closed its input".into(),
            };
            self.link.pending.finish(self.id, lost);
        }
    }

    /// How the request ended. Cancellation safe; afterwards it waits forever.
    pub(crate) async fn outcome(&mut self) -> RequestOutcome {
        match (&mut self.outcome).await {
            Ok(outcome) => outcome,
            Err(_) => std::future::pending().await,
        }
    }

    /// The result of a request of Shoal's own.
    pub(crate) async fn result(mut self) -> Result<RawJson, RequestError> {
        match self.outcome().await {
            RequestOutcome::Answered(Outcome::Result(result)) => Ok(result),
            RequestOutcome::Answered(Outcome::Error(error)) | RequestOutcome::Rejected(error) => {
                Err(RequestError::Rpc(error))
            }
            RequestOutcome::TooLarge => Err(RequestError::TooLarge),
            RequestOutcome::Unreadable(why) => Err(RequestError::Unreadable(why)),
            RequestOutcome::Refused(failure) | RequestOutcome::Declined(failure) => {
                let busy = RpcError::new(code::OVERLOADED, failure.to_string());
                Err(RequestError::Rpc(busy))
            }
            RequestOutcome::Lost { reason, .. } => Err(RequestError::Ended(reason)),
        }
    }

    /// Stops waiting. Returns whether the request had reached the server, which has been told.
    pub(crate) fn abandon(&mut self) -> bool {
        let reached = self.link.pending.abandon(self.id);
        if reached {
            self.tell_cancelled();
        }
        reached
    }

    /// Takes the request back before it is written. Returns whether that was possible.
    pub(crate) fn withdraw(&self) -> bool {
        self.write_state.withdraw()
    }

    /// Tells the server, once, that the answer is not needed. It may come all the same.
    pub(crate) fn tell_cancelled(&mut self) {
        if std::mem::take(&mut self.told_when_dropped) {
            let params = format!(
                r#"{{"requestId":{},"reason":"the caller no longer waits"}}"#,
                self.id
            );
            let params = RawJson::from_valid(params.into());
            self.link.clone().notify_later(Method::Cancelled, &params);
        }
    }

    /// For the handshake, which must not be cancelled.
    pub(crate) fn never_cancelled(mut self) -> Self {
        self.told_when_dropped = false;
        self
    }
}

impl Drop for RequestHandle {
    fn drop(&mut self) {
        self.abandon();
    }
}
