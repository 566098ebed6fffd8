use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;

use crate::{NodeId, StoreError};

/// Stores the cluster's nodes, pools and settled tool names.
#[async_trait]
pub trait Membership: Send + Sync + 'static {
    /// Announces a node for `life`. The node renews the announcement.
    async fn announce(&self, node: &NodeInfo, life: Duration) -> Result<(), StoreError>;

    /// Removes a node's announcement.
    async fn withdraw(&self, node: &NodeId) -> Result<(), StoreError>;

    /// Returns the announced nodes.
    async fn nodes(&self) -> Result<Vec<NodeInfo>, StoreError>;

    /// Replaces the stored pool names for `life`, for a node that starts alone.
    async fn remember_pools(&self, pools: &[String], life: Duration) -> Result<(), StoreError>;

    /// Returns the stored pool names.
    async fn remembered_pools(&self) -> Result<Vec<String>, StoreError>;

    /// Replaces a pool's stored catalog for `life`, for a node that starts while the pool has no
    /// worker.
    async fn remember_catalog(
        &self,
        pool: &str,
        catalog: &[u8],
        life: Duration,
    ) -> Result<(), StoreError>;

    /// Extends a stored catalog's life, or stores `catalog` if there is none.
    async fn keep_catalog(
        &self,
        pool: &str,
        catalog: &[u8],
        life: Duration,
    ) -> Result<(), StoreError>;

    /// Removes a pool's stored catalog.
    async fn forget_catalog(&self, pool: &str) -> Result<(), StoreError>;

    /// Returns a pool's stored catalog.
    async fn remembered_catalog(&self, pool: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Agrees with other nodes on the pool of each name that several pools claim. A settled name
    /// stays with its pool if `pools` has that pool; otherwise this node's choice in `contested`
    /// decides. Returns the result and stores it for `life`.
    async fn settle_names(
        &self,
        contested: &BTreeMap<String, String>,
        pools: &[String],
        life: Duration,
    ) -> Result<BTreeMap<String, String>, StoreError>;

    /// Returns the settled names and their pools.
    async fn settled_names(&self) -> Result<BTreeMap<String, String>, StoreError>;
}

/// A node's announcement. For mixed releases, new members have defaults, and nodes ignore unknown
/// members.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NodeInfo {
    /// The node's id, unique to its process.
    pub id: NodeId,
    /// The cluster listener's `host:port`.
    pub address: String,
    /// Whether the node accepts sessions.
    #[serde(default)]
    pub session: bool,
    /// Whether the node serves clients.
    #[serde(default)]
    pub edge: bool,
    /// Whether the node gets no new work.
    #[serde(default)]
    pub draining: bool,
    /// Whether the node is still starting.
    #[serde(default)]
    pub starting: bool,
    /// The pools that the node knows.
    #[serde(default)]
    pub pools: Vec<String>,
    /// Number of sessions.
    #[serde(default)]
    pub sessions: u64,
    /// Requests in flight.
    #[serde(default)]
    pub in_flight: u64,
    /// The release, for people to read.
    #[serde(default)]
    pub version: String,
}
