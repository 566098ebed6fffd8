use std::borrow::Cow;

use shoal_ports::{
    GatewayError, NodeId, OpenSession, Opened, Principal, SessionId, SessionTransport, StreamItem,
};
use shoal_protocol::{EventId, StreamId};

use super::call::revision_in;
use super::outcome::{error_in, error_out};
use super::post::{request_in, request_out};
use super::trace::{trace_in, trace_out};
use super::{count, duration, millis};
use crate::error::Malformed;
use crate::link::credit;
use crate::proto::node::v1 as wire;
use crate::proto::node::v1::gateway_error::{self as fail, Error};
use crate::proto::node::v1::item::{self, Kind};

pub(crate) fn open_out(open: OpenSession, relayed: bool) -> wire::Open {
    let transport = match open.transport {
        SessionTransport::Streamable => wire::Transport::Streamable,
        SessionTransport::SingleStream => wire::Transport::SingleStream,
        // Not sent: a task's session is opened together with its call.
        SessionTransport::Task => wire::Transport::Unspecified,
    };
    wire::Open {
        flight: 0,
        principal: open.principal.as_str().to_owned(),
        transport: transport.into(),
        trace: trace_out(open.trace.as_ref()),
        initialize: open.initialize.map(request_out),
        relayed,
    }
}

pub(crate) fn open_in(open: wire::Open) -> Result<OpenSession, Malformed> {
    let transport = match wire::Transport::try_from(open.transport) {
        Ok(wire::Transport::SingleStream) => SessionTransport::SingleStream,
        _ => SessionTransport::Streamable,
    };
    Ok(OpenSession {
        principal: Principal::new(open.principal),
        transport,
        initialize: open.initialize.map(request_in).transpose()?,
        trace: trace_in(open.trace),
    })
}

pub(crate) fn opened_out(flight: u64, opened: Opened) -> wire::Opened {
    wire::Opened {
        flight,
        session: opened.session.as_str().to_owned(),
        revision: opened.revision.map(|revision| revision.to_string()),
        response: opened.response,
    }
}

pub(crate) fn opened_in(opened: wire::Opened) -> Result<Opened, Malformed> {
    let revision = opened.revision.as_deref().map(revision_in);
    Ok(Opened {
        session: SessionId::new(opened.session),
        revision: revision.transpose()?,
        response: opened.response,
    })
}

pub(crate) fn event_id_out(id: EventId) -> wire::EventId {
    wire::EventId {
        epoch: id.epoch,
        stream: id.stream.0,
        sequence: id.sequence,
    }
}

pub(crate) fn event_id_in(id: wire::EventId) -> EventId {
    EventId {
        epoch: id.epoch,
        stream: StreamId(id.stream),
        sequence: id.sequence,
    }
}

/// `cursor` is the reader's position, which the item may advance.
pub(crate) fn item_out(flight: u64, item: StreamItem, cursor: &mut EventId) -> wire::Item {
    if let StreamItem::Event { id, .. } | StreamItem::Prime { id, .. } = &item {
        *cursor = *id;
    }
    let kind = match item {
        StreamItem::Event { id, data } => Kind::Event(item::Event {
            id: Some(event_id_out(id)),
            data,
            in_passing: false,
        }),
        // An older edge does not know `in_passing`, and takes this item for an event. Its client
        // already has the id.
        StreamItem::Passing { data } => Kind::Event(item::Event {
            id: Some(event_id_out(*cursor)),
            data,
            in_passing: true,
        }),
        StreamItem::Prime { id } => Kind::Prime(item::Prime {
            id: Some(event_id_out(id)),
        }),
        StreamItem::Retry(retry) => Kind::RetryMs(millis(retry)),
        StreamItem::Moved => Kind::Moved(item::Moved {}),
    };
    wire::Item {
        flight,
        kind: Some(kind),
    }
}

/// `None` if the item's kind is unknown.
pub(crate) fn item_in(item: wire::Item) -> Result<Option<StreamItem>, Malformed> {
    let id = |id: Option<_>| id.map(event_id_in).ok_or(Malformed("item: it has no id"));
    Ok(Some(match item.kind {
        Some(Kind::Event(said)) if said.in_passing => StreamItem::Passing { data: said.data },
        Some(Kind::Event(said)) => StreamItem::Event {
            id: id(said.id)?,
            data: said.data,
        },
        Some(Kind::Prime(said)) => StreamItem::Prime { id: id(said.id)? },
        Some(Kind::RetryMs(retry)) => StreamItem::Retry(duration(retry)),
        Some(Kind::Moved(item::Moved {})) => StreamItem::Moved,
        None => return Ok(None),
    }))
}

pub(crate) fn item_cost(item: &wire::Item) -> u64 {
    credit::cost(match &item.kind {
        Some(Kind::Event(said)) => said.data.len(),
        _ => 0,
    })
}

pub(crate) fn error_to_wire(error: GatewayError) -> wire::GatewayError {
    let many = |limit: usize, retry_after| fail::TooMany {
        limit: limit as u64,
        retry_after_ms: millis(retry_after),
    };
    let later = |reason, retry_after| fail::Later {
        reason,
        retry_after_ms: millis(retry_after),
    };
    let error = match error {
        GatewayError::NotFound => Error::NotFound(fail::NotFound {}),
        GatewayError::Rejected(error) => Error::Rejected(error_out(error)),
        GatewayError::Moved { owner } => Error::Moved(fail::Moved {
            owner: owner.map(|node| node.to_string()),
        }),
        GatewayError::Unreachable { reason } => Error::Unreachable(fail::Unreachable {
            reason,
            unsent: false,
        }),
        GatewayError::Unsent { reason } => Error::Unreachable(fail::Unreachable {
            reason,
            unsent: true,
        }),
        GatewayError::WorkerAway { reason } => Error::WorkerAway(reason),
        GatewayError::HistoryGone(why) => Error::HistoryGone(why.into_owned()),
        GatewayError::TooManySessionsOfPrincipal { limit, retry_after } => {
            Error::TooManySessionsOfPrincipal(many(limit, retry_after))
        }
        GatewayError::TooManyBytesOfPrincipal { limit, retry_after } => {
            Error::TooManyBytesOfPrincipal(many(limit, retry_after))
        }
        GatewayError::TooManySessions { limit, retry_after } => {
            Error::TooManySessions(many(limit, retry_after))
        }
        GatewayError::Overloaded {
            reason,
            retry_after,
        } => Error::Overloaded(later(reason, retry_after)),
        GatewayError::Unavailable {
            reason,
            retry_after,
        } => Error::Unavailable(later(reason, retry_after)),
        GatewayError::Internal(what) => Error::Internal(what),
    };
    wire::GatewayError { error: Some(error) }
}

pub(crate) fn error_from_wire(error: Option<wire::GatewayError>) -> GatewayError {
    match error.and_then(|error| error.error) {
        Some(Error::NotFound(fail::NotFound {})) => GatewayError::NotFound,
        Some(Error::Rejected(error)) => GatewayError::Rejected(error_in(error)),
        Some(Error::Moved(moved)) => GatewayError::Moved {
            owner: moved.owner.map(NodeId::new),
        },
        Some(Error::Unreachable(said)) if said.unsent => GatewayError::Unsent {
            reason: said.reason,
        },
        Some(Error::Unreachable(said)) => GatewayError::Unreachable {
            reason: said.reason,
        },
        Some(Error::WorkerAway(reason)) => GatewayError::WorkerAway { reason },
        Some(Error::HistoryGone(why)) => GatewayError::HistoryGone(Cow::Owned(why)),
        Some(Error::TooManySessionsOfPrincipal(many)) => GatewayError::TooManySessionsOfPrincipal {
            limit: count(many.limit),
            retry_after: duration(many.retry_after_ms),
        },
        Some(Error::TooManyBytesOfPrincipal(many)) => GatewayError::TooManyBytesOfPrincipal {
            limit: count(many.limit),
            retry_after: duration(many.retry_after_ms),
        },
        Some(Error::TooManySessions(many)) => GatewayError::TooManySessions {
            limit: count(many.limit),
            retry_after: duration(many.retry_after_ms),
        },
        Some(Error::Overloaded(later)) => GatewayError::Overloaded {
            reason: later.reason,
            retry_after: duration(later.retry_after_ms),
        },
        Some(Error::Unavailable(later)) => GatewayError::Unavailable {
            reason: later.reason,
            retry_after: duration(later.retry_after_ms),
        },
        Some(Error::Internal(what)) => GatewayError::Internal(what),
        None => GatewayError::Internal(
            "the session's node refused in a way that this release does not know".to_owned(),
        ),
    }
}
