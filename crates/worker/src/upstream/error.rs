//! The reasons why a server could not be started or did not answer.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use shoal_protocol::RpcError;

/// Why a server did not become ready. Its stderr output goes only to the log because it may hold
/// secrets.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// The operating system could not start the command.
    #[error("could not start {command:?}: {source}")]
    Spawn {
        command: String,
        #[source]
        source: Arc<std::io::Error>,
    },
    /// The transport cannot reach the server.
    #[error("{0}")]
    NoWay(String),
    /// The server ended during the handshake.
    #[error("{reason}, before it was ready")]
    Ended { reason: Arc<str> },
    /// The server did not finish the handshake in time.
    #[error("it did not answer the handshake in time")]
    TimedOut,
    /// Shoal and the server share no protocol version.
    #[error("it speaks protocol version {versions}, which Shoal does not; Shoal speaks {known}")]
    Unsupported { versions: String, known: String },
    /// The `initialize` result lacks a version.
    #[error("it answered initialize without a protocolVersion")]
    Versionless,
    /// The settings require the modern era, which the server does not speak.
    #[error("it does not speak 2026-07-28 or later")]
    NotModern,
    /// The server answered the handshake with an error.
    #[error("it refused the handshake: {0}")]
    Refused(RpcError),
    /// The server rejected the request itself, for example because of its credentials.
    #[error("it refused the handshake: {0}")]
    Rejected(RpcError),
    /// The handshake's answer is no result.
    #[error("it answered the handshake with something that is not a result")]
    Malformed,
    #[error("the backend is shutting down")]
    Closed,
}

impl StartError {
    /// Whether a later start may succeed: a slow one may still be downloading its program.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Self::TimedOut | Self::Closed)
    }

    /// Whether a plainer `initialize` may help.
    pub(super) fn may_come_of_form(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Malformed) && !self.is_denied()
    }

    /// Whether the handshake of the other era may help.
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

    /// Whether the server refused the credentials, which reveals nothing about its era.
    pub(super) fn is_denied(&self) -> bool {
        matches!(self, Self::Refused(error) | Self::Rejected(error) if Denied::is(error))
    }
}

/// The data of an error for refused or insufficient credentials.
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

/// Why a request of Shoal's own, for example for a list, has no result.
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
    /// Whether another process may answer the same request.
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
