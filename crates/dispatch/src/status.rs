use serde::Serialize;
use shoal_ports::{ListScope, WorkerLoad};

use crate::awaiting::Awaiting;
use crate::catalog::{Conflict, Degraded};
use crate::pools::{CircuitState, PoolMember, PoolView, View};

const TOLD: usize = 64 * 1024;

/// The dispatcher's state for operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// All pools, by name.
    pub pools: Vec<PoolStatus>,
    /// Conflicts between pools.
    pub conflicts: Vec<Conflict>,
    /// Hidden items, and tools without part of their description.
    pub degraded: Vec<Degraded>,
    /// Calls that wait for modern clients' answers.
    pub parked: usize,
    /// Resources with subscribers.
    pub subscriptions: usize,
}

/// One pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PoolStatus {
    /// The pool's name.
    pub name: String,
    /// Whether a worker takes calls.
    pub ready: bool,
    /// Whether the pool has no workers and stays listed for a while.
    pub lingering: bool,
    /// Whether workers only finish their last calls, because their configuration removed the pool.
    pub removed: bool,
    /// Whether the pool takes no calls, because this node's configuration does not name it.
    pub unnamed: bool,
    /// Calls that wait for a worker.
    pub awaiting: usize,
    /// Which callers share the lists. The counts below cover all callers.
    pub lists: ListScope,
    /// Callers with lists of their own.
    pub own_lists: usize,
    /// Served tools.
    pub tools: usize,
    /// Served prompts.
    pub prompts: usize,
    /// Served resources.
    pub resources: usize,
    /// Served resource templates.
    pub resource_templates: usize,
    /// Operations that could not become tools, and why.
    pub left_out: Vec<String>,
    /// Tools with shortened schemas, and how.
    pub cut: Vec<String>,
    /// The workers, ready ones first.
    pub workers: Vec<WorkerStatus>,
}

/// One worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorkerStatus {
    /// The worker's id.
    pub id: String,
    /// The worker's pool.
    pub pool: String,
    /// The node, if the id names it (`<pool>@<node>`).
    pub node: Option<String>,
    /// Whether the worker accepts calls.
    pub ready: bool,
    /// Whether this node has a connection to the worker.
    pub reachable: bool,
    /// The circuit's state.
    pub circuit: CircuitState,
    /// Running calls.
    pub running: usize,
    /// Queued calls.
    pub queued: usize,
    /// Calls that can run at once.
    pub capacity: usize,
    /// Why the worker is not ready, or which items are degraded.
    pub detail: Option<String>,
}

impl Status {
    pub(crate) fn of(
        view: &View,
        parked: usize,
        subscriptions: usize,
        awaiting: &Awaiting,
    ) -> Self {
        let pools = view.pools.iter().map(|(name, pool)| {
            let [tools, prompts, resources, resource_templates] = view.catalog.counts(name);
            let ready = pool.ready.iter().map(|member| worker(member, true));
            let waiting = pool.waiting.iter().map(|member| worker(member, false));
            let (left_out, cut) = told(pool);
            PoolStatus {
                name: name.to_string(),
                ready: pool.ready.iter().any(|member| member.is_reachable()),
                lingering: pool.ready.is_empty() && pool.waiting.is_empty(),
                removed: pool.removed,
                unnamed: pool.unnamed,
                awaiting: awaiting.of(name),
                lists: view.own.scope(name),
                own_lists: view.own.owners_in(name),
                tools,
                prompts,
                resources,
                resource_templates,
                left_out,
                cut,
                workers: ready.chain(waiting).collect(),
            }
        });
        Self {
            pools: pools.collect(),
            conflicts: view.catalog.conflicts.clone(),
            degraded: view.catalog.degraded.clone(),
            parked,
            subscriptions,
        }
    }
}

/// Reads the first ready worker, because the result depends only on the catalog.
fn told(pool: &PoolView) -> (Vec<String>, Vec<String>) {
    let first = pool.ready.first();
    let catalog = first.and_then(|member| member.worker.announcement().borrow().catalog.clone());
    catalog.map_or_else(Default::default, |catalog| {
        (bounded(&catalog.left_out), bounded(&catalog.cut))
    })
}

fn bounded(all: &[String]) -> Vec<String> {
    let mut bytes = 0;
    let fit = all.iter().take_while(|one| {
        bytes += one.len();
        bytes <= TOLD
    });
    let mut told: Vec<String> = fit.cloned().collect();
    if told.len() < all.len() {
        told.push(format!(
            "{} more; see the log of the pool's worker",
            all.len() - told.len()
        ));
    }
    told
}

fn worker(member: &PoolMember, ready: bool) -> WorkerStatus {
    let WorkerLoad {
        running,
        queued,
        capacity,
    } = member.worker.load();
    WorkerStatus {
        id: member.id.to_string(),
        pool: member.pool.to_string(),
        node: node_of(member),
        ready,
        reachable: member.is_reachable(),
        circuit: member.circuit.state(),
        running,
        queued,
        capacity,
        detail: member.detail.clone(),
    }
}

fn node_of(member: &PoolMember) -> Option<String> {
    let (pool, node) = member.id.as_str().rsplit_once('@')?;
    (pool == member.pool.as_ref()).then(|| node.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{TOLD, bounded};

    #[test]
    fn what_pools_say_is_bounded() {
        let few = ["a: why".to_owned(), "b: why".to_owned()];
        assert_eq!(bounded(&few), few);
        let many: Vec<String> = (0..1_000).map(|at| format!("{at:0>400}")).collect();
        let told = bounded(&many);
        assert_eq!(told[..163], many[..163]);
        let last = "837 more; see the log of the pool's worker";
        assert_eq!((told.len(), told[163].as_str()), (164, last));
        assert!(told.iter().map(String::len).sum::<usize>() <= TOLD + last.len());
    }
}
