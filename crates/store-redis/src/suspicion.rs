use std::sync::Arc;

use tokio::sync::Notify;

/// Asks to check the command connection, because another connection to the server has ended.
#[derive(Clone, Default)]
pub(crate) struct Suspicion(pub(crate) Arc<Notify>);

impl Suspicion {
    pub(crate) fn raise(&self) {
        self.0.notify_one();
    }
}
