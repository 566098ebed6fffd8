use std::sync::Arc;

use serde::{Deserialize, Serialize};
use shoal_ports::CallFailure;
use shoal_protocol::RpcError;

/// Why a server did not become ready. Leaves out stderr, which may hold secrets.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("could not start {command:?}: {source}")]
    Spawn {
        command: String,
        #[source]
        source: Arc<std::io::Error>,
    },
    #[error("{0}")]
    NoWay(String),
    #[error("{reason}, before it was ready")]
    Ended { reason: Arc<str> },
    #[error("it did not answer the handshake in time")]
    TimedOut,
    #[error("it speaks protocol version {versions}, which Shoal does not; Shoal speaks {known}")]
    Unsupported { versions: String, known: String },
    #[error("it answered initialize without a protocolVersion")]
    Versionless,
    /// The settings require the modern era, which the server does not speak.
    #[error("it does not speak 2026-07-28 or later")]
    NotModern,
    #[error("it refused the handshake: {0}")]
    Refused(RpcError),
    /// The server rejected the request itself, for example its credentials.
    #[error("it refused the handshake: {0}")]
    Rejected(RpcError),
    #[error("it answered the handshake with something that is not a result")]
    Malformed,
    #[error("the backend is shutting down")]
    Closed,
}

impl StartError {
    /// Whether a later start may succeed. After a timeout, the program may still be downloading.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Self::TimedOut | Self::Closed)
    }

    pub(super) fn may_come_of_form(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Malformed) && !self.is_denied()
    }

    pub(crate) fn may_come_of_opening(&self) -> bool {
        matches!(
            self,
            Self::Ended { .. }
                | Self::TimedOut
                | Self::NotModern
                | Self::Malformed
                | Self::Refused(_)
                | Self::Rejected(_)
        ) && !self.is_denied()
    }

    /// A refusal of credentials does not reveal the era.
    pub(super) fn is_denied(&self) -> bool {
        matches!(self, Self::Refused(error) | Self::Rejected(error) if Denied::is(error))
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Denied {
    pub(crate) status: u16,
}

impl Denied {
    pub(crate) fn is(error: &RpcError) -> bool {
        let data = error
            .data
            .as_ref()
            .and_then(|data| data.read::<Self>().ok());
        data.is_some_and(|denied| matches!(denied.status, 401 | 403))
    }
}

#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("{0}")]
    Rpc(RpcError),
    #[error("there was no answer in time")]
    TimedOut,
    #[error("the answer was too large")]
    TooLarge,
    #[error("the answer is no message: {0}")]
    Unreadable(String),
    #[error("{0}")]
    Ended(Arc<str>),
}

impl RequestError {
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Self::TimedOut)
    }

    pub(crate) fn into_rpc(self) -> RpcError {
        match self {
            Self::Rpc(error) => error,
            other => RpcError::internal(other.to_string()),
        }
    }
}

#[derive(Debug)]
pub(crate) struct NeverWritten(Arc<str>);

impl NeverWritten {
    pub(super) fn new(reason: Arc<str>) -> Self {
        Self(reason)
    }
}

impl From<NeverWritten> for CallFailure {
    fn from(NeverWritten(reason): NeverWritten) -> Self {
        Self::not_executed(&*reason)
    }
}
