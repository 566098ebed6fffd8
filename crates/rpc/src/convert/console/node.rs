//! A node with its pools and rates.

use shoal_ports::{NodeReport, Outcomes, PoolReport, Step, WorkerReport};

use crate::convert::count;
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
