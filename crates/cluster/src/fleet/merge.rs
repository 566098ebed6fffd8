use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use shoal_ports::{
    Listing, NodeId, NodeInfo, NodeReport, PoolReport, RecentCalls, Step, ToolReport, quantile,
};

use super::NodeAnswer;
use super::history::last;
use super::report::{
    Gathered, Located, LostNode, NodeSeen, Overview, RatePoint, ToolSeen, ToolsSeen, Unseen,
    WorkerSeen,
};

/// Maximum steps of merged rates: 15 minutes, in steps of 5 seconds.
const STEPS: usize = 180;
/// Maximum lag of a node, in seconds, for which the merged rates wait.
const MOST_BEHIND_S: u64 = 10;

pub(super) fn gathered<T>(
    answers: Vec<NodeAnswer<Listing<T>>>,
    limit: usize,
    key: impl Fn(&T) -> u64,
) -> Gathered<T> {
    let mut gathered = Gathered {
        items: Vec::new(),
        total: 0,
        unseen: Vec::new(),
    };
    for NodeAnswer { node, said } in answers {
        let node = node.to_string();
        match said {
            Ok(listing) => {
                gathered.total += listing.total;
                let located = listing.items.into_iter().map(|item| Located {
                    node: node.clone(),
                    item,
                });
                gathered.items.extend(located);
            }
            Err(error) => gathered.unseen.push(Unseen {
                node,
                reason: error.to_string(),
            }),
        }
    }
    let order = |it: &Located<T>| (key(&it.item), it.node.clone());
    gathered.items.sort_by_cached_key(order);
    gathered.items.truncate(limit);
    gathered
        .unseen
        .sort_by(|one, other| one.node.cmp(&other.node));
    gathered
}

pub(super) fn tools(answers: Vec<NodeAnswer<Listing<ToolReport>>>, limit: usize) -> ToolsSeen {
    let (mut total, mut unseen) = (0, Vec::new());
    let mut sums: HashMap<String, ToolSum> = HashMap::new();
    for NodeAnswer { node, said } in answers {
        let listing = match said {
            Ok(listing) => listing,
            Err(error) => {
                unseen.push(Unseen {
                    node: node.to_string(),
                    reason: error.to_string(),
                });
                continue;
            }
        };
        total = total.max(listing.total);
        for mut tool in listing.items {
            let recent = std::mem::take(&mut tool.recent);
            let sum = sums.entry(tool.name.clone()).or_insert_with(|| ToolSum {
                tool,
                calls: RecentCalls::default(),
                rate: Some(0.0),
            });
            let rate = rate(&recent);
            sum.rate = sum.rate.zip(rate).map(|(one, more)| one + more);
            sum.calls.add(&recent.outcomes, &recent.latency);
        }
    }
    total = total.max(sums.len());
    let mut sums: Vec<ToolSum> = sums.into_values().collect();
    sums.sort_by_cached_key(|sum| (Reverse(sum.calls.outcomes.total()), sum.tool.name.clone()));
    sums.truncate(limit);
    sums.sort_by(|one, other| one.tool.name.cmp(&other.tool.name));
    unseen.sort_by(|one, other| one.node.cmp(&other.node));
    ToolsSeen {
        items: sums.into_iter().map(ToolSum::seen).collect(),
        total,
        unseen,
    }
}

struct ToolSum {
    tool: ToolReport,
    calls: RecentCalls,
    rate: Option<f64>,
}

impl ToolSum {
    fn seen(self) -> ToolSeen {
        let Self { tool, calls, rate } = self;
        ToolSeen {
            name: tool.name,
            title: tool.title,
            description: tool.description,
            pool: tool.pool,
            annotations: tool.annotations,
            outcomes: calls.outcomes,
            rate,
            p50_ms: within(&calls.latency, 0.5),
            p95_ms: within(&calls.latency, 0.95),
        }
    }
}

fn rate(recent: &RecentCalls) -> Option<f64> {
    let calls = recent.outcomes.total() as f64;
    (recent.seconds > 0).then(|| calls / recent.seconds as f64)
}

pub(super) fn overview(
    me: &NodeId,
    listed: Vec<(NodeInfo, bool)>,
    answers: Vec<NodeAnswer<NodeReport>>,
    lost: HashMap<NodeId, Vec<Step>>,
) -> Overview {
    let announced = listed.into_iter().map(|(info, present)| {
        let node = of_info(&info, present);
        (node.report.id.clone(), node)
    });
    let mut nodes: BTreeMap<String, NodeSeen> = announced.collect();
    let mut pools: BTreeMap<String, PoolReport<WorkerSeen>> = BTreeMap::new();
    let mut steps: BTreeMap<u64, Step> = BTreeMap::new();
    let whole = last_whole_step(&answers);
    for step in lost.values().flatten() {
        add(&mut steps, whole, step);
    }
    let mut until: BTreeMap<String, Option<u64>> = lost
        .iter()
        .map(|(node, steps)| (node.to_string(), Some(last(steps))))
        .collect();
    for NodeAnswer { node, said } in answers {
        let id = node.to_string();
        let seen = nodes.entry(id.clone()).or_insert_with(|| NodeSeen {
            present: true,
            report: NodeReport {
                id: id.clone(),
                ..NodeReport::default()
            },
            ..NodeSeen::default()
        });
        match said {
            Err(error) => {
                seen.trouble = Some(error.to_string());
                until.entry(id).or_default();
            }
            Ok(mut report) => {
                for pool in report.pools.drain(..) {
                    see_pool(&mut pools, pool);
                }
                for step in report.steps.drain(..) {
                    add(&mut steps, whole, &step);
                }
                seen.starting &= !report.draining;
                let remembered = Vec::new();
                seen.report = NodeReport {
                    id,
                    remembered,
                    ..report
                };
            }
        }
    }
    let skipped = steps.len().saturating_sub(STEPS);
    Overview {
        me: me.to_string(),
        nodes: nodes.into_values().collect(),
        pools: pools.into_values().collect(),
        rates: steps.values().skip(skipped).map(point).collect(),
        lost: until
            .into_iter()
            .map(|(node, until)| LostNode { node, until })
            .collect(),
    }
}

fn add(steps: &mut BTreeMap<u64, Step>, whole: u64, step: &Step) {
    if step.at > whole {
        return;
    }
    let sum = steps.entry(step.at).or_insert_with(|| Step {
        at: step.at,
        ..Step::default()
    });
    sum.add(step);
}

/// Waits for every node's report, because a partial sum would look like a dip. Ignores nodes that lag far behind.
fn last_whole_step(answers: &[NodeAnswer<NodeReport>]) -> u64 {
    let reports = answers
        .iter()
        .filter_map(|answer| answer.said.as_ref().ok());
    let newest: Vec<u64> = reports.filter_map(|it| Some(it.steps.last()?.at)).collect();
    let latest = newest.iter().copied().max().unwrap_or_default();
    let close = newest.into_iter().filter(|at| at + MOST_BEHIND_S >= latest);
    close.min().unwrap_or_default()
}

fn of_info(info: &NodeInfo, present: bool) -> NodeSeen {
    let roles = [("edge", info.edge), ("session", info.session)];
    NodeSeen {
        address: info.address.clone(),
        starting: info.starting,
        present,
        trouble: None,
        report: NodeReport {
            id: info.id.to_string(),
            version: info.version.clone(),
            roles: roles
                .into_iter()
                .filter(|(_, has)| *has)
                .map(|(role, _)| role.to_owned())
                .collect(),
            draining: info.draining && !info.starting,
            ..NodeReport::default()
        },
    }
}

fn see_pool(pools: &mut BTreeMap<String, PoolReport<WorkerSeen>>, pool: PoolReport) {
    let seen = pools
        .entry(pool.name.clone())
        .or_insert_with(|| PoolReport {
            name: pool.name,
            ..PoolReport::default()
        });
    seen.ready |= pool.ready;
    seen.tools = seen.tools.max(pool.tools);
    seen.prompts = seen.prompts.max(pool.prompts);
    seen.resources = seen.resources.max(pool.resources);
    if seen.left_out.is_empty() {
        seen.left_out = pool.left_out;
    }
    if seen.cut.is_empty() {
        seen.cut = pool.cut;
    }
    for worker in pool.workers {
        let at = seen.workers.binary_search_by(|it| it.id.cmp(&worker.id));
        let at = at.unwrap_or_else(|at| {
            let new = WorkerSeen {
                id: worker.id,
                ..WorkerSeen::default()
            };
            seen.workers.insert(at, new);
            at
        });
        let known = &mut seen.workers[at];
        known.ready |= worker.ready;
        known.reached_by += usize::from(worker.reachable);
        known.avoided_by += usize::from(worker.circuit_open);
        known.running = known.running.max(worker.running);
        known.queued = known.queued.max(worker.queued);
        known.capacity = known.capacity.max(worker.capacity);
        known.detail = known.detail.take().or(worker.detail);
    }
}

fn point(step: &Step) -> RatePoint {
    let within = |part| within(&step.latency, part);
    RatePoint {
        at: step.at,
        outcomes: step.outcomes,
        p50_ms: within(0.5),
        p95_ms: within(0.95),
        p99_ms: within(0.99),
        sessions: step.sessions,
        streams: step.streams,
        calls: step.calls,
    }
}

fn within(latency: &[u64], part: f64) -> Option<f64> {
    quantile(latency, part).map(|micros| micros as f64 / 1_000.0)
}

#[cfg(test)]
mod tests;
