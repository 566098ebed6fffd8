//! Gauges of a dispatcher.

use std::collections::HashMap;
use std::sync::Weak;

use shoal_telemetry::metrics::{self, EntryKind, Registration, WorkerState, metrics};

use crate::pools::{CircuitState, PoolMember};
use crate::shared::DispatchState;

/// The gauges report until the registrations are dropped.
pub(crate) fn register(shared: &Weak<DispatchState>) -> [Registration; 6] {
    let (pools, catalog) = (&metrics().pools, &metrics().catalog);
    let of = || shared.clone();
    let [running, awaiting, workers, circuits, entries, conflicts] = std::array::from_fn(|_| of());
    [
        pools.observe_in_flight(move |report| in_flight(&running, report)),
        pools.observe_awaiting(move |report| await_workers(&awaiting, report)),
        pools.observe_workers(move |report| {
            count(&workers, state_of, report);
        }),
        pools.observe_circuits(move |report| {
            count(&circuits, |member, _| circuit_of(member), report);
        }),
        catalog.observe_entries(move |report| list(&entries, report)),
        catalog.observe_conflicts(move || {
            let shared = conflicts.upgrade();
            shared.map_or(0, |shared| shared.view().catalog.conflicts.len() as u64)
        }),
    ]
}

fn in_flight(shared: &Weak<DispatchState>, report: &mut dyn FnMut(&str, u64)) {
    let Some(shared) = shared.upgrade() else {
        return;
    };
    let view = shared.view();
    let mut pools: HashMap<&str, u64> = view.pools.keys().map(|name| (&**name, 0)).collect();
    for (worker, calls) in shared.in_flight.by_worker() {
        if let Some(member) = view.member(&worker) {
            *pools.entry(&member.pool).or_default() += calls;
        }
    }
    for (pool, calls) in pools {
        report(pool, calls);
    }
}

fn await_workers(shared: &Weak<DispatchState>, report: &mut dyn FnMut(&str, u64)) {
    let Some(shared) = shared.upgrade() else {
        return;
    };
    for pool in shared.view().pools.keys() {
        report(pool, shared.awaiting.of(pool) as u64);
    }
}

fn count<L: Copy + Eq + std::hash::Hash>(
    shared: &Weak<DispatchState>,
    of: impl Fn(&PoolMember, bool) -> L,
    report: &mut dyn FnMut(&str, L, u64),
) {
    let Some(shared) = shared.upgrade() else {
        return;
    };
    for (name, pool) in &shared.view().pools {
        let mut counts: HashMap<L, u64> = HashMap::new();
        let ready = pool.ready.iter().map(|member| of(member, true));
        let waiting = pool.waiting.iter().map(|member| of(member, false));
        for state in ready.chain(waiting) {
            *counts.entry(state).or_default() += 1;
        }
        for (state, count) in counts {
            report(name, state, count);
        }
    }
}

fn state_of(member: &PoolMember, ready: bool) -> WorkerState {
    if member.is_leaving() {
        WorkerState::Draining
    } else if !member.is_reachable() {
        WorkerState::Unreachable
    } else if ready {
        WorkerState::Ready
    } else {
        WorkerState::Starting
    }
}

fn circuit_of(member: &PoolMember) -> metrics::CircuitState {
    match member.circuit.state() {
        CircuitState::Closed => metrics::CircuitState::Closed,
        CircuitState::Open => metrics::CircuitState::Open,
        CircuitState::HalfOpen => metrics::CircuitState::HalfOpen,
    }
}

fn list(shared: &Weak<DispatchState>, report: &mut dyn FnMut(&str, EntryKind, u64)) {
    let Some(shared) = shared.upgrade() else {
        return;
    };
    let view = shared.view();
    for pool in view.pools.keys() {
        let [tools, prompts, resources, templates] = view.catalog.counts(pool);
        for (kind, count) in [
            (EntryKind::Tool, tools),
            (EntryKind::Prompt, prompts),
            (EntryKind::Resource, resources),
            (EntryKind::ResourceTemplate, templates),
        ] {
            report(pool, kind, count as u64);
        }
    }
}
