use std::sync::Arc;

use shoal_ports::PoolCatalog;

/// The catalog of a pool that may scale to zero, for nodes that start.
#[derive(Clone, Debug)]
pub struct Memorable {
    /// The pool.
    pub pool: Arc<str>,
    /// The pool's tools, prompts and resources.
    pub catalog: Arc<PoolCatalog>,
    /// Whether the catalog replaces the stored one. False for a [recalled](crate::Dispatch::recall)
    /// catalog, because other nodes may know a newer one.
    pub replaces: bool,
}
