use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use shoal_ports::{OwnLists, ResourceUpdated};
use shoal_protocol::RawJson;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, sleep};

use super::WorkerRuntime;
use super::config::PoolConfig;
use super::form::Form;
use crate::backend::Backend;

const LOOK: Duration = Duration::from_millis(100);

impl WorkerRuntime {
    /// Switches to new limits, and to `backend` if given. Accepted calls finish with the former
    /// backend. Legacy sessions keep their processes or connections there until the sessions end,
    /// for at most `sessions`. Then the former backend shuts down.
    ///
    /// A draining worker shuts the new backend down instead.
    pub async fn change(
        self: &Arc<Self>,
        config: PoolConfig,
        backend: Option<Arc<dyn Backend>>,
        sessions: Duration,
    ) {
        let before = Arc::clone(self.forms.read().current());
        let is_new = backend.is_some();
        let backend = backend.unwrap_or_else(|| Arc::clone(&before.backend));
        let form = Form::start(config, backend).await;
        let former = {
            let mut forms = self.forms.write();
            (!self.is_draining()).then(|| forms.replace(Arc::clone(&form)))
        };
        let Some(former) = former else {
            if is_new {
                form.backend.shutdown().await;
            }
            return;
        };
        self.ledger.limit(&form.config);
        self.announce(&form);
        self.follow_form(&form);
        if is_new {
            tokio::spawn(subscribe_again(Arc::downgrade(self), form));
        }
        let until = Instant::now() + sessions;
        tokio::spawn(end_former(Arc::downgrade(self), former, until));
    }

    pub(super) fn follow_form(self: &Arc<Self>, form: &Arc<Form>) {
        let (runtime, form) = (Arc::downgrade(self), Arc::downgrade(form));
        if let Some(form) = form.upgrade() {
            let updates = form.backend.resource_updates();
            tokio::spawn(pass_updates_on(Weak::clone(&runtime), updates));
            let own_lists = form.backend.own_lists();
            tokio::spawn(pass_own_lists_on(Weak::clone(&runtime), own_lists));
        }
        tokio::spawn(follow_state(runtime, form));
    }

    fn tell_of(&self, uris: impl IntoIterator<Item = String>) {
        for uri in uris {
            let params = RawJson::of(&serde_json::json!({ "uri": uri }));
            let _ = self.updates.send(ResourceUpdated { uri, params });
        }
    }

    fn subscribed(&self) -> Vec<String> {
        self.subscribed.lock().iter().cloned().collect()
    }
}

async fn follow_state(runtime: Weak<WorkerRuntime>, form: Weak<Form>) {
    let Some(mut state) = form.upgrade().map(|form| form.state.clone()) else {
        return;
    };
    while state.changed().await.is_ok() {
        let (Some(runtime), Some(form)) = (runtime.upgrade(), form.upgrade()) else {
            return;
        };
        runtime.announce(&form);
    }
}

/// After a lag, reports all watched resources as changed.
async fn pass_updates_on(
    runtime: Weak<WorkerRuntime>,
    mut updates: broadcast::Receiver<ResourceUpdated>,
) {
    loop {
        let said = updates.recv().await;
        let Some(runtime) = runtime.upgrade() else {
            return;
        };
        match said {
            Ok(event) => {
                let _ = runtime.updates.send(event);
            }
            Err(broadcast::error::RecvError::Lagged(_)) => runtime.tell_of(runtime.subscribed()),
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

async fn pass_own_lists_on(runtime: Weak<WorkerRuntime>, mut changes: watch::Receiver<OwnLists>) {
    loop {
        let goes_on = changes.changed().await.is_ok();
        let Some(runtime) = runtime.upgrade() else {
            return;
        };
        // Reads the lists while `own_lists` is locked, so that the newest lists are announced last.
        runtime.own_lists.send_if_modified(|told| {
            let backends = runtime.forms.read().backends();
            let mut all = BTreeMap::new();
            for backend in backends {
                let own = backend.own_lists();
                all.extend(own.borrow().iter().map(|(owner, it)| (owner.clone(), *it)));
            }
            let changed = **told != all;
            if changed {
                *told = Arc::new(all);
            }
            changed
        });
        if !goes_on {
            return;
        }
    }
}

/// Subscribes to the watched resources at a new form. Reports each as changed, because its contents
/// may differ.
async fn subscribe_again(runtime: Weak<WorkerRuntime>, form: Arc<Form>) {
    let Some(uris) = runtime.upgrade().map(|runtime| runtime.subscribed()) else {
        return;
    };
    for uri in &uris {
        if let Err(error) = form.backend.subscribe(uri).await {
            let pool = &form.config.pool;
            tracing::warn!(%pool, uri, %error, "the pool's new form refused a subscription");
        }
    }
    if let Some(runtime) = runtime.upgrade() {
        runtime.tell_of(uris);
    }
}

async fn end_former(runtime: Weak<WorkerRuntime>, form: Arc<Form>, until: Instant) {
    let keeps_sessions = || {
        let runtime = runtime.upgrade();
        runtime.is_some_and(|runtime| runtime.forms.read().keeps_sessions(&form))
    };
    while keeps_sessions() && Instant::now() < until && !form.over.is_cancelled() {
        sleep(LOOK).await;
    }
    if let Some(runtime) = runtime.upgrade() {
        runtime.forms.write().close(&form);
    }
    form.drain().await;
    while !form.over.is_cancelled() {
        if runtime.strong_count() == 0 {
            form.pool.stop();
        }
        sleep(LOOK).await;
    }
    let (pool, calls) = (&form.config.pool, form.calls());
    let is_last = runtime
        .upgrade()
        .is_none_or(|runtime| runtime.forms.write().forget(&form));
    tracing::info!(%pool, calls, "a former form of a pool has ended");
    if is_last {
        form.backend.shutdown().await;
    }
}
