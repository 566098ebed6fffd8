//! What a worker runs calls with: a backend, limits, and actors. A pool that was changed has another form than before, and
//! those that it had go on with what they have begun.

use std::sync::Arc;

use shoal_ports::{SessionId, WorkerLoad};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::admission::Admission;
use super::config::PoolConfig;
use super::pool::Pool;
use crate::backend::{Backend, BackendState};

/// One form of a worker.
pub(super) struct Form {
    pub(super) config: PoolConfig,
    pub(super) backend: Arc<dyn Backend>,
    pub(super) state: watch::Receiver<BackendState>,
    pub(super) admission: Arc<Admission>,
    pub(super) pool: Pool,
    /// Its actors have ended, and with them its calls.
    pub(super) over: CancellationToken,
    /// Those that are about to bring it a call.
    entering: TaskTracker,
}

impl Form {
    pub(super) async fn start(config: PoolConfig, backend: Arc<dyn Backend>) -> Arc<Self> {
        let admission = Admission::new(&config);
        let (pool, stopped) =
            Pool::start(&config, Arc::clone(&backend), Arc::clone(&admission)).await;
        let over = CancellationToken::new();
        let ended = over.clone();
        tokio::spawn(async move {
            // Whichever way they ended.
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

    /// Calls that it has: running, waiting, or asking their clients.
    pub(super) fn calls(&self) -> usize {
        let load = self.admission.load();
        load.running + load.queued + self.admission.asking()
    }

    /// Takes no more calls, once those that are about to come have come. Nobody new may enter it any more.
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
        // Actors outlive their handles. One that was drained has stopped already.
        self.pool.stop();
    }
}

/// A form that a call is brought to. It takes the call, whatever changes meanwhile.
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

/// The forms of a worker.
pub(super) struct Forms {
    current: Arc<Form>,
    /// The oldest first.
    former: Vec<FormerForm>,
    /// Restarts of backends that are no more.
    restarts: u64,
}

struct FormerForm {
    form: Arc<Form>,
    /// Whether sessions that have something of their own there go on with that.
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

    /// All of them, the current one last.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Form>> {
        let former = self.former.iter().map(|former| &former.form);
        former.chain([&self.current])
    }

    /// The form for a call of this session.
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

    /// Puts `next` in place of the current form, which is returned.
    pub(super) fn replace(&mut self, next: Arc<Form>) -> Arc<Form> {
        let former = std::mem::replace(&mut self.current, next);
        self.former.push(FormerForm {
            // With the same backend its sessions go on anyway.
            keeps_sessions: !former.is_backend_of(&self.current),
            form: Arc::clone(&former),
        });
        former
    }

    /// Whether sessions still have something of their own at a former form, and calls go there for it.
    pub(super) fn keeps_sessions(&self, form: &Arc<Form>) -> bool {
        let mut former = self.former.iter();
        former.any(|former| {
            let keeps = former.keeps_sessions && former.form.backend.sessions() > 0;
            Arc::ptr_eq(&former.form, form) && keeps
        })
    }

    /// From now on nobody enters a former form.
    pub(super) fn close(&mut self, form: &Arc<Form>) {
        for former in &mut self.former {
            if Arc::ptr_eq(&former.form, form) {
                former.keeps_sessions = false;
            }
        }
    }

    /// Forgets a former form; whether nobody else has its backend.
    pub(super) fn forget(&mut self, form: &Arc<Form>) -> bool {
        self.former
            .retain(|former| !Arc::ptr_eq(&former.form, form));
        let is_last = !self.all().any(|other| other.is_backend_of(form));
        if is_last {
            self.restarts += form.backend.restarts();
        }
        is_last
    }

    /// How busy the worker is. What former forms run counts too; how much can run is up to the current one.
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

    /// The backends, each once.
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

    /// How often what runs the tools was started anew.
    pub(super) fn restarts(&self) -> u64 {
        let backends = self.backends();
        let running: u64 = backends.iter().map(|backend| backend.restarts()).sum();
        self.restarts + running
    }
}
