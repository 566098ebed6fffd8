//! A session whose client cannot come back to it.

use std::sync::Arc;

use shoal_ports::{SessionGateway, SessionRef};

use crate::state::EdgeState;

/// The end of a client's connection is the session's end.
pub(crate) struct OpenedSession {
    gateway: Arc<dyn SessionGateway>,
    session: SessionRef,
}

impl OpenedSession {
    pub(crate) fn new(edge: &EdgeState, session: SessionRef) -> Self {
        Self {
            gateway: Arc::clone(&edge.gateway),
            session,
        }
    }
}

impl Drop for OpenedSession {
    fn drop(&mut self) {
        // Without a runtime the process is ending, and the session expires by itself.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let gateway = Arc::clone(&self.gateway);
        let session = self.session.clone();
        runtime.spawn(async move {
            if let Err(error) = gateway.close(&session).await {
                tracing::debug!(%error, "could not close the session of a connection that has ended");
            }
        });
    }
}
