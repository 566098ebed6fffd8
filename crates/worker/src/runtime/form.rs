//! A worker's form: the backend, limits and actors that run calls. A changed pool gets a new form;
//! the former one finishes its calls.

use std::sync::Arc;

use shoal_ports::{SessionId, WorkerLoad};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::admission::PoolAdmission;
use super::config::PoolConfig;
use super::pool::Pool;
use crate::backend::{Backend, BackendState};

pub(super) struct Form {
    pub(super) config: PoolConfig,
    pub(super) backend: Arc<dyn Backend>,
    pub(super) state: watch::Receiver<BackendState>,
    pub(super) admission: Arc<PoolAdmission>,
    pub(super) pool: Pool,
    pub(super) over: CancellationToken,
    entering: TaskTracker,
}

impl Form {
    pub(super) async fn start(config: PoolConfig, backend: Arc<dyn Backend>) -> Arc<Self> {
        let admission = PoolAdmission::new(&config);
        let (pool, stopped) =
            Pool::start(&config, Arc::clone(&backend), Arc::clone(&admission)).await;
        let over = CancellationToken::new();
        let ended = over.clone();
        tokio::spawn(async move {
            let _ = stopped.await;
            ended.cancel();
        });
        Arc::new(Self {
            state: backend.state(),
            config,
            backend,
            admission,
            pool,
            over,
            entering: TaskTracker::new(),
        })
    }

    pub(super) fn calls(&self) -> usize {
        let load = self.admission.load();
        load.running + load.queued + self.admission.asking()
    }

    /// Waits until all entered calls are in the pool, then drains it. Close the form first.
    pub(super) async fn drain(&self) {
        self.entering.close();
        self.entering.wait().await;
        self.pool.drain();
    }

    fn is_backend_of(&self, other: &Self) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.backend), Arc::as_ptr(&other.backend))
    }
}

impl Drop for Form {
    fn drop(&mut self) {
        // Dropping their handles does not end actors.
        self.pool.stop();
    }
}

/// The form that a call has entered. It accepts the call even if the worker switches forms
/// meanwhile.
pub(super) struct EnteredForm {
    form: Arc<Form>,
    _token: TaskTrackerToken,
}

impl std::ops::Deref for EnteredForm {
    type Target = Form;

    fn deref(&self) -> &Form {
        &self.form
    }
}

pub(super) struct Forms {
    current: Arc<Form>,
    former: Vec<FormerForm>,
    restarts: u64,
}

struct FormerForm {
    form: Arc<Form>,
    keeps_sessions: bool,
}

impl Forms {
    pub(super) fn new(current: Arc<Form>) -> Self {
        Self {
            current,
            former: Vec::new(),
            restarts: 0,
        }
    }

    pub(super) fn current(&self) -> &Arc<Form> {
        &self.current
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Form>> {
        let former = self.former.iter().map(|former| &former.form);
        former.chain([&self.current])
    }

    pub(super) fn enter(&self, session: Option<&SessionId>) -> EnteredForm {
        let keeping = session.and_then(|session| {
            let mut former = self.former.iter().rev();
            former.find(|former| former.keeps_sessions && former.form.backend.has_session(session))
        });
        let form = keeping.map_or(&self.current, |former| &former.form);
        EnteredForm {
            form: Arc::clone(form),
            _token: form.entering.token(),
        }
    }

    pub(super) fn replace(&mut self, next: Arc<Form>) -> Arc<Form> {
        let former = std::mem::replace(&mut self.current, next);
        self.former.push(FormerForm {
            keeps_sessions: !former.is_backend_of(&self.current),
            form: Arc::clone(&former),
        });
        former
    }

    pub(super) fn keeps_sessions(&self, form: &Arc<Form>) -> bool {
        let mut former = self.former.iter();
        former.any(|former| {
            let keeps = former.keeps_sessions && former.form.backend.sessions() > 0;
            Arc::ptr_eq(&former.form, form) && keeps
        })
    }

    pub(super) fn close(&mut self, form: &Arc<Form>) {
        for former in &mut self.former {
            if Arc::ptr_eq(&former.form, form) {
                former.keeps_sessions = false;
            }
        }
    }

    pub(super) fn forget(&mut self, form: &Arc<Form>) -> bool {
        self.former
            .retain(|former| !Arc::ptr_eq(&former.form, form));
        let is_last = !self.all().any(|other| other.is_backend_of(form));
        if is_last {
            self.restarts += form.backend.restarts();
        }
        is_last
    }

    pub(super) fn load(&self) -> WorkerLoad {
        let mut load = self.current.admission.load();
        for former in &self.former {
            let WorkerLoad {
                running, queued, ..
            } = former.form.admission.load();
            load.running += running;
            load.queued += queued;
        }
        load
    }

    pub(super) fn backends(&self) -> Vec<Arc<dyn Backend>> {
        let mut forms: Vec<&Arc<Form>> = Vec::new();
        for form in self.all() {
            if !forms.iter().any(|known| known.is_backend_of(form)) {
                forms.push(form);
            }
        }
        let backends = forms.into_iter().map(|form| Arc::clone(&form.backend));
        backends.collect()
    }

    pub(super) fn restarts(&self) -> u64 {
        let backends = self.backends();
        let running: u64 = backends.iter().map(|backend| backend.restarts()).sum();
        self.restarts + running
    }
}
