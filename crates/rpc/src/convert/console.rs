//! What operators see of a node.

use shoal_ports::{
    CallReport, CallState, ErrorReport, Listing, NodeReport, Outcomes, PoolReport, SessionDetail,
    SessionReport, Step, StreamReport, WorkerReport,
};

use super::count;
use crate::error::Malformed;
use crate::proto::node::v1 as wire;

pub(crate) fn node_out(node: NodeReport) -> wire::NodeReport {
    wire::NodeReport {
        id: node.id,
        version: node.version,
        roles: node.roles,
        uptime_ms: node.uptime_ms,
        draining: node.draining,
        waits_for: node.waits_for,
        live_sessions: node.live_sessions as u64,
        sleeping_sessions: node.sleeping_sessions as u64,
        streams: node.streams as u64,
        requests: node.requests as u64,
        calls: node.calls as u64,
        parked: node.parked as u64,
        pools: node.pools.into_iter().map(pool_out).collect(),
        steps: node.steps.into_iter().map(step_out).collect(),
    }
}

pub(crate) fn node_in(node: wire::NodeReport) -> NodeReport {
    NodeReport {
        id: node.id,
        version: node.version,
        roles: node.roles,
        uptime_ms: node.uptime_ms,
        draining: node.draining,
        waits_for: node.waits_for,
        live_sessions: count(node.live_sessions),
        sleeping_sessions: count(node.sleeping_sessions),
        streams: count(node.streams),
        requests: count(node.requests),
        calls: count(node.calls),
        parked: count(node.parked),
        pools: node.pools.into_iter().map(pool_in).collect(),
        steps: node.steps.into_iter().map(step_in).collect(),
    }
}

fn pool_out(pool: PoolReport) -> wire::PoolReport {
    wire::PoolReport {
        name: pool.name,
        ready: pool.ready,
        tools: pool.tools as u64,
        prompts: pool.prompts as u64,
        resources: pool.resources as u64,
        workers: pool.workers.into_iter().map(worker_out).collect(),
    }
}

fn pool_in(pool: wire::PoolReport) -> PoolReport {
    PoolReport {
        name: pool.name,
        ready: pool.ready,
        tools: count(pool.tools),
        prompts: count(pool.prompts),
        resources: count(pool.resources),
        workers: pool.workers.into_iter().map(worker_in).collect(),
    }
}

fn worker_out(worker: WorkerReport) -> wire::WorkerReport {
    wire::WorkerReport {
        id: worker.id,
        ready: worker.ready,
        reachable: worker.reachable,
        circuit_open: worker.circuit_open,
        running: worker.running as u64,
        queued: worker.queued as u64,
        capacity: worker.capacity as u64,
        detail: worker.detail,
    }
}

fn worker_in(worker: wire::WorkerReport) -> WorkerReport {
    WorkerReport {
        id: worker.id,
        ready: worker.ready,
        reachable: worker.reachable,
        circuit_open: worker.circuit_open,
        running: count(worker.running),
        queued: count(worker.queued),
        capacity: count(worker.capacity),
        detail: worker.detail,
    }
}

fn step_out(step: Step) -> wire::StepReport {
    wire::StepReport {
        at: step.at,
        ok: step.outcomes.ok,
        rejected: step.outcomes.rejected,
        failed: step.outcomes.failed,
        cancelled: step.outcomes.cancelled,
        latency: step.latency,
        sessions: step.sessions,
        streams: step.streams,
        calls: step.calls,
    }
}

fn step_in(step: wire::StepReport) -> Step {
    Step {
        at: step.at,
        outcomes: Outcomes {
            ok: step.ok,
            rejected: step.rejected,
            failed: step.failed,
            cancelled: step.cancelled,
        },
        latency: step.latency,
        sessions: step.sessions,
        streams: step.streams,
        calls: step.calls,
    }
}

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
