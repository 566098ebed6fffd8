//! A session whose client cannot resume it.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use shoal_ports::{SessionGateway, SessionId, SessionRef};

use crate::state::EdgeState;

const LAST_WORDS: Duration = Duration::from_secs(1);

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

    pub(crate) fn id(&self) -> &SessionId {
        &self.session.session
    }

    /// The caller must still read the session's stream, so that running calls report their end.
    pub(crate) fn end(&self) -> BoxFuture<'static, ()> {
        let (gateway, session) = (Arc::clone(&self.gateway), self.session.clone());
        async move {
            match gateway.close(&session).await {
                Ok(()) => tokio::time::sleep(LAST_WORDS).await,
                Err(error) => tracing::debug!(%error, "could not end a session before its stream"),
            }
        }
        .boxed()
    }
}

impl Drop for OpenedSession {
    fn drop(&mut self) {
        // Without a runtime the process is ending.
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
