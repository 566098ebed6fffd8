mod history;
mod merge;
mod report;

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use shoal_ports::{
    CallId, CallReport, ErrorReport, InspectError, Inspector, NodeId, NodeInfo, SessionDetail,
    SessionId, SessionReport, ToolDetail,
};
use shoal_rpc::{LinkConfig, RemoteInspector};

pub use history::History;
pub use report::{
    Gathered, Located, LostNode, NodeSeen, Overview, RatePoint, ToolSeen, ToolsSeen, Unseen,
    WorkerSeen,
};

use crate::members::Members;

const PATIENCE: Duration = Duration::from_millis(1_500);
const AT_ONCE: usize = 32;
/// Number of other nodes whose rates each node reads, so that a lost node's rates survive.
const FOLLOWED: usize = 2;
const FOLLOWED_EVERY: Duration = Duration::from_secs(15);
/// Maximum tools requested from each node: only the merged counts show which tools are called most.
const MOST_TOOLS: usize = 1_000;

/// Inspects all nodes from this node. Results name the nodes that did not answer in time.
pub struct Fleet {
    me: NodeId,
    local: Arc<dyn Inspector>,
    /// `None` in a process that is not a node.
    members: Option<Members>,
    config: LinkConfig,
    remotes: Mutex<HashMap<NodeId, Arc<RemoteInspector>>>,
    history: History,
}

struct NodeAnswer<T> {
    node: NodeId,
    said: Result<T, InspectError>,
}

impl Fleet {
    /// Creates the inspector; `local` inspects this node.
    pub fn new(
        me: NodeId,
        local: Arc<dyn Inspector>,
        members: Option<Members>,
        history: History,
        config: LinkConfig,
    ) -> Self {
        Self {
            me,
            local,
            members,
            config,
            remotes: Mutex::default(),
            history,
        }
    }

    /// Returns nodes, pools, workers and rates.
    pub async fn overview(&self) -> Overview {
        let answers = self.ask(|node| Box::pin(async move { node.node().await }));
        let answers = answers.await;
        self.history.note(&answers);
        let lost = self.history.of_others(&answers);
        merge::overview(&self.me, self.listed(), answers, lost)
    }

    /// Keeps reading the rates of the nodes that follow this one in the order of IDs, so that a lost node's rates
    /// survive.
    pub async fn follow(fleet: Weak<Self>) {
        loop {
            tokio::time::sleep(FOLLOWED_EVERY).await;
            let Some(fleet) = fleet.upgrade() else {
                return;
            };
            let followed = fleet.followed();
            let asked = fleet.ask_some(followed, |node| Box::pin(async move { node.node().await }));
            fleet.history.note(&asked.await);
        }
    }

    fn followed(&self) -> Vec<(NodeId, Arc<dyn Inspector>)> {
        let mut nodes = self.inspectors();
        let ids: Vec<NodeId> = nodes.iter().map(|(id, _)| id.clone()).collect();
        let followed = following(&self.me, ids);
        nodes.retain(|(id, _)| followed.contains(id));
        nodes
    }

    /// Lists all nodes' tools by name, at most the `limit` most called ones; see [`Inspector::tools`].
    pub async fn tools(&self, filter: &str, limit: usize) -> ToolsSeen {
        let filter: Arc<str> = filter.into();
        let answers = self.ask(move |node| {
            let filter = filter.clone();
            Box::pin(async move { node.tools(&filter, MOST_TOOLS).await })
        });
        merge::tools(answers.await, limit)
    }

    /// Returns a tool. If this node does not know the tool, asks the other nodes.
    pub async fn tool(&self, name: &str) -> Option<ToolDetail> {
        if let Ok(Some(tool)) = self.local.tool(name).await {
            return Some(tool);
        }
        let name: Arc<str> = name.into();
        let answers = self.ask(move |node| {
            let name = name.clone();
            Box::pin(async move { node.tool(&name).await })
        });
        let mut answers = answers.await.into_iter();
        answers.find_map(|answer| answer.said.ok().flatten())
    }

    /// Lists all nodes' sessions, the last used first; see [`Inspector::sessions`].
    pub async fn sessions(&self, filter: &str, limit: usize) -> Gathered<SessionReport> {
        let filter: Arc<str> = filter.into();
        let answers = self.ask(move |node| {
            let filter = filter.clone();
            Box::pin(async move { node.sessions(&filter, limit).await })
        });
        merge::gathered(answers.await, limit, |session| session.idle_ms)
    }

    /// Lists all nodes' calls in flight, the oldest first.
    pub async fn calls(&self, limit: usize) -> Gathered<CallReport> {
        let answers = self.ask(move |node| Box::pin(async move { node.calls(limit).await }));
        merge::gathered(answers.await, limit, |call| u64::MAX - call.age_ms)
    }

    /// Lists all nodes' failed requests, the newest first.
    pub async fn errors(&self, limit: usize) -> Gathered<ErrorReport> {
        let answers = self.ask(move |node| Box::pin(async move { node.errors(limit).await }));
        merge::gathered(answers.await, limit, |error| u64::MAX - error.at_ms)
    }

    /// Returns a session and its owner, if a node that answers owns it.
    pub async fn session(&self, session: &SessionId) -> Option<Located<SessionDetail>> {
        let session = session.clone();
        let answers = self.ask(move |node| {
            let session = session.clone();
            Box::pin(async move { node.session(&session).await })
        });
        answers.await.into_iter().find_map(|answer| {
            let item = answer.said.ok().flatten()?;
            let node = answer.node.to_string();
            Some(Located { node, item })
        })
    }

    /// Ends a session. Returns its owner, if any.
    ///
    /// # Errors
    /// If the owner may be among the nodes that did not answer.
    pub async fn end_session(&self, session: &SessionId) -> Result<Option<NodeId>, InspectError> {
        let session = session.clone();
        let answers = self.ask(move |node| {
            let session = session.clone();
            Box::pin(async move { node.end_session(&session).await })
        });
        who_did(answers.await)
    }

    /// Cancels a call. Returns the node that ran it, if any.
    ///
    /// # Errors
    /// If the call may run on a node that did not answer.
    pub async fn cancel_call(
        &self,
        call: CallId,
        reason: &str,
    ) -> Result<Option<NodeId>, InspectError> {
        let reason: Arc<str> = reason.into();
        let answers = self.ask(move |node| {
            let reason = reason.clone();
            Box::pin(async move { node.cancel_call(call, &reason).await })
        });
        who_did(answers.await)
    }

    async fn ask<T: Send + 'static>(
        &self,
        question: impl Fn(Arc<dyn Inspector>) -> BoxFuture<'static, Result<T, InspectError>>,
    ) -> Vec<NodeAnswer<T>> {
        self.ask_some(self.inspectors(), question).await
    }

    async fn ask_some<T: Send + 'static>(
        &self,
        nodes: Vec<(NodeId, Arc<dyn Inspector>)>,
        question: impl Fn(Arc<dyn Inspector>) -> BoxFuture<'static, Result<T, InspectError>>,
    ) -> Vec<NodeAnswer<T>> {
        let asking = nodes.into_iter().map(|(node, inspector)| {
            let asked = question(inspector);
            async move {
                let said = tokio::time::timeout(PATIENCE, asked).await;
                let said = said.unwrap_or_else(|_| {
                    let reason = format!("it did not answer within {PATIENCE:?}");
                    Err(InspectError::Unreachable(reason))
                });
                NodeAnswer { node, said }
            }
        });
        let asking: Vec<_> = asking.collect();
        futures::stream::iter(asking)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await
    }

    fn listed(&self) -> Vec<(NodeInfo, bool)> {
        let Some(members) = &self.members else {
            return Vec::new();
        };
        let view = members.view();
        let nodes = view.nodes();
        nodes
            .map(|node| (node.info().clone(), node.is_present()))
            .collect()
    }

    fn inspectors(&self) -> Vec<(NodeId, Arc<dyn Inspector>)> {
        let mut inspectors = vec![(self.me.clone(), self.local.clone())];
        let listed = self.listed();
        let mut remotes = self.remotes.lock();
        remotes.retain(|id, _| listed.iter().any(|(info, _)| info.id == *id));
        for (info, _) in listed.iter().filter(|(info, _)| info.id != self.me) {
            let dial = || {
                let remote =
                    RemoteInspector::new(info.id.clone(), &info.address, self.config.clone());
                Arc::new(remote)
            };
            let remote = remotes.entry(info.id.clone()).or_insert_with(dial);
            if remote.address() != info.address {
                *remote = dial();
            }
            inspectors.push((info.id.clone(), Arc::clone(remote) as Arc<dyn Inspector>));
        }
        inspectors
    }
}

fn following(me: &NodeId, mut nodes: Vec<NodeId>) -> Vec<NodeId> {
    nodes.retain(|id| id != me);
    nodes.sort_by_cached_key(|id| (id < me, id.clone()));
    nodes.truncate(FOLLOWED);
    nodes
}

fn who_did(answers: Vec<NodeAnswer<bool>>) -> Result<Option<NodeId>, InspectError> {
    let mut missing = None;
    for NodeAnswer { node, said } in answers {
        match said {
            Ok(true) => return Ok(Some(node)),
            Ok(false) => {}
            Err(error) => missing = Some(InspectError::Failed(format!("{node}: {error}"))),
        }
    }
    missing.map_or(Ok(None), Err)
}

#[cfg(test)]
mod tests {
    use shoal_ports::NodeId;

    use super::{FOLLOWED, following};

    #[test]
    fn every_node_is_heard_of_by_some() {
        let nodes: Vec<NodeId> = ["c", "a", "e", "b", "d"].map(NodeId::new).to_vec();
        let followed = nodes.iter().flat_map(|me| following(me, nodes.clone()));
        let followed: Vec<NodeId> = followed.collect();
        for node in &nodes {
            assert!(!following(node, nodes.clone()).contains(node), "{node}");
            let by = followed.iter().filter(|it| *it == node).count();
            assert_eq!(by, FOLLOWED, "{node}");
        }
        let pair = vec![NodeId::new("a"), NodeId::new("b")];
        assert_eq!(following(&pair[1], pair.clone()), [NodeId::new("a")]);
        assert_eq!(following(&pair[0], vec![]), []);
    }
}
