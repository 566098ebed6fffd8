//! The workers that there are, and the view of them that calls are dispatched by.

mod balance;
mod registry;

use std::collections::BTreeMap;
use std::sync::Arc;

use shoal_ports::{CallFailure, Worker, WorkerId};

pub(crate) use registry::Registry;

use crate::catalog::Catalog;

/// What calls are dispatched by; immutable, replaced as a whole when a worker changes.
pub(crate) struct View {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) pools: BTreeMap<Arc<str>, PoolView>,
}

/// The workers of one pool.
#[derive(Default)]
pub(crate) struct PoolView {
    /// Those that take calls, by id.
    pub(crate) ready: Vec<Member>,
    /// Those that do not.
    pub(crate) waiting: Vec<Member>,
    /// Whether what the pool offers is known.
    pub(crate) announced: bool,
}

/// A worker of a pool.
#[derive(Clone)]
pub(crate) struct Member {
    pub(crate) id: WorkerId,
    pub(crate) worker: Arc<dyn Worker>,
    /// Why it is not ready, or what is degraded.
    pub(crate) detail: Option<String>,
}

impl View {
    /// A worker by its id, ready or not.
    pub(crate) fn worker(&self, id: &WorkerId) -> Option<&Arc<dyn Worker>> {
        self.members()
            .find(|member| member.id == *id)
            .map(|member| &member.worker)
    }

    /// Every worker.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Member> {
        self.pools
            .values()
            .flat_map(|pool| pool.ready.iter().chain(&pool.waiting))
    }

    /// The worker to offer a call of `pool` to, other than those in `tried`.
    ///
    /// # Errors
    /// `NotExecuted`, saying why nobody is ready.
    pub(crate) fn choose(&self, pool: &str, tried: &[WorkerId]) -> Result<&Member, CallFailure> {
        let Some(view) = self.pools.get(pool) else {
            return Err(not_executed(format!("the pool {pool} has no worker")));
        };
        balance::choose(&view.ready, tried).ok_or_else(|| not_executed(view.why_not(pool)))
    }

    /// Why something may be missing from the catalog: a pool that has not said yet what it offers.
    pub(crate) fn unannounced(&self) -> Option<CallFailure> {
        let (name, pool) = self.pools.iter().find(|(_, pool)| !pool.announced)?;
        Some(not_executed(pool.why_not(name)))
    }
}

impl PoolView {
    fn why_not(&self, pool: &str) -> String {
        let details: Vec<String> = self
            .waiting
            .iter()
            .map(|member| {
                let detail = member.detail.as_deref().unwrap_or("not ready");
                format!("{}: {detail}", member.id)
            })
            .collect();
        if details.is_empty() {
            return format!("the pool {pool} has no other worker");
        }
        format!(
            "no worker of the pool {pool} is ready ({})",
            details.join(", ")
        )
    }
}

fn not_executed(reason: String) -> CallFailure {
    CallFailure::NotExecuted { reason }
}
