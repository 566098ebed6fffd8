use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use shoal_dispatch::{CircuitState, PoolStatus, WorkerStatus};
use shoal_edge::{Gauges, Recorder};
use shoal_ports::{
    CallId, CallReport, ErrorReport, InspectError, Inspector, Listing, NodeId, NodeReport,
    PoolReport, Remembered, SessionDetail, SessionId, SessionReport, ToolDetail, ToolReport,
    WorkerReport,
};
use shoal_session::Sessions;

use crate::node::NodeWatch;

const CALLS_OF_SESSION: usize = 100;

pub(crate) struct LocalInspector(Arc<NodeWatch>);

impl LocalInspector {
    pub(crate) fn new(watch: Arc<NodeWatch>) -> Self {
        Self(watch)
    }

    fn remembered(&self) -> Vec<Remembered> {
        let Some(membership) = self.0.shared_membership() else {
            return Vec::new();
        };
        let view = membership.members.view();
        let present = |id: &NodeId| view.node(id).is_some_and(|node| node.is_present());
        self.0.history.lost(present)
    }

    fn sessions_here(&self) -> Option<&Sessions> {
        self.0.membership.as_ref()?.sessions.as_ref()
    }
}

#[async_trait]
impl Inspector for LocalInspector {
    async fn node(&self) -> Result<NodeReport, InspectError> {
        let status = self.0.dispatch.status();
        let sessions = self.0.sessions().unwrap_or_default();
        Ok(NodeReport {
            waits_for: self.0.wants().reasons().to_vec(),
            store_trouble: self.0.store().trouble,
            live_sessions: sessions.live,
            sleeping_sessions: sessions.passive,
            streams: self.0.load.open_streams(),
            requests: self.0.load.requests_in_flight(),
            calls: self.0.dispatch.in_flight(),
            parked: status.parked,
            pools: status.pools.into_iter().map(pool).collect(),
            steps: self.0.recorder.steps(),
            remembered: self.remembered(),
            ..self.0.about()
        })
    }

    async fn sessions(
        &self,
        filter: &str,
        limit: usize,
    ) -> Result<Listing<SessionReport>, InspectError> {
        let sessions = self.sessions_here();
        Ok(sessions.map_or_else(Listing::default, |sessions| sessions.list(filter, limit)))
    }

    async fn session(&self, session: &SessionId) -> Result<Option<SessionDetail>, InspectError> {
        let Some(sessions) = self.sessions_here() else {
            return Ok(None);
        };
        let detail = sessions.detail(session).await;
        Ok(detail.map(|detail| SessionDetail {
            calls: self.0.dispatch.calls(Some(session), CALLS_OF_SESSION).items,
            ..detail
        }))
    }

    async fn calls(&self, limit: usize) -> Result<Listing<CallReport>, InspectError> {
        Ok(self.0.dispatch.calls(None, limit))
    }

    async fn errors(&self, limit: usize) -> Result<Listing<ErrorReport>, InspectError> {
        Ok(self.0.recorder.errors(limit))
    }

    async fn tools(&self, filter: &str, limit: usize) -> Result<Listing<ToolReport>, InspectError> {
        let mut items = self.0.dispatch.tools(filter);
        let total = items.len();
        for tool in &mut items {
            tool.recent = self.0.recorder.calls_of(&tool.name);
        }
        items.sort_by(|one, other| {
            let calls = |tool: &ToolReport| tool.recent.outcomes.total();
            (calls(other).cmp(&calls(one))).then_with(|| one.name.cmp(&other.name))
        });
        items.truncate(limit);
        Ok(Listing { items, total })
    }

    async fn tool(&self, name: &str) -> Result<Option<ToolDetail>, InspectError> {
        Ok(self.0.dispatch.tool(name))
    }

    async fn end_session(&self, session: &SessionId) -> Result<bool, InspectError> {
        let Some(sessions) = self.sessions_here() else {
            return Ok(false);
        };
        let ended = sessions.end(session).await;
        if ended {
            tracing::info!(%session, "ended a session for an operator");
        }
        Ok(ended)
    }

    async fn cancel_call(&self, call: CallId, reason: &str) -> Result<bool, InspectError> {
        let found = self.0.dispatch.cancel(call, reason);
        if found {
            tracing::info!(%call, "stopped a call for an operator");
        }
        Ok(found)
    }
}

fn pool(pool: PoolStatus) -> PoolReport {
    PoolReport {
        name: pool.name,
        ready: pool.ready,
        tools: pool.tools,
        prompts: pool.prompts,
        resources: pool.resources + pool.resource_templates,
        left_out: pool.left_out,
        cut: pool.cut,
        workers: pool.workers.into_iter().map(worker).collect(),
    }
}

fn worker(worker: WorkerStatus) -> WorkerReport {
    WorkerReport {
        id: worker.id,
        ready: worker.ready,
        reachable: worker.reachable,
        circuit_open: worker.circuit == CircuitState::Open,
        running: worker.running,
        queued: worker.queued,
        capacity: worker.capacity,
        detail: worker.detail,
    }
}

/// Ends each step of the recorder at its time, until the node is dropped.
pub(crate) async fn sample(watch: Weak<NodeWatch>) {
    let mut ended = 0;
    loop {
        let now = unix();
        tokio::time::sleep(until_next_step(now)).await;
        let Some(watch) = watch.upgrade() else {
            return;
        };
        let length = Recorder::STEP.as_secs();
        let over = (unix().as_secs() / length).saturating_sub(1) * length;
        // If the clock was set back, the recorder has ended this step already.
        if over <= ended {
            continue;
        }
        ended = over;
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let sessions = watch.sessions().unwrap_or_default();
        watch.recorder.end_step(
            over,
            Gauges {
                sessions: count(sessions.live + sessions.passive),
                streams: count(watch.load.open_streams()),
                calls: count(watch.dispatch.in_flight()),
            },
        );
    }
}

fn unix() -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.unwrap_or_default()
}

/// Steps begin at multiples of their length, so that the steps of all nodes can be added.
fn until_next_step(now: Duration) -> Duration {
    let length = Recorder::STEP.as_secs();
    let next = Duration::from_secs((now.as_secs() / length + 1) * length);
    next.saturating_sub(now)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::until_next_step;

    #[test]
    fn steps_begin_at_multiples_of_their_length() {
        let ms = Duration::from_millis;
        assert_eq!(until_next_step(ms(12_300)), ms(2_700));
        assert_eq!(until_next_step(ms(15_000)), ms(5_000));
    }
}
