use std::error::Error;

use tonic::{Code, Status};

#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum LinkError {
    #[error("{0}")]
    Left(&'static str),
    #[error("the peer ended the link: {0}")]
    Closed(String),
    #[error("the link ended")]
    Ended,
    #[error("the peer refused the link: {0}")]
    Refused(String),
    #[error("{0}")]
    Forbidden(String),
    #[error("the peer broke the protocol: {0}")]
    Protocol(String),
    #[error("the peer does not answer")]
    Silent,
    #[error("the connection failed: {0}")]
    Transport(String),
    /// The peer's machine refuses connections to the address.
    #[error("the connection failed: {0}")]
    NobodyListens(String),
}

impl LinkError {
    pub(crate) fn of_status(status: &Status) -> Self {
        let text = status.message();
        match status.code() {
            Code::FailedPrecondition | Code::InvalidArgument | Code::Unimplemented => {
                Self::Refused(text.to_owned())
            }
            Code::OutOfRange | Code::Internal => Self::Protocol(text.to_owned()),
            code => Self::Transport(match last_cause(status) {
                // gRPC's text is the same for all causes.
                Some(cause) => format!("{code:?} {text}: {cause}"),
                None => format!("{code:?} {text}"),
            }),
        }
    }

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed {0}")]
pub(crate) struct Malformed(pub(crate) &'static str);

impl From<Malformed> for LinkError {
    fn from(malformed: Malformed) -> Self {
        Self::Protocol(malformed.to_string())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its {bytes} bytes exceed the link's limit of {limit} bytes a message")]
pub(crate) struct TooLong {
    pub(crate) bytes: usize,
    pub(crate) limit: usize,
}
