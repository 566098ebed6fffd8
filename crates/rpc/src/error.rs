//! Why a link ended.

use std::error::Error;

use tonic::{Code, Status};

/// Why a link could not be made, or ended.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum LinkError {
    /// This side ended it.
    #[error("{0}")]
    Left(&'static str),
    /// The peer ended it.
    #[error("the peer ended the link: {0}")]
    Closed(String),
    /// The peer's stream ended without a word.
    #[error("the link ended")]
    Ended,
    /// The peer refused it.
    #[error("the peer refused the link: {0}")]
    Refused(String),
    /// The peer may not do what it asked for.
    #[error("{0}")]
    Forbidden(String),
    /// The peer broke the protocol.
    #[error("the peer broke the protocol: {0}")]
    Protocol(String),
    /// The peer stopped answering.
    #[error("the peer does not answer")]
    Silent,
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Transport(String),
    /// The peer's machine says that nobody listens there.
    #[error("the connection failed: {0}")]
    NobodyListens(String),
}

impl LinkError {
    /// What a gRPC status says of the link.
    pub(crate) fn of_status(status: &Status) -> Self {
        let text = status.message();
        match status.code() {
            Code::FailedPrecondition | Code::InvalidArgument | Code::Unimplemented => {
                Self::Refused(text.to_owned())
            }
            // What the codec says of a message that is too long or cannot be decoded.
            Code::OutOfRange | Code::Internal => Self::Protocol(text.to_owned()),
            code => Self::Transport(match last_cause(status) {
                // What the system or TLS says: gRPC's own words are the same for all of it.
                Some(cause) => format!("{code:?} {text}: {cause}"),
                None => format!("{code:?} {text}"),
            }),
        }
    }

    /// A breach of the protocol.
    pub(crate) fn protocol(what: impl Into<String>) -> Self {
        Self::Protocol(what.into())
    }
}

fn last_cause(status: &Status) -> Option<String> {
    let mut last = status.source()?;
    while let Some(cause) = last.source() {
        last = cause;
    }
    Some(last.to_string())
}

/// A message that lacks what it must have, or says what nobody can understand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed {0}")]
pub(crate) struct Malformed(pub(crate) &'static str);

impl From<Malformed> for LinkError {
    fn from(malformed: Malformed) -> Self {
        Self::Protocol(malformed.to_string())
    }
}

/// A frame that is longer than its receiver accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its {bytes} bytes are more than the {limit} that a link carries at once")]
pub(crate) struct TooLong {
    /// Its length.
    pub(crate) bytes: usize,
    /// What the receiver accepts.
    pub(crate) limit: usize,
}
