//! What follows from a refusal: the one table of which errors are tried again, and how.

use shoal_ports::GatewayError;

/// What was asked of a session's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Open,
    Deliver,
    Listen,
    Close,
}

impl Operation {
    /// Its name in traces.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Deliver => "deliver",
            Self::Listen => "listen",
            Self::Close => "close",
        }
    }
}

/// How it was asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AttemptContext {
    /// Something hangs on it: an earlier attempt may have been carried out, or a client's stream goes on
    /// with it. A refusal that would be a good answer to a first attempt is none then.
    pub(crate) committed: bool,
    /// By way of another node, which may have spoken for itself and not for the owner.
    pub(crate) relayed: bool,
    /// Because of nothing but the hint in the session's id: a node of an earlier release speaks for the store then, and no
    /// refusal says more than that the store must be asked.
    pub(crate) hinted: bool,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryDecision {
    /// It is the answer.
    Final,
    /// What was asked for is so already.
    Done,
    /// Nothing was done: look for the owner again, at once if that promises something.
    Elsewhere,
    /// The route broke, and it may have been done unless it was never sent: ask again, saying so, whoever is the owner then.
    Repeat,
    /// Nothing was done, and asking at once would not help: pause, then look for the owner again.
    Later,
}

/// What follows from `error`. [`Operation::Open`] has no owner to wait for: there, whatever is not final
/// means another node.
pub(crate) fn decide(
    operation: Operation,
    asked: AttemptContext,
    error: &GatewayError,
) -> RetryDecision {
    match error {
        GatewayError::NotFound
        | GatewayError::Overloaded { .. }
        | GatewayError::Unavailable { .. }
            if asked.hinted =>
        {
            RetryDecision::Elsewhere
        }
        // A close that may have been carried out has been.
        GatewayError::NotFound if operation == Operation::Close && asked.committed => RetryDecision::Done,
        GatewayError::NotFound
        | GatewayError::Rejected(_)
        | GatewayError::HistoryGone(_)
        | GatewayError::TooManySessionsOfPrincipal { .. }
        | GatewayError::TooManyBytesOfPrincipal { .. }
        // Who bound the call decides what follows.
        | GatewayError::WorkerAway { .. }
        | GatewayError::Internal(_) => RetryDecision::Final,
        GatewayError::Moved { .. } => RetryDecision::Elsewhere,
        GatewayError::Unreachable { .. } | GatewayError::Unsent { .. } => RetryDecision::Repeat,
        // A node that must claim a session may have no room for it, where another has.
        GatewayError::TooManySessions { .. } => RetryDecision::Elsewhere,
        GatewayError::Overloaded { .. } | GatewayError::Unavailable { .. }
            if operation == Operation::Open =>
        {
            RetryDecision::Elsewhere
        }
        GatewayError::Unavailable { .. } if asked.relayed => RetryDecision::Elsewhere,
        GatewayError::Overloaded { .. } | GatewayError::Unavailable { .. } if asked.committed => {
            RetryDecision::Later
        }
        GatewayError::Overloaded { .. } | GatewayError::Unavailable { .. } => RetryDecision::Final,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use shoal_ports::GatewayError;
    use shoal_protocol::RpcError;

    use super::Operation::{Close, Deliver, Listen, Open};
    use super::RetryDecision::{Done, Elsewhere, Final, Later, Repeat};
    use super::{AttemptContext, RetryDecision, decide};

    const SOON: Duration = Duration::from_secs(1);

    const FIRST: AttemptContext = AttemptContext {
        committed: false,
        relayed: false,
        hinted: false,
    };
    const COMMITTED: AttemptContext = AttemptContext {
        committed: true,
        ..FIRST
    };
    const RELAYED: AttemptContext = AttemptContext {
        relayed: true,
        ..FIRST
    };
    const HINTED: AttemptContext = AttemptContext {
        hinted: true,
        ..FIRST
    };

    /// Each error, with the verdicts on: an open; another operation at first, when committed, relayed, and
    /// where a hint led to.
    fn table() -> Vec<(GatewayError, [RetryDecision; 5])> {
        let reason = String::new;
        vec![
            (
                GatewayError::Rejected(RpcError::invalid_request("no")),
                [Final; 5],
            ),
            (GatewayError::HistoryGone("gone".into()), [Final; 5]),
            (GatewayError::Internal(reason()), [Final; 5]),
            (
                GatewayError::TooManySessionsOfPrincipal {
                    limit: 1,
                    retry_after: SOON,
                },
                [Final; 5],
            ),
            (
                GatewayError::TooManySessions {
                    limit: 1,
                    retry_after: SOON,
                },
                [Elsewhere; 5],
            ),
            (GatewayError::Moved { owner: None }, [Elsewhere; 5]),
            (GatewayError::Unreachable { reason: reason() }, [Repeat; 5]),
            (GatewayError::Unsent { reason: reason() }, [Repeat; 5]),
            (GatewayError::WorkerAway { reason: reason() }, [Final; 5]),
            (
                GatewayError::Overloaded {
                    reason: reason(),
                    retry_after: SOON,
                },
                [Elsewhere, Final, Later, Final, Elsewhere],
            ),
            (
                GatewayError::Unavailable {
                    reason: reason(),
                    retry_after: SOON,
                },
                [Elsewhere, Final, Later, Elsewhere, Elsewhere],
            ),
        ]
    }

    #[test]
    fn every_error_has_its_row() {
        for (error, [open, first, committed, relayed, hinted]) in table() {
            assert_eq!(decide(Open, FIRST, &error), open, "{error}");
            for operation in [Deliver, Listen, Close] {
                let case = format!("{operation:?}: {error}");
                assert_eq!(decide(operation, FIRST, &error), first, "{case}");
                assert_eq!(decide(operation, COMMITTED, &error), committed, "{case}");
                assert_eq!(decide(operation, RELAYED, &error), relayed, "{case}");
                assert_eq!(decide(operation, HINTED, &error), hinted, "{case}");
            }
        }
    }

    #[test]
    fn a_session_that_is_gone_has_been_closed_if_that_was_asked_before() {
        let not_found = &GatewayError::NotFound;
        assert_eq!(decide(Close, COMMITTED, not_found), Done);
        assert_eq!(decide(Close, FIRST, not_found), Final);
        for operation in [Open, Deliver, Listen] {
            assert_eq!(decide(operation, COMMITTED, not_found), Final);
            assert_eq!(decide(operation, HINTED, not_found), Elsewhere);
        }
    }
}
