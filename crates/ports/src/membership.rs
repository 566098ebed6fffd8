//! The seam through which nodes find one another.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;

use crate::{NodeId, StoreError};

/// Stores the cluster's nodes, pools and settled tool names.
#[async_trait]
pub trait Membership: Send + Sync + 'static {
    /// Announces a node for `life`. The node repeats this within that time.
    async fn announce(&self, node: &NodeInfo, life: Duration) -> Result<(), StoreError>;

    /// Removes a node's announcement at once.
    async fn withdraw(&self, node: &NodeId) -> Result<(), StoreError>;

    /// Returns the announced nodes of the cluster.
    async fn nodes(&self) -> Result<Vec<NodeInfo>, StoreError>;

    /// Stores the names of the pools for `life`, in place of earlier ones, for a node that starts alone.
    async fn remember_pools(&self, pools: &[String], life: Duration) -> Result<(), StoreError>;

    /// Returns the stored names of the pools.
    async fn remembered_pools(&self) -> Result<Vec<String>, StoreError>;

    /// Stores a pool's catalog for `life`, in place of an earlier one, for a node that starts while the pool has no
    /// worker.
    async fn remember_catalog(
        &self,
        pool: &str,
        catalog: &[u8],
        life: Duration,
    ) -> Result<(), StoreError>;

    /// Extends the life of a stored catalog to `life`, or stores `catalog` if there is none.
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

    /// Agrees with the other nodes which pool gets each name that several pools claim. `contested` holds the names with
    /// this node's choices. A name that is settled stays with its pool if that is one of `pools`. For other names,
    /// `contested` decides. Returns the result and stores it for `life`.
    async fn settle_names(
        &self,
        contested: &BTreeMap<String, String>,
        pools: &[String],
        life: Duration,
    ) -> Result<BTreeMap<String, String>, StoreError>;

    /// Returns the settled names and their pools.
    async fn settled_names(&self) -> Result<BTreeMap<String, String>, StoreError>;
}

/// A node's announcement. For mixed releases, members have defaults and unknown ones are ignored.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NodeInfo {
    /// The node's id, unique to its process.
    pub id: NodeId,
    /// The address of the cluster listener, `host:port`.
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
    /// Whether the node gets no new work because it is still starting.
    #[serde(default)]
    pub starting: bool,
    /// The pools whose tools the node knows.
    #[serde(default)]
    pub pools: Vec<String>,
    /// Number of sessions.
    #[serde(default)]
    pub sessions: u64,
    /// Requests in flight.
    #[serde(default)]
    pub in_flight: u64,
    /// The node's release, for people to read.
    #[serde(default)]
    pub version: String,
}
