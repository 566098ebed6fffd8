use shoal_ports::GatewayError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Open,
    Deliver,
    Listen,
    Close,
    /// Makes a call a task, which need not exist before.
    Adopt,
    /// Asks the owner about a task. May always be repeated.
    Ask,
    /// Waits at the owner for a change of a task, or for the end of calls. May always be repeated.
    Watch,
}

impl Operation {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Deliver => "deliver",
            Self::Listen => "listen",
            Self::Close => "close",
            Self::Adopt => "adopt",
            Self::Ask => "ask",
            Self::Watch => "watch",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AttemptContext {
    /// Whether an earlier attempt may have been carried out, or a client's stream depends on this one. If either holds,
    /// a node's temporary refusal is not final.
    pub(crate) committed: bool,
    /// After a relayed request, an error may be the relay's own.
    pub(crate) relayed: bool,
    /// Whether only the hint in the session ID led to the node. A node of an earlier release then refuses by what it
    /// reads from the store, so its refusal is not final: the search asks the store itself.
    pub(crate) hinted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryDecision {
    Final,
    /// Return success: an earlier attempt was carried out.
    Done,
    /// The request was not carried out: search again, at once if there is a better route.
    Elsewhere,
    /// The link broke: send the request to the current owner, marked as repeated unless it was
    /// never sent.
    Repeat,
    /// The request was not carried out: pause, then search again.
    Later,
}

/// An [`Operation::Open`] may simply use another node.
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
        // An earlier attempt has closed the session.
        GatewayError::NotFound if operation == Operation::Close && asked.committed => RetryDecision::Done,
        GatewayError::NotFound
        | GatewayError::Rejected(_)
        | GatewayError::HistoryGone(_)
        | GatewayError::TooManySessionsOfPrincipal { .. }
        | GatewayError::TooManyBytesOfPrincipal { .. }
        // The edge that bound the call decides what follows.
        | GatewayError::WorkerAway { .. }
        | GatewayError::Internal(_) => RetryDecision::Final,
        GatewayError::Moved { .. } => RetryDecision::Elsewhere,
        GatewayError::Unreachable { .. } | GatewayError::Unsent { .. } => RetryDecision::Repeat,
        // Another node may have room.
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

    use super::Operation::{Adopt, Ask, Close, Deliver, Listen, Open, Watch};
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

    /// The decisions for an open, and for another operation at its first attempt, when committed, when relayed, and
    /// after a hint.
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
            for operation in [Deliver, Listen, Close, Adopt, Ask, Watch] {
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
        for operation in [Open, Deliver, Listen, Adopt, Ask, Watch] {
            assert_eq!(decide(operation, COMMITTED, not_found), Final);
            assert_eq!(decide(operation, HINTED, not_found), Elsewhere);
        }
    }
}
