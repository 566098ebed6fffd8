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
    /// Whether this node learnt the catalog from a worker. `false` while the catalog is only
    /// [recalled](crate::Dispatch::recall), because other nodes may know a newer one.
    pub is_news: bool,
}
