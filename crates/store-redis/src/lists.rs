//! Each node's list of sessions, for a node that takes them over.

use std::time::Duration;

use redis::Value;
use shoal_ports::{NodeId, Principal, SessionId, StoreError};

use crate::directory::text;
use crate::millis::millis;
use crate::reply::{parts, unexpected};
use crate::store::RedisStoreInner;

impl RedisStoreInner {
    /// Enters the node before its sessions, so that its list can be found.
    pub(crate) async fn enlist(
        &self,
        node: &NodeId,
        sessions: &[(SessionId, Principal)],
        life: Duration,
    ) -> Result<(), StoreError> {
        let (lists, list) = (self.keys.lists(), self.keys.list(node));
        let mut named = redis::cmd("HSET");
        named.arg(&lists).arg(node.as_str()).arg(1);
        self.connections.ask(&lists, named).await?;
        let mut added = redis::cmd("HSET");
        added.arg(&list);
        for (session, principal) in sessions {
            added.arg(session.as_str()).arg(principal.as_str());
        }
        self.connections.ask(&list, added).await?;
        for key in [&lists, &list] {
            let mut kept = redis::cmd("PEXPIRE");
            kept.arg(key).arg(millis(life));
            self.connections.ask(key, kept).await?;
        }
        Ok(())
    }

    pub(crate) async fn delist(
        &self,
        node: &NodeId,
        sessions: &[SessionId],
    ) -> Result<(), StoreError> {
        let list = self.keys.list(node);
        let mut command = redis::cmd("HDEL");
        command.arg(&list);
        for session in sessions {
            command.arg(session.as_str());
        }
        self.connections.ask(&list, command).await.map(drop)
    }

    pub(crate) async fn listing(&self) -> Result<Vec<NodeId>, StoreError> {
        let lists = self.keys.lists();
        let mut command = redis::cmd("HKEYS");
        command.arg(&lists);
        let nodes = parts(self.connections.ask(&lists, command).await?)?;
        nodes
            .rest()
            .map(|node| Ok(NodeId::new(text(&node?)?)))
            .collect()
    }

    pub(crate) async fn enlisted(
        &self,
        node: &NodeId,
        at_most: usize,
    ) -> Result<Vec<(SessionId, Principal)>, StoreError> {
        let list = self.keys.list(node);
        let mut command = redis::cmd("HRANDFIELD");
        command.arg(&list).arg(at_most).arg("WITHVALUES");
        let found = self.connections.ask(&list, command).await?;
        let Value::Array(found) = found else {
            return Err(unexpected());
        };
        let flat = found.into_iter().flat_map(|part| match part {
            Value::Array(pair) => pair,
            one => vec![one],
        });
        let mut flat = parts(Value::Array(flat.collect()))?;
        let mut sessions = Vec::new();
        while !flat.is_empty() {
            let session = SessionId::new(text(&flat.bytes()?)?);
            sessions.push((session, Principal::new(text(&flat.bytes()?)?)));
        }
        Ok(sessions)
    }

    pub(crate) async fn forget_list(&self, node: &NodeId) -> Result<(), StoreError> {
        let lists = self.keys.lists();
        let mut command = redis::cmd("HDEL");
        command.arg(&lists).arg(node.as_str());
        self.connections.ask(&lists, command).await.map(drop)
    }
}
