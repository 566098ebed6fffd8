//! Why a stdio server could not be brought up.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use shoal_protocol::RpcError;

/// Why a server could not be made ready. What it wrote to stderr is in the log, not here: it may
/// hold secrets.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// The operating system refused.
    #[error("could not start {command:?}: {source}")]
    Spawn {
        /// The program.
        command: String,
        /// What the system said.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// There is no way to it.
    #[error("{0}")]
    NoWay(String),
    /// It ended during the handshake.
    #[error("{reason}, before it was ready")]
    Ended {
        /// How it ended.
        reason: Arc<str>,
    },
    /// It did not finish the handshake.
    #[error("it did not answer the handshake in time")]
    TimedOut,
    /// It speaks only revisions that Shoal does not.
    #[error("it speaks protocol version {versions}, which Shoal does not; Shoal speaks {known}")]
    Unsupported {
        /// What it offered.
        versions: String,
        /// What Shoal speaks.
        known: String,
    },
    /// It answered `initialize` without a version.
    #[error("it answered initialize without a protocolVersion")]
    Versionless,
    /// It was to be spoken to in the modern era, and does not know it.
    #[error("it does not speak 2026-07-28 or later")]
    NotModern,
    /// It answered the handshake with an error.
    #[error("it refused the handshake: {0}")]
    Refused(RpcError),
    /// It did not take the handshake at all, whatever that says: it wants other credentials, say.
    #[error("it refused the handshake: {0}")]
    Rejected(RpcError),
    /// It answered the handshake with something else.
    #[error("it answered the handshake with something that is not a result")]
    Malformed,
    /// Shoal is shutting down.
    #[error("the backend is shutting down")]
    Closed,
}

impl StartError {
    /// Whether the same start may succeed later: a program that is being downloaded may just be slow.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Self::TimedOut | Self::Closed)
    }

    /// Whether the server may have refused what `initialize` says, and would take it in a plainer form.
    pub(super) fn may_come_of_form(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Malformed) && !self.is_denied()
    }

    /// Whether an opening of the other era may be what upset the server.
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

    /// Whether the server refused credentials, which says nothing of what it speaks.
    pub(super) fn is_denied(&self) -> bool {
        matches!(self, Self::Refused(error) | Self::Rejected(error) if Denied::is(error))
    }
}

/// The data of an error that says that credentials were not accepted, or do not suffice.
#[derive(Serialize, Deserialize)]
pub(crate) struct Denied {
    /// The HTTP status.
    pub(crate) status: u16,
}

impl Denied {
    /// Whether an error says so.
    pub(crate) fn is(error: &RpcError) -> bool {
        let data = error
            .data
            .as_ref()
            .and_then(|data| data.read::<Self>().ok());
        data.is_some_and(|denied| matches!(denied.status, 401 | 403))
    }
}

/// Why a request of Shoal's own (a list, a subscription) has no result.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// The server answered with an error.
    #[error("{0}")]
    Rpc(RpcError),
    /// The server did not answer.
    #[error("there was no answer in time")]
    TimedOut,
    /// The answer was longer than a message may be.
    #[error("the answer was too large")]
    TooLarge,
    /// The answer was no message.
    #[error("the answer is no message: {0}")]
    Unreadable(String),
    /// The server ended first.
    #[error("{0}")]
    Ended(Arc<str>),
}

impl RequestError {
    /// Whether the same request to another process may succeed.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Self::TimedOut)
    }

    /// The error for whoever caused the request.
    pub(crate) fn into_rpc(self) -> RpcError {
        match self {
            Self::Rpc(error) => error,
            other => RpcError::internal(other.to_string()),
        }
    }
}
