//! The seam through which the nodes of a cluster find one another.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;

use crate::{NodeId, StoreError};

/// Which nodes there are, kept where every node can see it.
#[async_trait]
pub trait Membership: Send + Sync + 'static {
    /// Says what there is to know of a node, for `life`; said again before that is over.
    async fn announce(&self, node: &NodeInfo, life: Duration) -> Result<(), StoreError>;

    /// Takes a node out at once.
    async fn withdraw(&self, node: &NodeId) -> Result<(), StoreError>;

    /// The nodes whose announcement lives, in no order.
    async fn nodes(&self) -> Result<Vec<NodeInfo>, StoreError>;

    /// Remembers for `life` which pools there are, in place of what was remembered before: for a node that starts
    /// while no other is there to tell it.
    async fn remember_pools(&self, pools: &[String], life: Duration) -> Result<(), StoreError>;

    /// The pools that are remembered.
    async fn remembered_pools(&self) -> Result<Vec<String>, StoreError>;

    /// Remembers for `life` what a pool offers, in place of what was remembered of it before: for a node that starts while the
    /// pool has no worker.
    async fn remember_catalog(
        &self,
        pool: &str,
        catalog: &[u8],
        life: Duration,
    ) -> Result<(), StoreError>;

    /// Has what is remembered of a pool stay for `life`. Remembers `catalog` where nothing is.
    async fn keep_catalog(
        &self,
        pool: &str,
        catalog: &[u8],
        life: Duration,
    ) -> Result<(), StoreError>;

    /// Forgets what a pool offers.
    async fn forget_catalog(&self, pool: &str) -> Result<(), StoreError>;

    /// Returns the catalog that is remembered of a pool.
    async fn remembered_catalog(&self, pool: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Agrees with the other nodes on which pool keeps each contested name. `contested` are all of them, each with the pool that
    /// keeps it as this node sees. A name that is settled already stays with its pool, if that is one of `pools`. Others are
    /// settled as this node sees, and names that are contested no more are forgotten. Returns what is settled, and remembers it for `life`.
    async fn settle_names(
        &self,
        contested: &BTreeMap<String, String>,
        pools: &[String],
        life: Duration,
    ) -> Result<BTreeMap<String, String>, StoreError>;

    /// The names that are settled, each with the pool that keeps it.
    async fn settled_names(&self) -> Result<BTreeMap<String, String>, StoreError>;
}

/// What a node says of itself. Unknown members are ignored and missing ones take their defaults, so that
/// releases can be mixed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NodeInfo {
    /// Its name, which no other process has had.
    pub id: NodeId,
    /// Where its cluster listener is dialled, `host:port`.
    pub address: String,
    /// Whether it takes sessions.
    #[serde(default)]
    pub session: bool,
    /// Whether it serves clients.
    #[serde(default)]
    pub edge: bool,
    /// Whether it is leaving, or not ready yet: nothing new is placed there.
    #[serde(default)]
    pub draining: bool,
    /// Whether it drains because it has just started and has yet to learn what there is.
    #[serde(default)]
    pub starting: bool,
    /// The names of the pools whose tools it knows.
    #[serde(default)]
    pub pools: Vec<String>,
    /// Sessions that it holds.
    #[serde(default)]
    pub sessions: u64,
    /// Requests in flight.
    #[serde(default)]
    pub in_flight: u64,
    /// The release that it runs, for people.
    #[serde(default)]
    pub version: String,
}
