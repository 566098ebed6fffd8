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

use super::binding::ConnectionBinding;
use super::error::RequestError;
use super::greeting::Greeting;
use super::last_words::LastWords;
use super::outgoing::{OutgoingMessage, OutgoingRequest, WriteState};
use super::params;
use super::pending::{PendingCall, PendingRequests, RegisteredRequest, RequestOutcome};
use super::server_task::tools::TaskTools;
use super::subscriptions::ServerSubscriptions;
use super::throttle::Throttle;

/// How long to wait for the answer to a `ping`, which shows that the server has read earlier messages.
const REPLY: Duration = Duration::from_secs(1);
const TAKES_IN: Duration = Duration::from_millis(100);

/// Shoal's end of a connection. Once the connection has ended, requests fail at once.
pub(crate) struct ServerLink {
    pub(crate) pending: PendingRequests,
    pub(crate) subscriptions: Arc<ServerSubscriptions>,
    pub(crate) complaints: Throttle,
    pub(crate) last_words: LastWords,
    queue: mpsc::Sender<OutgoingMessage>,
    binding: ConnectionBinding,
    greeting: OnceLock<Greeting>,
    task_tools: OnceLock<Arc<TaskTools>>,
    changes: watch::Sender<[u64; 3]>,
    /// Counts changes that the server announced, without those that Shoal may have missed.
    announced: watch::Sender<[u64; 3]>,
    subscribed: Mutex<BTreeSet<String>>,
    stateless: AtomicBool,
    has_no_roots: AtomicBool,
    lost: OnceLock<Arc<str>>,
    request_timeout: Duration,
    name: Arc<str>,
}

impl ServerLink {
    pub(crate) fn new(
        name: Arc<str>,
        queue: mpsc::Sender<OutgoingMessage>,
        binding: ConnectionBinding,
        subscriptions: Arc<ServerSubscriptions>,
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

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn binding(&self) -> &ConnectionBinding {
        &self.binding
    }

    /// The server's self-description; before the handshake, a legacy server without features.
    pub(crate) fn greeting(&self) -> &Greeting {
        static NONE: Greeting = Greeting::NONE;
        self.greeting.get().unwrap_or(&NONE)
    }

    pub(crate) fn set_greeting(&self, greeting: Greeting, task_tools: Arc<TaskTools>) {
        let _ = self.task_tools.set(task_tools);
        let _ = self.greeting.set(greeting);
    }

    pub(crate) fn learn_task_tools(&self, tools: &mut [RawJson]) {
        let greeting = self.greeting();
        if let Some(known) = self.task_tools.get()
            && greeting.tasks
            && greeting.era == Era::Legacy
        {
            known.learn(tools);
        }
    }

    pub(crate) fn learn_own_task_tools(&self, tools: &mut [RawJson]) {
        let greeting = self.greeting();
        if let Some(known) = self.task_tools.get()
            && greeting.tasks
            && greeting.era == Era::Legacy
        {
            known.add(tools);
        }
    }

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

    /// A stateless legacy server cannot use answers to its own requests.
    pub(crate) fn set_stateless(&self) {
        self.stateless.store(true, Ordering::Release);
    }

    pub(crate) fn is_stateless(&self) -> bool {
        self.stateless.load(Ordering::Acquire)
    }

    /// Marks the connection as unusable. Requests in flight may still be answered.
    pub(crate) fn lose(&self, reason: &str) {
        let _ = self.lost.set(reason.into());
    }

    pub(crate) fn lost(&self) -> Option<Arc<str>> {
        self.lost.get().cloned()
    }

    /// Counts changes of tools, resources and prompts, both announced and possibly missed.
    pub(crate) fn changes(&self) -> watch::Receiver<[u64; 3]> {
        self.changes.subscribe()
    }

    pub(crate) fn announced(&self) -> watch::Receiver<[u64; 3]> {
        self.announced.subscribe()
    }

    pub(crate) fn list_changed(&self, list: usize) {
        for told in [&self.changes, &self.announced] {
            told.send_modify(|changes| changes[list] += 1);
        }
    }

    pub(crate) fn lists_may_have_changed(&self) {
        self.changes.send_modify(|changes| {
            for change in changes {
                *change += 1;
            }
        });
    }

    pub(crate) fn subscribed(&self) -> BTreeSet<String> {
        self.subscribed.lock().clone()
    }

    pub(crate) fn set_subscribed(&self, uri: &str, watched: bool) {
        let mut subscribed = self.subscribed.lock();
        if watched {
            subscribed.insert(uri.to_owned());
        } else {
            subscribed.remove(uri);
        }
    }

    pub(crate) fn with_own_meta(&self, params: RawObject) -> RawJson {
        let (info, capabilities) = (self.binding.client_info(), self.binding.capabilities());
        params::with_own_meta(params, info, capabilities)
    }

    pub(crate) fn register(
        self: &Arc<Self>,
        call: Option<PendingCall>,
    ) -> Result<RequestHandle, Arc<str>> {
        Ok(self.handle(self.pending.register(call)?))
    }

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

    pub(crate) async fn open(
        self: &Arc<Self>,
        method: Method,
        params: Option<RawJson>,
    ) -> Result<RequestHandle, Arc<str>> {
        let mut handle = self.register(None)?;
        handle.send(&method, params.as_ref(), None).await;
        Ok(handle)
    }

    pub(crate) async fn request(
        self: &Arc<Self>,
        method: Method,
        params: Option<RawJson>,
    ) -> Result<RawJson, RequestError> {
        self.request_of(None, method, params).await
    }

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

    /// Gives the server time to ask for roots: servers ask before they answer a ping.
    pub(crate) async fn asks_for_roots(self: &Arc<Self>) {
        let _ = timeout(REPLY, self.request(Method::Ping, None)).await;
    }

    pub(crate) fn waits_for_roots(&self) -> bool {
        self.binding.gives_roots_early() && !self.has_no_roots.load(Ordering::Relaxed)
    }

    pub(crate) fn goes_on_without_roots(&self) {
        self.has_no_roots.store(true, Ordering::Relaxed);
    }

    /// Gives the server time to process its roots, by a ping.
    pub(crate) async fn takes_in_roots(self: &Arc<Self>) {
        let _ = timeout(REPLY, self.request(Method::Ping, None)).await;
        sleep(TAKES_IN).await;
    }

    /// Waits while the server does not read.
    pub(crate) async fn notify(&self, method: Method, params: Option<&RawJson>) {
        let text = shoal_protocol::notification(method.as_str(), params);
        // Sending fails only after the server has ended.
        let _ = self.queue.send(aside(text, Some(method))).await;
    }

    /// Waits while the server does not read.
    pub(crate) async fn answer(&self, text: Bytes) {
        let _ = self.queue.send(aside(text, None)).await;
    }

    fn notify_later(self: Arc<Self>, method: Method, params: &RawJson) {
        let text = shoal_protocol::notification(method.as_str(), Some(params));
        let message = aside(text, Some(method));
        if let Err(TrySendError::Full(message)) = self.queue.try_send(message)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move { self.queue.send(message).await.is_ok() });
        }
    }

    /// Drops the answer if the queue is full. Waiting could deadlock, because the caller reads the server's
    /// output and the server may wait for that reader.
    pub(crate) fn try_answer(&self, text: Bytes) {
        if self.queue.try_send(aside(text, None)).is_err() {
            tracing::debug!(target: "shoal::upstream", server = self.name(), "the server does not read its input; a message was dropped");
        }
    }
}

fn aside(text: Bytes, method: Option<Method>) -> OutgoingMessage {
    OutgoingMessage {
        text,
        method,
        request: None,
    }
}

/// Dropping the handle stops the wait and tells the server.
pub(crate) struct RequestHandle {
    id: u64,
    write_state: Arc<WriteState>,
    outcome: oneshot::Receiver<RequestOutcome>,
    link: Arc<ServerLink>,
    /// Dropping it tells the transport that the caller has stopped waiting.
    waits: Option<oneshot::Sender<()>>,
    told_when_dropped: bool,
}

impl RequestHandle {
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Waits while the server does not read. Cancellation safe.
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
            // The writer has ended, although Shoal may not know of the server's end yet.
            let lost = RequestOutcome::Lost {
                written: false,
                reason: "the server has closed its input".into(),
            };
            self.link.pending.finish(self.id, lost);
        }
    }

    /// Waits for the outcome; a second call waits forever. Cancellation safe.
    pub(crate) async fn outcome(&mut self) -> RequestOutcome {
        match (&mut self.outcome).await {
            Ok(outcome) => outcome,
            Err(_) => std::future::pending().await,
        }
    }

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

    /// If the request had reached the server, tells the server and returns `true`.
    pub(crate) fn abandon(&mut self) -> bool {
        let reached = self.link.pending.abandon(self.id);
        if reached {
            self.tell_cancelled();
        }
        reached
    }

    pub(crate) fn withdraw(&self) -> bool {
        self.write_state.withdraw()
    }

    /// The answer may come anyway.
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
