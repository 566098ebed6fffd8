//! Sessions, calls, and requests that ended badly.

use shoal_ports::{
    CallReport, CallState, ErrorReport, Listing, SessionDetail, SessionReport, StreamReport,
};

use crate::convert::count;
use crate::error::Malformed;
use crate::proto::node::v1 as wire;

pub(crate) fn sessions_out(listing: Listing<SessionReport>) -> wire::SessionReports {
    wire::SessionReports {
        sessions: listing.items.into_iter().map(session_out).collect(),
        total: listing.total as u64,
    }
}

pub(crate) fn sessions_in(listing: wire::SessionReports) -> Listing<SessionReport> {
    Listing {
        items: listing.sessions.into_iter().map(session_in).collect(),
        total: count(listing.total),
    }
}

fn session_out(session: SessionReport) -> wire::SessionReport {
    wire::SessionReport {
        id: session.id,
        principal: session.principal,
        client: session.client,
        revision: session.revision,
        single_stream: session.single_stream,
        live: session.live,
        in_flight: session.in_flight as u64,
        streams: session.streams as u64,
        idle_ms: session.idle_ms,
        epoch: session.epoch,
    }
}

fn session_in(session: wire::SessionReport) -> SessionReport {
    SessionReport {
        id: session.id,
        principal: session.principal,
        client: session.client,
        revision: session.revision,
        single_stream: session.single_stream,
        live: session.live,
        in_flight: count(session.in_flight),
        streams: count(session.streams),
        idle_ms: session.idle_ms,
        epoch: session.epoch,
    }
}

pub(crate) fn detail_out(detail: SessionDetail) -> wire::SessionDetail {
    let stream = |stream: StreamReport| wire::StreamReport {
        last: stream.last,
        standalone: stream.standalone,
        read: stream.read,
    };
    wire::SessionDetail {
        session: Some(session_out(detail.session)),
        log_level: detail.log_level,
        subscriptions: detail.subscriptions,
        subscriptions_total: detail.subscriptions_total as u64,
        streams: detail.streams.into_iter().map(stream).collect(),
        calls: detail.calls.into_iter().map(call_out).collect(),
    }
}

pub(crate) fn detail_in(detail: wire::SessionDetail) -> Result<SessionDetail, Malformed> {
    let stream = |stream: wire::StreamReport| StreamReport {
        last: stream.last,
        standalone: stream.standalone,
        read: stream.read,
    };
    let session = detail
        .session
        .ok_or(Malformed("detail: it has no session"))?;
    Ok(SessionDetail {
        session: session_in(session),
        log_level: detail.log_level,
        subscriptions: detail.subscriptions,
        subscriptions_total: count(detail.subscriptions_total),
        streams: detail.streams.into_iter().map(stream).collect(),
        calls: detail.calls.into_iter().map(call_in).collect(),
    })
}

pub(crate) fn calls_out(listing: Listing<CallReport>) -> wire::CallReports {
    wire::CallReports {
        calls: listing.items.into_iter().map(call_out).collect(),
        total: listing.total as u64,
    }
}

pub(crate) fn calls_in(listing: wire::CallReports) -> Listing<CallReport> {
    Listing {
        items: listing.calls.into_iter().map(call_in).collect(),
        total: count(listing.total),
    }
}

fn call_out(call: CallReport) -> wire::CallReport {
    let state = match call.state {
        CallState::Starting => wire::CallState::Starting,
        CallState::Running => wire::CallState::Running,
        CallState::Cancelling => wire::CallState::Cancelling,
    };
    wire::CallReport {
        id: call.id,
        method: call.method,
        target: call.target,
        session: call.session,
        principal: call.principal,
        worker: call.worker,
        journaled: call.journaled,
        modern: call.modern,
        age_ms: call.age_ms,
        state: state.into(),
    }
}

fn call_in(call: wire::CallReport) -> CallReport {
    let state = match call.state() {
        wire::CallState::Starting => CallState::Starting,
        wire::CallState::Unspecified | wire::CallState::Running => CallState::Running,
        wire::CallState::Cancelling => CallState::Cancelling,
    };
    CallReport {
        id: call.id,
        method: call.method,
        target: call.target,
        session: call.session,
        principal: call.principal,
        worker: call.worker,
        journaled: call.journaled,
        modern: call.modern,
        age_ms: call.age_ms,
        state,
    }
}

pub(crate) fn errors_out(listing: Listing<ErrorReport>) -> wire::ErrorReports {
    let error = |error: ErrorReport| wire::ErrorReport {
        at_ms: error.at_ms,
        method: error.method,
        target: error.target,
        code: error.code,
        message: error.message,
        session: error.session,
        trace: error.trace,
    };
    wire::ErrorReports {
        errors: listing.items.into_iter().map(error).collect(),
        total: listing.total as u64,
    }
}

pub(crate) fn errors_in(listing: wire::ErrorReports) -> Listing<ErrorReport> {
    let error = |error: wire::ErrorReport| ErrorReport {
        at_ms: error.at_ms,
        method: error.method,
        target: error.target,
        code: error.code,
        message: error.message,
        session: error.session,
        trace: error.trace,
    };
    Listing {
        items: listing.errors.into_iter().map(error).collect(),
        total: count(listing.total),
    }
}
