//! Fake sessions, whose ids tell how they answer. They do not report the end of calls.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use shoal_ports::{
    AdoptCall, Delivered, DeliveryId, EventStream, GatewayError, LazySender, OpenSession, Opened,
    Post, SessionGateway, SessionId, SessionRef, SessionTasks, SessionTransport, StreamItem,
    TaskMark, TaskRequest, WorkerId, lazy_channel,
};
use shoal_protocol::task::{Task, TaskState};
use shoal_protocol::{
    Body, EventId, Message, Method, RawJson, Request, RequestId, Revision, RpcError, StreamId,
    response,
};
use tokio::sync::{mpsc, watch};

pub(crate) const LIVE: &str = "live";

pub(crate) const TASK: &str = "live-task";

/// A session whose node cannot reach the workers that its edge chooses.
pub(crate) const CUT_OFF: &str = "cut-off";

pub(crate) struct FakeGateway {
    pub(crate) delivered: Mutex<Vec<(String, Body)>>,
    pub(crate) bindings: Mutex<Vec<(DeliveryId, Option<WorkerId>)>>,
    pub(crate) cursors: Mutex<Vec<Option<EventId>>>,
    pub(crate) closed: watch::Sender<Vec<String>>,
    /// Each change of the task answers the requests that watch the task.
    pub(crate) task: watch::Sender<Task>,
    pub(crate) adopted: Mutex<Vec<(String, AdoptCall)>>,
    /// Failures to make a task, each returned once.
    pub(crate) adopting: Mutex<Vec<GatewayError>>,
    pub(crate) asked: Mutex<Vec<(String, TaskRequest)>>,
    pub(crate) offers_tasks: Mutex<Option<RawJson>>,
    pub(crate) opening: Mutex<Option<GatewayError>>,
    pub(crate) opens: AtomicUsize,
    single: AtomicBool,
    streams: mpsc::UnboundedSender<LazySender<StreamItem>>,
    opened: tokio::sync::Mutex<mpsc::UnboundedReceiver<LazySender<StreamItem>>>,
}

impl FakeGateway {
    pub(crate) fn new() -> Arc<Self> {
        let (streams, opened) = mpsc::unbounded_channel();
        Arc::new(Self {
            delivered: Mutex::default(),
            bindings: Mutex::default(),
            cursors: Mutex::default(),
            closed: watch::Sender::new(Vec::new()),
            task: watch::Sender::new(task(TaskState::Working)),
            adopted: Mutex::default(),
            adopting: Mutex::default(),
            asked: Mutex::default(),
            offers_tasks: Mutex::new(Some(RawJson::from_static(r#"{"elicitation":{}}"#))),
            opening: Mutex::default(),
            opens: AtomicUsize::default(),
            single: AtomicBool::default(),
            streams,
            opened: tokio::sync::Mutex::new(opened),
        })
    }

    pub(crate) async fn stream(&self) -> LazySender<StreamItem> {
        self.opened.lock().await.recv().await.unwrap()
    }

    pub(crate) async fn was_closed(&self, session: &str) {
        let mut closed = self.closed.subscribe();
        let has = |closed: &Vec<String>| closed.iter().any(|other| other == session);
        closed.wait_for(has).await.unwrap();
    }

    pub(crate) async fn has_requests(&self, count: usize) {
        let is_request = |body: &Body| matches!(body, Body::Single(Message::Request(_)));
        let posted = || {
            let delivered = self.delivered.lock();
            delivered
                .iter()
                .filter(|(_, body)| is_request(body))
                .count()
        };
        while posted() < count {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub(crate) fn is_now(&self, state: TaskState) {
        self.task.send_replace(task(state));
    }

    /// Waits until this many requests have asked for news of the task.
    pub(crate) async fn is_watched(&self, watches: usize) {
        // The first look has the mark 0.
        let is_watch = |asked: &&(String, TaskRequest)| matches!(asked, (_, TaskRequest::Watch { seen }) if seen.0 != 0);
        while self.asked.lock().iter().filter(is_watch).count() < watches {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn new_stream(&self) -> EventStream {
        let (sender, items) = lazy_channel(2);
        self.streams.send(sender).unwrap();
        EventStream {
            items: items.into(),
            cursor: id(0),
        }
    }
}

pub(crate) fn task(state: TaskState) -> Task {
    Task {
        id: TASK.to_owned(),
        state,
        created_at: 0,
        updated_at: 0,
        ttl_ms: 60_000,
        poll_interval_ms: 500,
    }
}

pub(crate) fn id(sequence: u64) -> EventId {
    EventId {
        epoch: 1,
        stream: StreamId(2),
        sequence,
    }
}

pub(crate) fn event(sequence: u64, data: &'static str) -> StreamItem {
    StreamItem::Event {
        id: id(sequence),
        data: Bytes::from_static(data.as_bytes()),
    }
}

fn is_call(message: &Message) -> bool {
    matches!(message, Message::Request(request) if request.method == Method::ToolsCall)
}

fn is_to_be_task(request: &Request) -> bool {
    let params = request.params.as_ref();
    params.is_some_and(|params| params.member("task").is_some())
}

fn refuse(session: &SessionRef) -> Result<(), GatewayError> {
    let retry_after = Duration::from_millis(1500);
    match session.session.as_str() {
        LIVE | CUT_OFF | TASK => Ok(()),
        "rejecting" => Err(GatewayError::Rejected(RpcError::invalid_request(
            "the first request must be initialize",
        ))),
        "history-gone" => Err(GatewayError::HistoryGone("the stream has expired".into())),
        "overloaded" => Err(GatewayError::Overloaded {
            reason: "too much is waiting".into(),
            retry_after,
        }),
        "unavailable" | "away-task" => Err(GatewayError::Unavailable {
            reason: "the store is down".into(),
            retry_after,
        }),
        "unreachable" => Err(GatewayError::Unreachable {
            reason: "its node was lost".into(),
        }),
        "broken" => Err(GatewayError::Internal("a lock was poisoned".into())),
        _ => Err(GatewayError::NotFound),
    }
}

#[async_trait]
impl SessionGateway for FakeGateway {
    async fn open(&self, open: OpenSession) -> Result<Opened, GatewayError> {
        self.opens.fetch_add(1, Ordering::Relaxed);
        if let Some(error) = self.opening.lock().clone() {
            return Err(error);
        }
        let single = open.transport == SessionTransport::SingleStream;
        assert!(single || open.initialize.is_some());
        self.single.store(single, Ordering::Relaxed);
        let result = RawJson::from_static(r#"{"protocolVersion":"2025-11-25"}"#);
        Ok(Opened {
            session: SessionId::new(LIVE),
            revision: open.initialize.as_ref().map(|_| Revision::V2025_11_25),
            response: open
                .initialize
                .map(|request| response(&request.id, &result)),
        })
    }

    async fn deliver(&self, to: &SessionRef, post: Post) -> Result<Delivered, GatewayError> {
        let bound = post.is_bound();
        let body = post.body;
        let worker = post.binding.map(|binding| binding.worker);
        self.bindings.lock().push((post.delivery, worker));
        if to.session.as_str() == CUT_OFF && bound {
            let reason = "cut off".to_owned();
            return Err(GatewayError::WorkerAway { reason });
        }
        refuse(to)?;
        let delivered = match &body {
            Body::Single(Message::Request(request))
                if self.single.load(Ordering::Relaxed) && request.method != Method::Ping =>
            {
                Delivered::Accepted
            }
            Body::Batch(members) if members.iter().flatten().all(is_call) => {
                Delivered::Stream(self.new_stream())
            }
            Body::Batch(_) => Delivered::Json(Bytes::from_static(b"[]")),
            Body::Single(Message::Request(request)) if is_to_be_task(request) => {
                Delivered::Task(task(TaskState::Working))
            }
            Body::Single(Message::Request(request)) if request.method == Method::ToolsCall => {
                Delivered::Stream(self.new_stream())
            }
            Body::Single(Message::Request(request)) => {
                Delivered::Json(response(&request.id, &RawJson::from_static("{}")))
            }
            Body::Single(_) => Delivered::Accepted,
        };
        let session = to.session.to_string();
        self.delivered.lock().push((session, body));
        Ok(delivered)
    }

    async fn listen(
        &self,
        to: &SessionRef,
        cursor: Option<EventId>,
    ) -> Result<EventStream, GatewayError> {
        refuse(to)?;
        self.cursors.lock().push(cursor);
        let standalone = EventId {
            stream: StreamId::STANDALONE,
            ..id(0)
        };
        Ok(EventStream {
            cursor: cursor.unwrap_or(standalone),
            ..self.new_stream()
        })
    }

    async fn close(&self, to: &SessionRef) -> Result<(), GatewayError> {
        refuse(to)?;
        let session = to.session.to_string();
        self.closed.send_modify(|closed| closed.push(session));
        Ok(())
    }

    fn new_task(&self) -> Result<SessionId, GatewayError> {
        Ok(SessionId::new(TASK))
    }

    async fn adopt(&self, to: &SessionRef, call: AdoptCall) -> Result<Task, GatewayError> {
        refuse(to)?;
        self.adopted.lock().push((to.session.to_string(), call));
        match self.adopting.lock().pop() {
            Some(error) => Err(error),
            None => Ok(self.task.borrow().clone()),
        }
    }

    async fn ask_task(&self, to: &SessionRef, request: TaskRequest) -> Result<Task, GatewayError> {
        refuse(to)?;
        let asked = (to.session.to_string(), request.clone());
        self.asked.lock().push(asked);
        let seen = match request {
            TaskRequest::Watch { seen } => Some(seen),
            _ => None,
        };
        let mut task = self.task.subscribe();
        let told = task.wait_for(|task| seen != Some(TaskMark::of(task)));
        Ok(told.await.unwrap().clone())
    }

    async fn until_over(
        &self,
        to: &SessionRef,
        _: Option<&[RequestId]>,
    ) -> Result<(), GatewayError> {
        refuse(to)?;
        pending().await
    }

    async fn tasks_of(&self, session: &SessionRef) -> Result<Option<SessionTasks>, GatewayError> {
        refuse(session)?;
        let capabilities = self.offers_tasks.lock().clone();
        Ok(capabilities.map(|capabilities| SessionTasks {
            tasks: [TASK, "gone-task"].map(SessionId::new).into(),
            capabilities,
        }))
    }
}
