//! What a pool that may have no worker offers, for nodes that start while it has none.

use std::sync::Arc;

use shoal_ports::PoolCatalog;

/// The catalog of a pool that may scale to zero.
#[derive(Clone, Debug)]
pub struct Memorable {
    /// The pool.
    pub pool: Arc<str>,
    /// What it offers.
    pub catalog: Arc<PoolCatalog>,
    /// Whether a worker has said it to this node. If not, the node was [told](crate::Dispatch::recall) it itself, and others may know
    /// something newer.
    pub is_news: bool,
}
