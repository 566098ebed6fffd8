use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use shoal_protocol::task::Task;
use shoal_protocol::{
    Body, EventId, Message, Request, RequestId, Revision, RpcError, TraceContext,
};

use crate::{
    AdoptCall, Binding, DeliveryId, ForwardedHeaders, Grant, Kind, NodeId, Principal, Repeat,
    SessionId, SessionTasks, StreamItems, TaskRequest,
};

/// The seam between an edge and the legacy sessions: opens sessions and delivers messages to them.
///
/// A session of another principal answers [`GatewayError::NotFound`], like a missing session.
#[async_trait]
pub trait SessionGateway: Send + Sync + 'static {
    /// Opens a session.
    ///
    /// # Errors
    /// `TooManySessions` at the node's limit; `TooManySessionsOfPrincipal` or `TooManyBytesOfPrincipal` at the
    /// principal's; `Rejected` if `initialize` is malformed.
    async fn open(&self, open: OpenSession) -> Result<Opened, GatewayError>;

    /// Delivers a body that a client posted to its session.
    ///
    /// # Cancel safety
    /// If the future is dropped, accepted requests run on, because a legacy client does not cancel by disconnecting.
    /// Other requests do not begin, and other changes happen completely or not at all. The answer to a repeatable
    /// request without a stream may be lost.
    async fn deliver(&self, to: &SessionRef, post: Post) -> Result<Delivered, GatewayError>;

    /// Opens the session's standalone stream if `cursor` is `None`, and replaces its reader. Otherwise resumes a stream
    /// after its event `cursor`.
    ///
    /// # Errors
    /// `HistoryGone` if the log lacks events after the cursor.
    async fn listen(
        &self,
        to: &SessionRef,
        cursor: Option<EventId>,
    ) -> Result<EventStream, GatewayError>;

    /// Ends the session and its calls. The calls' readers get an error with the reason. A repeated `close` returns
    /// `NotFound`.
    ///
    /// # Cancel safety
    /// If the future is dropped, the session either ends or stays unchanged.
    async fn close(&self, to: &SessionRef) -> Result<(), GatewayError>;

    /// Waits until the calls of these requests, or all current calls, have stopped.
    ///
    /// # Errors
    /// `NotFound` if the session has ended. After other errors, ask again.
    async fn until_over(
        &self,
        to: &SessionRef,
        requests: Option<&[RequestId]>,
    ) -> Result<(), GatewayError>;

    /// Draws the id of a new task and thereby chooses the node that should own it.
    ///
    /// # Errors
    /// `Unavailable` if no node takes tasks.
    fn new_task(&self) -> Result<SessionId, GatewayError>;

    /// Makes a running call the task `to`: opens the task's session, journals the call, and takes the call over at
    /// its worker. A repeated request with the same id finds the task.
    ///
    /// # Cancel safety
    /// If the future is dropped, the task is made completely or not at all.
    ///
    /// # Errors
    /// After `Unreachable`, the task may exist: repeat the request as [repeated](AdoptCall::repeated). After any
    /// other error, the call is not a task.
    async fn adopt(&self, to: &SessionRef, call: AdoptCall) -> Result<Task, GatewayError>;

    /// Sends a request to a task's owner and returns the task's state.
    ///
    /// # Cancel safety
    /// If the future is dropped, the owner may have carried the request out.
    async fn ask_task(&self, to: &SessionRef, request: TaskRequest) -> Result<Task, GatewayError>;

    /// Returns the tasks that a session has made. `None` if the session's client cannot have tasks.
    async fn tasks_of(&self, session: &SessionRef) -> Result<Option<SessionTasks>, GatewayError>;
}

/// A body that a client posted.
#[derive(Clone, Debug)]
pub struct Post {
    /// The posted messages.
    pub body: Body,
    /// The id of this delivery.
    pub delivery: DeliveryId,
    /// Whether an earlier delivery of the body may have begun its calls.
    pub repeated: bool,
    /// The only worker that may run the body's single request, whose call id is then the delivery's id. The edge
    /// draws the worker if the request must run once.
    pub binding: Option<Binding>,
    /// Whether the edge knows that the body is safe to repeat. Other nodes do not learn this.
    pub repeat: Repeat,
}

impl Post {
    /// Makes the first delivery of a body.
    pub fn new(body: Body) -> Self {
        Self {
            body,
            delivery: DeliveryId::generate(),
            repeated: false,
            binding: None,
            repeat: Repeat::Never,
        }
    }

    /// Whether the edge has bound the request to a worker.
    pub fn is_bound(&self) -> bool {
        self.binding.is_some()
    }

    /// Whether the body may contain a run-once call. Then only the call's worker can say that the call was not
    /// executed.
    pub fn takes_effect(&self) -> bool {
        self.repeat == Repeat::Never
            && match &self.body {
                Body::Single(message) => runs(message),
                Body::Batch(members) => members.iter().flatten().any(runs),
            }
    }
}

fn runs(message: &Message) -> bool {
    matches!(message, Message::Request(request) if request.method.may_have_effects())
}

/// A session, and the principal that accesses it.
#[derive(Clone, Debug)]
pub struct SessionRef {
    /// The session's id.
    pub session: SessionId,
    /// The principal that accesses the session.
    pub principal: Principal,
    /// The span of the caller.
    pub trace: Option<TraceContext>,
    /// Whether only the [hint](SessionId::hint) points here. A node without the session then answers
    /// [`GatewayError::Moved`] without using the store.
    pub hinted: bool,
    /// The request headers that pools ask for.
    pub headers: ForwardedHeaders,
    /// The principal's grant, if plans depend on grants.
    pub grant: Option<Arc<Grant>>,
}

impl SessionRef {
    /// Makes a reference without trace, headers or grant.
    pub fn new(session: SessionId, principal: Principal) -> Self {
        Self {
            session,
            principal,
            trace: None,
            hinted: false,
            headers: ForwardedHeaders::default(),
            grant: None,
        }
    }

    /// Returns the same reference, marked as [`hinted`](Self::hinted).
    pub fn by_hint(&self) -> Self {
        Self {
            hinted: true,
            ..self.clone()
        }
    }
}

/// How a session delivers its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum SessionTransport {
    /// Streamable HTTP: each answer uses the connection of its request.
    Streamable,
    /// HTTP+SSE of 2024-11-05, WebSocket and stdio: one stream for all messages.
    SingleStream,
    /// A task (the tasks extension, and 2025-11-25): a session with one call, always journaled. The client polls the
    /// task's state.
    Task,
}

/// A session to open.
#[derive(Clone, Debug)]
pub struct OpenSession {
    /// The principal that will own the session.
    pub principal: Principal,
    /// How the session delivers answers.
    pub transport: SessionTransport,
    /// The `initialize` request. Clients of `SingleStream` sessions may send it later.
    pub initialize: Option<Request>,
    /// The span of the request that opens the session.
    pub trace: Option<TraceContext>,
}

/// An opened session.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The session's id, for `Mcp-Session-Id`.
    pub session: SessionId,
    /// The negotiated revision, if `initialize` was sent.
    pub revision: Option<Revision>,
    /// The response to `initialize`, if it was sent.
    pub response: Option<Bytes>,
}

/// The result of posting a body.
#[derive(Debug)]
pub enum Delivered {
    /// The session accepted a body that needs no answer (`202`).
    Accepted,
    /// A response, or the responses of a batch.
    Json(Bytes),
    /// A stream that ends with the response.
    Stream(EventStream),
    /// The request runs as this task (2025-11-25).
    Task(Task),
}

/// Events for one connection, which closes after the last item. If the client reads too slowly, Shoal closes the
/// connection, and the client resumes from the log. Dropping the stream detaches the reader.
#[derive(Debug)]
pub struct EventStream {
    /// The items to write to the connection.
    pub items: StreamItems,
    /// The position before the first item, from which a reader can resume.
    pub cursor: EventId,
}

/// Why the gateway refused a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GatewayError {
    /// This principal has no such session.
    #[error("session not found: it has ended or never existed; initialize a new one")]
    NotFound,
    /// The message does not fit the session or its revision.
    #[error("{0}")]
    Rejected(RpcError),
    /// The session belongs to another node.
    #[error("the session is on another node")]
    Moved {
        /// The node that owns the session, if known.
        owner: Option<NodeId>,
    },
    /// The connection to the session's node broke, and the node may have the message. Deliver it again, as
    /// [repeated](Post::repeated).
    #[error(
        "the way to the session's node broke ({reason}); whether it got the message is not known"
    )]
    Unreachable {
        /// The reason.
        reason: String,
    },
    /// The session's node did not receive the message.
    #[error("the session's node cannot be reached ({reason}); try again later")]
    Unsent {
        /// The reason.
        reason: String,
    },
    /// The session's node could not reach the call's worker. The edge that bound the call may bind it again.
    #[error("the call's worker cannot be reached ({reason}); try again later")]
    WorkerAway {
        /// The reason.
        reason: String,
    },
    /// The log no longer has the events after the cursor.
    #[error(
        "the history after the given Last-Event-ID is gone ({0}); the stream cannot be resumed"
    )]
    HistoryGone(Cow<'static, str>),
    /// The principal has reached its limit of sessions.
    #[error("too many sessions: {limit} are open for this principal; close one or try again later")]
    TooManySessionsOfPrincipal {
        /// The limit.
        limit: usize,
        /// When to retry.
        retry_after: Duration,
    },
    /// The principal has reached its limit of stored bytes.
    #[error(
        "too much is stored: the sessions of this principal have {limit} bytes of records, events and calls; \
         end some, or try again later"
    )]
    TooManyBytesOfPrincipal {
        /// The limit, in bytes.
        limit: usize,
        /// When to retry.
        retry_after: Duration,
    },
    /// The node has reached its limit of sessions.
    #[error("this node holds its limit of {limit} sessions; try again later")]
    TooManySessions {
        /// The limit.
        limit: usize,
        /// When to retry.
        retry_after: Duration,
    },
    /// Too many requests are waiting or running.
    #[error("{reason}; try again later")]
    Overloaded {
        /// The limit.
        reason: String,
        /// When to retry.
        retry_after: Duration,
    },
    /// A component that the request needs cannot be reached.
    #[error("{reason}; try again later")]
    Unavailable {
        /// The component that cannot be reached.
        reason: String,
        /// When to retry.
        retry_after: Duration,
    },
    /// A fault in Shoal.
    #[error("internal error: {0}")]
    Internal(String),
}

impl GatewayError {
    /// Returns the error's kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::NotFound => Kind::NotFound,
            Self::Rejected(_) => Kind::Invalid,
            Self::HistoryGone(_) => Kind::Gone,
            Self::TooManySessionsOfPrincipal { .. }
            | Self::TooManyBytesOfPrincipal { .. }
            | Self::TooManySessions { .. }
            | Self::Overloaded { .. } => Kind::Overloaded,
            Self::Unavailable { .. }
            | Self::Moved { .. }
            | Self::Unreachable { .. }
            | Self::Unsent { .. }
            | Self::WorkerAway { .. } => Kind::Unavailable,
            Self::Internal(_) => Kind::Internal,
        }
    }

    /// Returns when to retry, if retrying helps.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooManySessionsOfPrincipal { retry_after, .. }
            | Self::TooManyBytesOfPrincipal { retry_after, .. }
            | Self::TooManySessions { retry_after, .. }
            | Self::Overloaded { retry_after, .. }
            | Self::Unavailable { retry_after, .. } => Some(*retry_after),
            Self::Moved { .. } | Self::Unsent { .. } | Self::WorkerAway { .. } => {
                Some(Duration::from_secs(1))
            }
            _ => None,
        }
    }
}
