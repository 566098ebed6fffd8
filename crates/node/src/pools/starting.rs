use std::sync::Arc;

use futures::future::{join_all, select_all};
use shoal_worker::Backend;
use tokio_util::sync::CancellationToken;

use crate::config::Pool;

#[derive(Clone)]
pub(super) struct StartingForm(Arc<StartingParts>);

struct StartingParts {
    settings: Pool,
    backends: Vec<Arc<dyn Backend>>,
    given_up: CancellationToken,
}

impl StartingForm {
    pub(super) fn new(settings: Pool, backends: Vec<Arc<dyn Backend>>) -> Self {
        Self(Arc::new(StartingParts {
            settings,
            backends,
            given_up: CancellationToken::new(),
        }))
    }

    pub(super) fn settings(&self) -> &Pool {
        &self.0.settings
    }

    pub(super) fn ready_first(&self) -> Vec<Arc<dyn Backend>> {
        let mut backends = self.0.backends.clone();
        backends.sort_by_cached_key(|backend| backend.state().borrow().catalog.is_none());
        backends
    }

    /// Waits until the form can run calls. One of several equal servers is enough. Cancel safe.
    pub(super) async fn ready(&self) {
        let ready = self.0.backends.iter().map(|backend| {
            let mut state = backend.state();
            Box::pin(async move {
                if state.wait_for(|it| it.catalog.is_some()).await.is_err() {
                    std::future::pending::<()>().await;
                }
            })
        });
        select_all(ready).await;
    }

    pub(super) fn detail(&self) -> String {
        let states = self.0.backends.iter().map(|backend| backend.state());
        let mut details = states.filter_map(|state| state.borrow().detail.clone());
        details
            .next()
            .unwrap_or_else(|| "it is starting".to_owned())
    }

    pub(super) fn give_up(&self) {
        self.0.given_up.cancel();
    }

    pub(super) fn is_given_up(&self) -> bool {
        self.0.given_up.is_cancelled()
    }

    pub(super) async fn given_up(&self) {
        self.0.given_up.cancelled().await;
    }

    pub(super) async fn end(&self) {
        join_all(self.0.backends.iter().map(|backend| backend.shutdown())).await;
    }
}
