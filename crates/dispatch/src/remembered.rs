//! Catalogs of pools at zero, for nodes that start.

use std::sync::Arc;

use shoal_ports::PoolCatalog;

/// The catalog of a pool that may scale to zero.
#[derive(Clone, Debug)]
pub struct Memorable {
    /// The pool.
    pub pool: Arc<str>,
    /// The pool's tools, prompts and resources.
    pub catalog: Arc<PoolCatalog>,
    /// Whether the catalog replaces the one in the store, because this node learnt it from a worker. False if the node
    /// [recalled](crate::Dispatch::recall) it and no worker has announced a different one since: then other nodes may know a newer catalog.
    pub replaces: bool,
}
