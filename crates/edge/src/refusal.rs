//! Every refusal of an edge.
//!
//! `docs/errors.md` explains the codes to users, and `tests/edge/refusals/rows.md` lists all of them for the tests.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, StatusCode};
use shoal_ports::{AuthError, CallFailure, CallOutcome, GatewayError};
use shoal_protocol::{InvalidEventId, InvalidMessage, RawJson, Revision, RpcError, code};
use shoal_telemetry::metrics::RefusalReason;

/// The `Retry-After` of refusals that do not have their own.
const SOON: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BacklogFull {
    Node(usize),
    Principal(usize),
}

impl BacklogFull {
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Node(limit) => {
                format!(
                    "this node holds its limit of {limit} bytes of answers that wait to be read"
                )
            }
            Self::Principal(limit) => format!(
                "this principal has its limit of {limit} bytes of answers waiting to be read"
            ),
        }
    }

    pub(crate) fn after_effect(self) -> RpcError {
        let why = format!(
            "the call has ended, but its answer was not kept: {}; check before you repeat it",
            self.describe()
        );
        RpcError::new(code::OUTCOME_UNKNOWN, why)
    }
}

/// Each text says what was wrong and what to do.
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
    #[error("{0}")]
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
    AnswerNotKept(BacklogFull),
    #[error("too many streams: {limit} are open for this principal; close one or try again later")]
    TooManyStreamsOfPrincipal { limit: usize },
    #[error("the quota {quota:?} is used up; try again in {} s", seconds(*wait))]
    QuotaUsedUp { quota: Arc<str>, wait: Duration },
    #[error(
        "the quota {quota:?} lets {limit} be under way at once; wait for answers, or try again later"
    )]
    QuotaPlaces { quota: Arc<str>, limit: usize },
    #[error(
        "the batch has {count} requests that the quota {quota:?} counts, more than it ever lets through at \
         once; send smaller ones"
    )]
    BatchOverQuota { quota: Arc<str>, count: u32 },
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
    #[error("WebSocket is not served here; an operator may set server.websocket = true")]
    WebSocketOff,
    #[error("WebSocket: {0}")]
    WebSocketHandshake(String),
    #[error("WebSocket: send Sec-WebSocket-Version: 13")]
    WebSocketVersion,
    #[error("the session is not open yet; send initialize first")]
    NotInitialized,
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
    #[error(
        "this node is shutting down and takes no more calls; nothing was executed: send it again, on a new connection"
    )]
    ShuttingDown,
    #[error("{0}")]
    NotReady(CallFailure),
    #[error("{0}")]
    Modern(RpcError),
    #[error("{0}")]
    Gateway(#[from] GatewayError),
}

struct RefusalRow {
    status: StatusCode,
    code: i64,
    reason: RefusalReason,
    retry_after: Option<Duration>,
}

const fn row(status: StatusCode, code: i64, reason: RefusalReason) -> RefusalRow {
    RefusalRow {
        status,
        code,
        reason,
        retry_after: None,
    }
}

const OF_NODE: RefusalRow = RefusalRow {
    retry_after: Some(SOON),
    ..row(
        StatusCode::SERVICE_UNAVAILABLE,
        code::OVERLOADED,
        RefusalReason::Overloaded,
    )
};

/// A limit of the principal, or of a quota. Other callers may continue. Only such refusals use 429.
const OF_PRINCIPAL: RefusalRow = RefusalRow {
    retry_after: Some(SOON),
    ..row(
        StatusCode::TOO_MANY_REQUESTS,
        code::OVERLOADED,
        RefusalReason::Quota,
    )
};

const HEADERS: RefusalRow = row(
    StatusCode::BAD_REQUEST,
    code::INVALID_REQUEST,
    RefusalReason::Headers,
);

impl Refusal {
    fn row(&self) -> RefusalRow {
        use RefusalReason as Reason;
        use StatusCode as Status;
        const INVALID: i64 = code::INVALID_REQUEST;
        match self {
            Self::HostMissing
            | Self::HostUnlikeAuthority
            | Self::HeaderTwice(_)
            | Self::SessionMissing
            | Self::SessionParameterMissing
            | Self::WebSocketHandshake(_)
            | Self::NotInitialized
            | Self::InvalidSessionId
            | Self::InvalidEventId(_) => HEADERS,
            Self::MirroredTwice(_) => RefusalRow {
                code: code::HEADER_MISMATCH,
                ..HEADERS
            },
            Self::ForeignHost(_) | Self::ForeignOrigin(_) => {
                row(Status::FORBIDDEN, INVALID, Reason::Origin)
            }
            Self::HeadersTooLarge { .. } => RefusalRow {
                status: Status::REQUEST_HEADER_FIELDS_TOO_LARGE,
                ..HEADERS
            },
            Self::MethodNotAllowed { .. } => {
                row(Status::METHOD_NOT_ALLOWED, INVALID, Reason::NotServed)
            }
            Self::WebSocketOff => row(Status::BAD_REQUEST, INVALID, Reason::NotServed),
            Self::WebSocketVersion => RefusalRow {
                status: Status::UPGRADE_REQUIRED,
                ..HEADERS
            },
            Self::Unauthenticated(why) => of_auth(why),
            Self::TooManyRequests { .. }
            | Self::TooManyStreams { .. }
            | Self::NoRoom { .. }
            | Self::AnswerNotKept(BacklogFull::Node(_)) => OF_NODE,
            Self::TooManyRequestsOfPrincipal { .. }
            | Self::TooManyStreamsOfPrincipal { .. }
            | Self::NoRoomOfPrincipal { .. }
            | Self::AnswerNotKept(BacklogFull::Principal(_)) => OF_PRINCIPAL,
            Self::QuotaUsedUp { wait, .. } => RefusalRow {
                retry_after: Some(*wait),
                ..OF_PRINCIPAL
            },
            Self::QuotaPlaces { .. } => OF_PRINCIPAL,
            Self::BatchOverQuota { .. } => row(Status::BAD_REQUEST, INVALID, Reason::Quota),
            Self::NotAcceptable(_) => RefusalRow {
                status: Status::NOT_ACCEPTABLE,
                ..HEADERS
            },
            Self::UnsupportedMediaType(_) | Self::EncodedBody => RefusalRow {
                status: Status::UNSUPPORTED_MEDIA_TYPE,
                ..HEADERS
            },
            Self::BodyTooLarge { .. } => {
                row(Status::PAYLOAD_TOO_LARGE, INVALID, Reason::BodyTooLarge)
            }
            Self::BodyTooSlow { .. } => row(Status::REQUEST_TIMEOUT, INVALID, Reason::BodyBroken),
            Self::BodyBroken => row(Status::BAD_REQUEST, INVALID, Reason::BodyBroken),
            Self::Message(invalid) => {
                row(Status::BAD_REQUEST, invalid.error.code, Reason::Malformed)
            }
            Self::UnsupportedVersionHeader(_) => {
                row(Status::BAD_REQUEST, INVALID, Reason::Revision)
            }
            Self::ShuttingDown => RefusalRow {
                retry_after: Some(SOON),
                ..row(
                    Status::SERVICE_UNAVAILABLE,
                    code::NOT_EXECUTED,
                    Reason::Unavailable,
                )
            },
            Self::NotReady(why) => RefusalRow {
                retry_after: why.retry_after(),
                ..row(
                    Status::SERVICE_UNAVAILABLE,
                    code::NOT_EXECUTED,
                    Reason::Unavailable,
                )
            },
            Self::Modern(error) => of_modern(error),
            Self::Gateway(error) => of_gateway(error),
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.row().status
    }

    pub(crate) fn reason(&self) -> RefusalReason {
        self.row().reason
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.row().retry_after
    }

    pub(crate) fn error(&self) -> RpcError {
        match self {
            Self::Message(invalid) => invalid.error.clone(),
            Self::Modern(error) | Self::Gateway(GatewayError::Rejected(error)) => error.clone(),
            Self::QuotaUsedUp { quota, .. } | Self::QuotaPlaces { quota, .. } => {
                let wait = self.retry_after().unwrap_or_default().as_millis();
                let wait = u64::try_from(wait).unwrap_or(u64::MAX);
                let data = serde_json::json!({ "quota": **quota, "retryAfterMs": wait });
                RpcError::new(self.row().code, self.to_string()).with_data(RawJson::of(&data))
            }
            _ => RpcError::new(self.row().code, self.to_string()),
        }
    }
}

/// Returns whole seconds, rounded up, at least 1.
pub(crate) fn seconds(wait: Duration) -> u128 {
    wait.as_millis().div_ceil(1000).max(1)
}

fn of_auth(why: &AuthError) -> RefusalRow {
    use RefusalReason as Reason;
    use StatusCode as Status;
    match why {
        AuthError::Scope(_) => row(Status::FORBIDDEN, code::INVALID_REQUEST, Reason::Forbidden),
        AuthError::TooManyProofs { retry_after } => RefusalRow {
            retry_after: Some(*retry_after),
            ..OF_PRINCIPAL
        },
        AuthError::Unavailable { retry_after, .. } => RefusalRow {
            retry_after: Some(*retry_after),
            ..row(
                Status::SERVICE_UNAVAILABLE,
                code::NOT_EXECUTED,
                Reason::Unavailable,
            )
        },
        AuthError::Missing | AuthError::Invalid | AuthError::Token(_) | AuthError::Proof(_) => row(
            Status::UNAUTHORIZED,
            code::INVALID_REQUEST,
            Reason::Unauthenticated,
        ),
    }
}

fn of_modern(error: &RpcError) -> RefusalRow {
    let status = match error.code {
        code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::BAD_REQUEST,
    };
    let reason = match error.code {
        code::UNSUPPORTED_VERSION => RefusalReason::Revision,
        code::HEADER_MISMATCH => RefusalReason::Headers,
        _ => RefusalReason::Malformed,
    };
    row(status, error.code, reason)
}

/// A stream without its history is `400`, like the official servers' answer, because the session is
/// alive. After a `404`, clients would initialize again; after a `400`, the official clients give
/// up only this stream.
fn of_gateway(error: &GatewayError) -> RefusalRow {
    use RefusalReason as Reason;
    use StatusCode as Status;
    let row = match error {
        GatewayError::NotFound => row(Status::NOT_FOUND, code::GONE, Reason::SessionGone),
        GatewayError::HistoryGone(_) => row(Status::BAD_REQUEST, code::GONE, Reason::SessionGone),
        GatewayError::Rejected(error) => row(Status::BAD_REQUEST, error.code, Reason::Malformed),
        GatewayError::TooManySessionsOfPrincipal { .. }
        | GatewayError::TooManyBytesOfPrincipal { .. } => OF_PRINCIPAL,
        GatewayError::TooManySessions { .. } | GatewayError::Overloaded { .. } => OF_NODE,
        GatewayError::Moved { .. }
        | GatewayError::Unsent { .. }
        | GatewayError::WorkerAway { .. }
        | GatewayError::Unavailable { .. } => row(
            Status::SERVICE_UNAVAILABLE,
            code::NOT_EXECUTED,
            Reason::Unavailable,
        ),
        // Not 503, because a retry may be unsafe.
        GatewayError::Unreachable { .. } => row(
            Status::BAD_GATEWAY,
            code::OUTCOME_UNKNOWN,
            Reason::Unavailable,
        ),
        GatewayError::Internal(_) => row(
            Status::INTERNAL_SERVER_ERROR,
            code::INTERNAL_ERROR,
            Reason::Other,
        ),
    };
    RefusalRow {
        retry_after: error.retry_after(),
        ..row
    }
}

/// Returns the status (2026-07-28, Streamable HTTP and Overview). A backend's errors are `200`, because their codes do
/// not describe this server. Only a missing capability is always the client's error.
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
