//! Every refusal of an edge, with its HTTP status and JSON-RPC error: the one table of both.
//!
//! `docs/errors.md` shows it to users, and `tests/edge/refusals.rs` holds the two together.

mod reason;

use std::time::Duration;

use http::{HeaderName, StatusCode};
use shoal_ports::{AuthError, CallFailure, CallOutcome, GatewayError, Kind};
use shoal_protocol::{InvalidEventId, InvalidMessage, RequestId, Revision, RpcError, code};

use crate::backlog::Full;
use crate::recorder::RequestRecord;

/// When to come back where nothing better is known.
const SOON: Duration = Duration::from_secs(1);

/// Why a request was refused. The text says what was wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the header host is missing")]
    HostMissing,
    #[error("the header host and the authority of the request's target must name the same host")]
    HostUnlikeAuthority,
    #[error("the header {0} is there twice; send it once")]
    HeaderTwice(HeaderName),
    #[error("header mismatch: {0} is there twice; send it once")]
    MirroredTwice(HeaderName),
    #[error("the host {0:?} is not served here; an operator may add it to the allowed hosts")]
    ForeignHost(String),
    #[error("the origin {0:?} may not call; an operator may add it to the allowed origins")]
    ForeignOrigin(String),
    #[error("the request has more than {count} header fields or {bytes} bytes of them; send fewer")]
    HeadersTooLarge { count: usize, bytes: usize },
    #[error("method not allowed here; allowed: {allow}")]
    MethodNotAllowed { allow: &'static str },
    #[error("{0}; send Authorization: Bearer with a valid one")]
    Unauthenticated(#[from] AuthError),
    #[error("this node has {limit} requests under way and takes no more; try again later")]
    TooManyRequests { limit: usize },
    #[error(
        "too many requests: this principal has {limit} under way; wait for answers, or try again later"
    )]
    TooManyRequestsOfPrincipal { limit: usize },
    #[error("this node has {limit} streams open and takes no more; try again later")]
    TooManyStreams { limit: usize },
    #[error(
        "this node holds its limit of {limit} bytes of large bodies and takes no more of them; try \
         again later, or send at most {small} bytes, for which there is always room"
    )]
    NoRoom { limit: usize, small: usize },
    #[error(
        "this principal holds its limit of {limit} bytes of large bodies; wait for answers, or send at \
         most {small} bytes, for which there is always room"
    )]
    NoRoomOfPrincipal { limit: usize, small: usize },
    #[error("the answer was not kept: {}; read answers faster, or try again later", .0.describe())]
    AnswerNotKept(Full),
    #[error("too many streams: {limit} are open for this principal; close one or try again later")]
    TooManyStreamsOfPrincipal { limit: usize },
    #[error("the client must accept the answer; send Accept: {0}")]
    NotAcceptable(&'static str),
    #[error("the body's type is {0:?}; send Content-Type: application/json")]
    UnsupportedMediaType(String),
    #[error("the body must not be encoded; leave Content-Encoding out")]
    EncodedBody,
    #[error("the body is larger than {limit} bytes; send less")]
    BodyTooLarge { limit: usize },
    #[error("the body did not arrive within {} s", within.as_secs_f32())]
    BodyTooSlow { within: Duration },
    #[error("the connection broke while the body was read")]
    BodyBroken,
    #[error("{0}")]
    Message(#[from] InvalidMessage),
    #[error(
        "the header Mcp-Session-Id is missing; initialize a session, or send {latest} with its \
         per-request _meta", latest = Revision::LATEST
    )]
    SessionMissing,
    #[error("the query parameter sessionId is missing; post to the URL of the endpoint event")]
    SessionParameterMissing,
    #[error("the header Mcp-Session-Id must be 1 to 128 visible ASCII characters")]
    InvalidSessionId,
    #[error("{0}; leave Last-Event-ID out to listen from now on")]
    InvalidEventId(#[from] InvalidEventId),
    #[error(
        "protocol version {0:?} is not supported; MCP-Protocol-Version may be one of: {all}",
        all = Revision::ALL.map(Revision::as_str).join(", ")
    )]
    UnsupportedVersionHeader(String),
    /// A modern request that never reached the dispatcher.
    #[error("{0}")]
    Modern(RpcError),
    #[error("{0}")]
    Gateway(#[from] GatewayError),
}

impl Refusal {
    /// The HTTP status.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::ForeignHost(_) | Self::ForeignOrigin(_) => StatusCode::FORBIDDEN,
            Self::HeadersTooLarge { .. } => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::MethodNotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unauthenticated(_) => StatusCode::UNAUTHORIZED,
            Self::TooManyRequests { .. }
            | Self::TooManyStreams { .. }
            | Self::NoRoom { .. }
            | Self::AnswerNotKept(Full::Node(_)) => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooManyRequestsOfPrincipal { .. }
            | Self::TooManyStreamsOfPrincipal { .. }
            | Self::NoRoomOfPrincipal { .. }
            | Self::AnswerNotKept(Full::Principal(_)) => StatusCode::TOO_MANY_REQUESTS,
            Self::NotAcceptable(_) => StatusCode::NOT_ACCEPTABLE,
            Self::UnsupportedMediaType(_) | Self::EncodedBody => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTooSlow { .. } => StatusCode::REQUEST_TIMEOUT,
            Self::HostMissing
            | Self::HostUnlikeAuthority
            | Self::HeaderTwice(_)
            | Self::MirroredTwice(_)
            | Self::BodyBroken
            | Self::Message(_)
            | Self::SessionMissing
            | Self::SessionParameterMissing
            | Self::InvalidSessionId
            | Self::InvalidEventId(_)
            | Self::UnsupportedVersionHeader(_) => StatusCode::BAD_REQUEST,
            Self::Modern(error) if error.code == code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
            Self::Modern(_) => StatusCode::BAD_REQUEST,
            Self::Gateway(error) => status_of(error),
        }
    }

    /// The JSON-RPC error.
    pub(crate) fn error(&self) -> RpcError {
        let code = match self {
            Self::Message(invalid) => return invalid.error.clone(),
            Self::Modern(error) | Self::Gateway(GatewayError::Rejected(error)) => {
                return error.clone();
            }
            Self::TooManyRequests { .. }
            | Self::TooManyRequestsOfPrincipal { .. }
            | Self::TooManyStreams { .. }
            | Self::NoRoom { .. }
            | Self::NoRoomOfPrincipal { .. }
            | Self::AnswerNotKept(_)
            | Self::TooManyStreamsOfPrincipal { .. } => code::OVERLOADED,
            Self::Gateway(error) => code_of(error),
            Self::MirroredTwice(_) => code::HEADER_MISMATCH,
            Self::HostMissing
            | Self::HostUnlikeAuthority
            | Self::HeaderTwice(_)
            | Self::ForeignHost(_)
            | Self::ForeignOrigin(_)
            | Self::HeadersTooLarge { .. }
            | Self::MethodNotAllowed { .. }
            | Self::Unauthenticated(_)
            | Self::NotAcceptable(_)
            | Self::UnsupportedMediaType(_)
            | Self::EncodedBody
            | Self::BodyTooLarge { .. }
            | Self::BodyTooSlow { .. }
            | Self::BodyBroken
            | Self::SessionMissing
            | Self::SessionParameterMissing
            | Self::InvalidSessionId
            | Self::InvalidEventId(_)
            | Self::UnsupportedVersionHeader(_) => code::INVALID_REQUEST,
        };
        RpcError::new(code, self.to_string())
    }

    /// When to come back, where that helps.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooManyRequests { .. }
            | Self::TooManyRequestsOfPrincipal { .. }
            | Self::TooManyStreams { .. }
            | Self::NoRoom { .. }
            | Self::NoRoomOfPrincipal { .. }
            | Self::AnswerNotKept(_)
            | Self::TooManyStreamsOfPrincipal { .. } => Some(SOON),
            Self::Gateway(error) => error.retry_after(),
            _ => None,
        }
    }
}

/// A stream whose history is gone is `400`, not `404`: the session is alive, and clients answer a `404`
/// by initializing again (or give the whole connection up, as the Go client does). The official servers
/// answer `400` to an event id that they cannot resume from, too; on it, the official clients try the
/// same id a few times and then give up this stream only.
fn status_of(error: &GatewayError) -> StatusCode {
    match error {
        GatewayError::NotFound => StatusCode::NOT_FOUND,
        GatewayError::Rejected(_) | GatewayError::HistoryGone(_) => StatusCode::BAD_REQUEST,
        GatewayError::TooManySessionsOfPrincipal { .. }
        | GatewayError::TooManyBytesOfPrincipal { .. } => StatusCode::TOO_MANY_REQUESTS,
        GatewayError::TooManySessions { .. }
        | GatewayError::Overloaded { .. }
        | GatewayError::Moved { .. }
        | GatewayError::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
        // Not 503: nobody knows whether it is safe to send the same again.
        GatewayError::Unreachable { .. } => StatusCode::BAD_GATEWAY,
        GatewayError::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn code_of(error: &GatewayError) -> i64 {
    if let GatewayError::Unreachable { .. } = error {
        return code::OUTCOME_UNKNOWN;
    }
    match error.kind() {
        Kind::NotFound | Kind::Gone => code::GONE,
        Kind::Invalid | Kind::Unauthenticated | Kind::Forbidden | Kind::Conflict => {
            code::INVALID_REQUEST
        }
        Kind::Overloaded => code::OVERLOADED,
        Kind::Unavailable => code::NOT_EXECUTED,
        Kind::Deadline => code::DEADLINE_EXCEEDED,
        Kind::Cancelled | Kind::Internal => code::INTERNAL_ERROR,
    }
}

/// The status of a modern call that has ended (2026-07-28, Streamable HTTP and Overview). Whatever the specification
/// leaves open is an answer like any other: `200`. So are a backend's errors: their codes are its own, and a status would
/// tell the client of this server what the backend says of itself. Only a missing capability is the client's in any case.
pub(crate) fn status_of_outcome(outcome: &CallOutcome) -> StatusCode {
    match outcome {
        CallOutcome::Error(error) | CallOutcome::Refused(error)
            if error.code == code::MISSING_CLIENT_CAPABILITY =>
        {
            StatusCode::BAD_REQUEST
        }
        CallOutcome::Refused(error) if error.code == code::METHOD_NOT_FOUND => {
            StatusCode::NOT_FOUND
        }
        CallOutcome::Failed(CallFailure::Overloaded { .. } | CallFailure::NotReady { .. }) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        _ => StatusCode::OK,
    }
}

/// A refusal on its way out, with the id of the request that it answers.
pub(crate) struct Refused {
    pub(crate) why: Box<Refusal>,
    pub(crate) id: Option<RequestId>,
    /// What is recorded of that request, once it has been read.
    pub(crate) record: Option<RequestRecord>,
}

impl Refused {
    /// Names the request that is refused.
    pub(crate) fn of(id: Option<RequestId>, why: impl Into<Refusal>) -> Self {
        Self {
            why: Box::new(why.into()),
            id,
            record: None,
        }
    }
}

impl<R: Into<Refusal>> From<R> for Refused {
    fn from(why: R) -> Self {
        Self::of(None, why)
    }
}
