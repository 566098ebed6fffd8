//! The seam between an edge and the legacy sessions.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use shoal_protocol::{
    Body, EventId, Message, Method, RawJson, RawObject, Request, RequestId, Revision, RpcError,
    TraceContext,
};

use crate::{
    DeliveryId, EdgePlan, ForwardedHeaders, Grant, Kind, NodeId, Principal, Repeat, SessionId,
    StreamItems,
};

/// The method of [`Post::until_over`], which is no method of MCP.
pub const UNTIL_OVER: &str = "shoal/untilOver";

/// The legacy sessions, wherever they live.
///
/// Every method checks that the session belongs to the principal; one that does not answers
/// [`GatewayError::NotFound`], as if it did not exist.
#[async_trait]
pub trait SessionGateway: Send + Sync + 'static {
    /// Opens a session.
    ///
    /// # Errors
    /// `TooManySessions` at the node's or the principal's cap; `Rejected` when `initialize` is malformed.
    async fn open(&self, open: OpenSession) -> Result<Opened, GatewayError>;

    /// Hands over what a client posted.
    ///
    /// If the returned future is dropped, requests that were accepted run on: for a legacy client a
    /// broken connection is no cancellation. One that was not accepted by then never begins, and its id is free; what else
    /// the body changes is changed whole, or not at all. The answer to a request that is safe to repeat, and of which
    /// the client has no stream, may be lost.
    async fn deliver(&self, to: &SessionRef, post: Post) -> Result<Delivered, GatewayError>;

    /// Opens the standalone stream (`cursor` none: a new connection takes over from the one before,
    /// which ends), or resumes any stream after `cursor`.
    ///
    /// # Errors
    /// `HistoryGone` when events after the cursor are no longer there; never a silent gap.
    async fn listen(
        &self,
        to: &SessionRef,
        cursor: Option<EventId>,
    ) -> Result<EventStream, GatewayError>;

    /// Ends the session and everything in it: calls that run are told to stop, and answered with an error that says why on
    /// the streams where somebody reads. A second call answers `NotFound`.
    ///
    /// If the returned future is dropped the session ends all the same, or nothing has happened to it.
    async fn close(&self, to: &SessionRef) -> Result<(), GatewayError>;
}

/// A body that a client posted.
#[derive(Clone, Debug)]
pub struct Post {
    /// What it says.
    pub body: Body,
    /// Which posting it is.
    pub delivery: DeliveryId,
    /// Whether it was delivered before and the answer got lost on the way. What was begun for it then is
    /// found again and not begun twice.
    pub repeated: bool,
    /// What the edge has settled of its single request. The session's owner plans what comes without: members of
    /// batches, and what must be waited for, since only there a cancellation is heard meanwhile.
    pub plan: Option<Arc<EdgePlan>>,
}

impl Post {
    /// A body that has just arrived.
    pub fn new(body: Body) -> Self {
        Self {
            body,
            delivery: DeliveryId::generate(),
            repeated: false,
            plan: None,
        }
    }

    /// Asks the session's owner to answer once nothing of these requests runs any more; `None`: of any request that the session
    /// has now. Owners of earlier releases refuse it at once. It changes nothing, so it may be asked again.
    pub fn until_over(requests: Option<&[RequestId]>) -> Self {
        let mut params = RawObject::default();
        params.set("requests", RawJson::of(&requests));
        Self::new(Body::Single(Message::Request(Request {
            id: RequestId::from_string("over"),
            method: Method::from_name(UNTIL_OVER),
            params: Some(params.to_json()),
        })))
    }

    /// Whether its edge has bound it to the one worker that may run it.
    pub fn is_bound(&self) -> bool {
        let plan = self.plan.as_deref().and_then(|plan| plan.as_ref().ok());
        plan.is_some_and(|plan| plan.repeat == Repeat::Never)
    }

    /// Whether it asks for what must not be done twice, as far as is known: then only its worker can say of a repetition that
    /// nothing was executed.
    pub fn takes_effect(&self) -> bool {
        match (&self.plan, &self.body) {
            (Some(_), _) => self.is_bound(),
            (None, Body::Single(message)) => runs(message),
            (None, Body::Batch(members)) => members.iter().flatten().any(runs),
        }
    }
}

/// Whether a message has a tool run, or a method of an extension, which may do anything.
fn runs(message: &Message) -> bool {
    let takes_effect =
        |method: &Method| *method == Method::ToolsCall || method.may_be_of_extension();
    matches!(message, Message::Request(request) if takes_effect(&request.method))
}

/// A session in the hands of a principal.
#[derive(Clone, Debug)]
pub struct SessionRef {
    /// The session.
    pub session: SessionId,
    /// Who says so.
    pub principal: Principal,
    /// The span of whoever asks.
    pub trace: Option<TraceContext>,
    /// Whether nothing but the [hint](SessionId::hint) in its id says that the session is there. Who does not hold it then
    /// answers [`GatewayError::Moved`], without asking the store and without claiming it.
    pub hinted: bool,
    /// What the request says in headers that pools ask for.
    pub headers: ForwardedHeaders,
    /// What was granted to the principal, where a plan may depend on it.
    pub grant: Option<Arc<Grant>>,
}

impl SessionRef {
    /// A session in the hands of a principal whose requests are not traced.
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

    /// The same for the node that the session's id hints at.
    pub fn by_hint(&self) -> Self {
        Self {
            hinted: true,
            ..self.clone()
        }
    }
}

/// How a new session's answers travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum SessionTransport {
    /// Streamable HTTP: each answer on the request's own connection.
    Streamable,
    /// Everything on the standalone stream: HTTP+SSE of 2024-11-05, and stdio.
    SingleStream,
    /// A task (the tasks extension, and 2025-11-25): a session of one call, whose state is asked for. Its call is always
    /// journaled, and what it says is in no stream.
    Task,
}

/// The opening of a session.
#[derive(Clone, Debug)]
pub struct OpenSession {
    /// Whose it is.
    pub principal: Principal,
    /// How answers travel.
    pub transport: SessionTransport,
    /// The `initialize` request. `SingleStream` sessions may be opened without, and get it delivered.
    pub initialize: Option<Request>,
    /// The span of whoever opens it.
    pub trace: Option<TraceContext>,
}

/// An opened session.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Its id, for `Mcp-Session-Id`.
    pub session: SessionId,
    /// The negotiated revision, when `initialize` came along.
    pub revision: Option<Revision>,
    /// The response to `initialize`, when it came along.
    pub response: Option<Bytes>,
}

/// What became of a posted body.
#[derive(Debug)]
pub enum Delivered {
    /// Nothing to answer (`202`).
    Accepted,
    /// One JSON text: a response, or the responses of a batch.
    Json(Bytes),
    /// A stream that ends with the response.
    Stream(EventStream),
}

/// Events for one connection. Bounded: whoever does not read is cut off and resumes from the log.
/// The end of the items is the connection's end; dropping them detaches the reader.
#[derive(Debug)]
pub struct EventStream {
    /// What to write.
    pub items: StreamItems,
    /// Where the reading begins: whoever loses the stream before its first item listens again from here.
    pub cursor: EventId,
}

/// Something to write to an SSE connection.
#[derive(Clone, Debug)]
pub enum StreamItem {
    /// A message.
    Event {
        /// Where a client that has it resumes.
        id: EventId,
        /// The JSON-RPC message.
        data: Bytes,
    },
    /// A message in passing: it is in no log and has no id, so where the client resumes stays what it was.
    /// Only what may be lost with its connection and is said again when the client listens again.
    Passing {
        /// The JSON-RPC message.
        data: Bytes,
    },
    /// An event without data that only gives the client an id to come back with (SEP-1699).
    Prime {
        /// The id.
        id: EventId,
    },
    /// Tell the client when to come back; the connection closes next.
    Retry(Duration),
    /// The session has another owner now, or will; the channel ends next, and what follows is found by
    /// listening again after the last id. Never for a client's eyes.
    Moved,
}

/// Why the gateway refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GatewayError {
    /// No such session for this principal.
    #[error("session not found: it has ended or never existed; initialize a new one")]
    NotFound,
    /// The message does not fit the session or its revision (a batch, a malformed `initialize`).
    #[error("{0}")]
    Rejected(RpcError),
    /// The session belongs to another node; ask there.
    #[error("the session is on another node")]
    Moved {
        /// Which, if that is known.
        owner: Option<NodeId>,
    },
    /// The way to the session's node broke. Whether it got the message is not known: deliver it again,
    /// as [repeated](Post::repeated).
    #[error(
        "the way to the session's node broke ({reason}); whether it got the message is not known"
    )]
    Unreachable {
        /// What broke.
        reason: String,
    },
    /// The session's node cannot be reached, and has not got the message.
    #[error("the session's node cannot be reached ({reason}); try again later")]
    Unsent {
        /// Why.
        reason: String,
    },
    /// The worker that the call is bound to cannot be reached from the session's node, which has not sent it there. Only who
    /// bound it knows whether anything of it has left by another way, and may bind it anew.
    #[error("the call's worker cannot be reached ({reason}); try again later")]
    WorkerAway {
        /// Why.
        reason: String,
    },
    /// The events after the cursor are gone.
    #[error(
        "the history after the given Last-Event-ID is gone ({0}); the stream cannot be resumed"
    )]
    HistoryGone(Cow<'static, str>),
    /// The cap on sessions of this principal.
    #[error("too many sessions: {limit} are open for this principal; close one or try again later")]
    TooManySessionsOfPrincipal {
        /// The cap.
        limit: usize,
        /// When to come back.
        retry_after: Duration,
    },
    /// The cap on what sessions of this principal have stored.
    #[error(
        "too much is stored: the sessions of this principal have {limit} bytes of records, events and calls; \
         end some, or try again later"
    )]
    TooManyBytesOfPrincipal {
        /// The cap.
        limit: usize,
        /// When to come back.
        retry_after: Duration,
    },
    /// The cap on sessions of this node.
    #[error("this node holds its limit of {limit} sessions; try again later")]
    TooManySessions {
        /// The cap.
        limit: usize,
        /// When to come back.
        retry_after: Duration,
    },
    /// Too much is waiting or running.
    #[error("{reason}; try again later")]
    Overloaded {
        /// Which limit.
        reason: String,
        /// When to come back.
        retry_after: Duration,
    },
    /// A part that is needed cannot be reached.
    #[error("{reason}; try again later")]
    Unavailable {
        /// Which.
        reason: String,
        /// When to come back.
        retry_after: Duration,
    },
    /// A fault of ours.
    #[error("internal error: {0}")]
    Internal(String),
}

impl GatewayError {
    /// The error's kind.
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

    /// When to come back, where that helps.
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
