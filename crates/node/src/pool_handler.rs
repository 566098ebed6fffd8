use std::sync::Arc;

use futures::future::BoxFuture;
use shoal_worker::Backend;

/// A server that a program embeds, and its pool.
pub struct PoolHandler {
    /// The name of the pool, whose backend is [`Backend::Handler`](crate::config::Backend::Handler).
    pub pool: String,
    /// Starts the server, inside the runtime, only if this process runs the pool.
    pub start: StartHandler,
}

/// A function that starts a server.
pub type StartHandler =
    Box<dyn FnOnce() -> BoxFuture<'static, anyhow::Result<Arc<dyn Backend>>> + Send>;
