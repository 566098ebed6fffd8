//! Starts the pools of this process, and changes them while it runs. A pool's form is its backend and the settings of
//! its offer. A changed pool switches to its new form once that is ready. Until then, and for calls that have begun,
//! its workers use the old form. The workers stay the same, so linked nodes see only a new list.

mod starting;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use anyhow::Context as _;
use parking_lot::Mutex;
use shoal_cluster::{JoinedWorker, WorkerJoins};
use shoal_dispatch::Dispatch;
use shoal_outbound::Outbound;
use shoal_ports::{Announcement, NodeId, Worker, WorkerId};
use shoal_rpc::{JoiningWorker, PresencePorts};
use shoal_worker::{Backend, WorkerRuntime};
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use self::starting::StartingForm;
use crate::config::changes::{changed_pools, pool_change};
use crate::config::{Pool, Role, Settings};
use crate::pool_handler::PoolHandler;
use crate::roles;

/// Time limit for closing an idle worker's links.
const GOODBYE: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(crate) struct Pools(Arc<PoolsInner>);

struct PoolsInner {
    node: NodeId,
    /// Other processes only know what the pools offer.
    run_here: bool,
    /// Allowed targets of backends' requests.
    outbound: Outbound,
    rejoin: Duration,
    presence: PresencePorts,
    dispatch: Dispatch,
    joins: OnceLock<Weak<WorkerJoins>>,
    state: Mutex<PoolsState>,
    /// Held during every change. Contains the embedded server until a pool takes it.
    turn: tokio::sync::Mutex<Option<PoolHandler>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

#[derive(Default)]
struct PoolsState {
    /// Pools of the configuration.
    wanted: BTreeMap<String, Pool>,
    running: BTreeMap<String, RunningPool>,
    starting: BTreeMap<String, StartingForm>,
    /// Workers that finish their last calls.
    leaving: Vec<Arc<WorkerRuntime>>,
    /// Numbers make the workers' names unique.
    named: HashMap<String, usize>,
}

struct RunningPool {
    settings: Pool,
    workers: Vec<PoolWorker>,
}

#[derive(Clone)]
struct PoolWorker {
    runtime: Arc<WorkerRuntime>,
    joined: Option<JoinedWorker>,
}

impl Pools {
    /// Starts the pools, and adds them to `dispatch`.
    ///
    /// # Errors
    ///
    /// If a backend cannot be created.
    pub(crate) async fn start(
        settings: &Settings,
        node: &NodeId,
        dispatch: Dispatch,
        mut handler: Option<PoolHandler>,
    ) -> anyhow::Result<Self> {
        let run_here = settings.node.is(Role::Worker);
        let outbound = Outbound::new(&settings.outbound).map_err(anyhow::Error::msg)?;
        let mut made = Vec::new();
        for (name, pool) in settings.pools.iter().filter(|_| run_here) {
            let own = handler.take_if(|handler| handler.pool == *name);
            made.push((
                name.clone(),
                pool.clone(),
                backends(name, pool, own, &outbound).await?,
            ));
        }
        let pools = Self(Arc::new(PoolsInner {
            node: node.clone(),
            run_here,
            outbound,
            rejoin: settings.cluster.rejoin.get(),
            presence: PresencePorts::new(settings.cluster.presence_port),
            dispatch,
            joins: OnceLock::new(),
            state: Mutex::new(PoolsState {
                wanted: settings.pools.clone(),
                ..PoolsState::default()
            }),
            turn: tokio::sync::Mutex::new(handler),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }));
        for (name, settings, backends) in made {
            let mut workers = Vec::with_capacity(backends.len());
            for backend in backends {
                workers.push(pools.new_worker(&name, &settings, backend).await);
            }
            let running = RunningPool { settings, workers };
            pools.0.state.lock().running.insert(name, running);
        }
        Ok(pools)
    }

    /// Includes future workers.
    pub(crate) fn join(&self, joins: &Arc<WorkerJoins>) {
        // A node calls this once.
        let _ = self.0.joins.set(Arc::downgrade(joins));
        for pool in self.0.state.lock().running.values_mut() {
            for worker in &mut pool.workers {
                worker.joined = Some(joins.add(joining(&worker.runtime, &self.0.presence)));
            }
        }
    }

    fn joins(&self) -> Option<Arc<WorkerJoins>> {
        self.0.joins.get().and_then(Weak::upgrade)
    }

    /// Returns a guard whose drop ends changes in progress, like [`stop`](Self::stop).
    pub(crate) fn stop_with(&self) -> DropGuard {
        self.0.stop.clone().drop_guard()
    }

    /// Includes leaving workers.
    pub(crate) fn workers(&self) -> Vec<Arc<WorkerRuntime>> {
        let state = self.0.state.lock();
        let running = state.running.values().flat_map(|pool| &pool.workers);
        let running = running.map(|worker| &worker.runtime);
        running.chain(&state.leaving).cloned().collect()
    }

    pub(crate) fn wants_only(&self, these: &BTreeSet<String>) -> bool {
        let state = self.0.state.lock();
        state.wanted.keys().all(|name| these.contains(name))
    }

    /// Returns pools whose new form is not ready, with the reason.
    pub(crate) fn waiting(&self) -> Vec<String> {
        let state = self.0.state.lock();
        let waiting = state.starting.iter();
        waiting
            .map(|(name, form)| format!("pool {name}: {}", form.detail()))
            .collect()
    }

    /// Changes the pools to `wanted`. Returns the changed pools. New forms continue to start after the return, and
    /// sessions keep their old servers for up to `sessions`.
    ///
    /// `put_in_force` applies the quotas and policy rules of the same configuration. `apply` calls it once nothing can
    /// fail any more: after removed pools have stopped taking calls, and before the other pools change.
    ///
    /// # Errors
    ///
    /// If a backend cannot be created. Then no pool has changed, and `put_in_force` was not called.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, some pools may have changed.
    pub(crate) async fn apply(
        &self,
        wanted: &BTreeMap<String, Pool>,
        sessions: Duration,
        put_in_force: impl FnOnce(),
    ) -> anyhow::Result<Vec<String>> {
        let mut turn = self.0.turn.lock().await;
        let now = self.0.state.lock().wanted.clone();
        let changed: Vec<String> = changed_pools(&now, wanted)
            .into_iter()
            .map(str::to_owned)
            .collect();
        let mut made = match self.0.run_here {
            true => self.make(&changed, wanted, &mut turn).await?,
            false => BTreeMap::new(),
        };
        for name in changed.iter().filter(|name| !wanted.contains_key(*name)) {
            self.configure(name, None);
        }
        put_in_force();
        if !self.0.run_here {
            let offers = changed.iter().map(|name| {
                let settings = wanted.get(name).map(|pool| pool.offer.clone());
                (name.clone(), settings)
            });
            self.0.dispatch.configure(offers.collect());
            self.0.state.lock().wanted = wanted.clone();
            return Ok(changed);
        }
        for name in &changed {
            if let Some(superseded) = self.0.state.lock().starting.remove(name) {
                superseded.give_up();
            }
            match wanted.get(name) {
                None => self.remove(name),
                Some(pool) => match made.remove(name) {
                    Some(backends) => {
                        let form = StartingForm::new(pool.clone(), backends);
                        self.begin(name, form, sessions);
                    }
                    None => self.adjust(name, pool, sessions).await,
                },
            }
        }
        self.0.state.lock().wanted = wanted.clone();
        Ok(changed)
    }

    async fn make(
        &self,
        changed: &[String],
        wanted: &BTreeMap<String, Pool>,
        handler: &mut Option<PoolHandler>,
    ) -> anyhow::Result<BTreeMap<String, Vec<Arc<dyn Backend>>>> {
        let needs = |name: &&String| {
            let Some(next) = wanted.get(*name) else {
                return false;
            };
            let state = self.0.state.lock();
            let running = state.running.get(*name);
            running.is_none_or(|running| {
                pool_change(&running.settings, next).is_some_and(|change| change.backend)
            })
        };
        let mut needed: Vec<&String> = changed.iter().filter(needs).collect();
        // The program's own server can be started only once, so start it last, when no other backend can fail.
        needed.sort_by_key(|name| wanted[*name].backend.is_handler());
        let mut made = BTreeMap::new();
        for name in needed {
            let own = handler.take_if(|handler| handler.pool == *name);
            match backends(name, &wanted[name], own, &self.0.outbound).await {
                Ok(backends) => {
                    made.insert(name.clone(), backends);
                }
                Err(error) => {
                    let made = made.into_values().flatten();
                    futures::future::join_all(made.map(async |it: Arc<dyn Backend>| {
                        it.shutdown().await;
                    }))
                    .await;
                    return Err(error);
                }
            }
        }
        Ok(made)
    }

    /// The backend stays.
    async fn adjust(&self, name: &str, settings: &Pool, sessions: Duration) {
        let (change, workers) = {
            let mut state = self.0.state.lock();
            let Some(running) = state.running.get_mut(name) else {
                return;
            };
            let change = pool_change(&running.settings, settings);
            running.settings = settings.clone();
            (change, running.workers.clone())
        };
        let Some(change) = change else {
            return;
        };
        tracing::info!(pool = name, "a pool is changed, and its server goes on");
        if change.offer {
            self.configure(name, Some(settings));
        }
        if change.limits {
            for worker in workers {
                let config = settings.to_worker(name, self.0.rejoin);
                worker.runtime.change(config, None, sessions).await;
            }
        }
    }

    fn begin(&self, name: &str, form: StartingForm, sessions: Duration) {
        tracing::info!(pool = name, "a pool's new form is starting");
        let (pools, owned) = (self.clone(), name.to_owned());
        let waiting = form.clone();
        let mut state = self.0.state.lock();
        state.starting.insert(name.to_owned(), form);
        self.0.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = pools.0.stop.cancelled() => {}
                () = waiting.given_up() => {}
                () = waiting.ready() => {
                    let _turn = pools.0.turn.lock().await;
                    // The configuration may have replaced this form by another one, or the process may be stopping.
                    if !pools.0.stop.is_cancelled() && !waiting.is_given_up() {
                        pools.take_over(&owned, &waiting, sessions).await;
                        return;
                    }
                }
            }
            waiting.end().await;
        });
    }

    async fn take_over(&self, name: &str, form: &StartingForm, sessions: Duration) {
        let running = {
            let mut state = self.0.state.lock();
            state.starting.remove(name);
            let running = state.running.get(name);
            running.map(|running| running.workers.clone())
        };
        let settings = form.settings();
        // The dispatcher gets the settings first, so that new filters hide the new server's tools from the beginning.
        self.configure(name, Some(settings));
        let mut former = running.into_iter().flatten();
        let mut workers = Vec::new();
        // A worker refuses calls once it has a backend that is still starting, so the former workers get the ready
        // backends.
        for backend in form.ready_first() {
            let worker = match former.next() {
                Some(worker) => {
                    let config = settings.to_worker(name, self.0.rejoin);
                    (worker.runtime)
                        .change(config, Some(backend), sessions)
                        .await;
                    worker
                }
                None => self.new_worker(name, settings, backend).await,
            };
            workers.push(worker);
        }
        for surplus in former {
            self.let_go(surplus, Announcement::LEAVING);
        }
        let running = RunningPool {
            settings: settings.clone(),
            workers,
        };
        self.0.state.lock().running.insert(name.to_owned(), running);
        tracing::info!(pool = name, "a pool's new form has taken over");
    }

    fn remove(&self, name: &str) {
        self.configure(name, None);
        let running = self.0.state.lock().running.remove(name);
        let workers = running.map(|running| running.workers);
        for worker in workers.into_iter().flatten() {
            self.let_go(worker, Announcement::REMOVED);
        }
        tracing::info!(pool = name, "a pool is removed; the calls that it runs end");
    }

    fn configure(&self, name: &str, settings: Option<&Pool>) {
        let settings = settings.map(|pool| pool.offer.clone());
        let change = BTreeMap::from([(name.to_owned(), settings)]);
        self.0.dispatch.configure(change);
    }

    async fn new_worker(
        &self,
        name: &str,
        settings: &Pool,
        backend: Arc<dyn Backend>,
    ) -> PoolWorker {
        let number = {
            let mut state = self.0.state.lock();
            let named = state.named.entry(name.to_owned()).or_default();
            *named += 1;
            *named - 1
        };
        let node = &self.0.node;
        let id = match number {
            0 => WorkerId::new(format!("{name}@{node}")),
            number => WorkerId::new(format!("{name}.{number}@{node}")),
        };
        let config = settings.to_worker(name, self.0.rejoin);
        let runtime = WorkerRuntime::start(id, config, backend).await;
        self.0.dispatch.add_worker(runtime.clone());
        let joins = self.joins();
        PoolWorker {
            joined: joins.map(|joins| joins.add(joining(&runtime, &self.0.presence))),
            runtime,
        }
    }

    /// The worker finishes its calls. If the process ends before that, the worker ends with the others.
    fn let_go(&self, worker: PoolWorker, why: &'static str) {
        let PoolWorker { runtime, joined } = worker;
        self.0.state.lock().leaving.push(runtime.clone());
        runtime.withdraw(why);
        let pools = self.clone();
        self.0.tasks.spawn(async move {
            let inner = &pools.0;
            tokio::select! {
                biased;
                () = inner.stop.cancelled() => return,
                () = runtime.leave(why) => {}
            }
            if let (Some(joins), Some(joined)) = (pools.joins(), &joined) {
                joins.remove(joined, Instant::now() + GOODBYE).await;
            }
            let id = runtime.announcement().borrow().worker.clone();
            inner.dispatch.remove_worker(&id);
            runtime.shutdown(Instant::now()).await;
            let mut state = inner.state.lock();
            (state.leaving).retain(|leaving| !Arc::ptr_eq(leaving, &runtime));
        });
    }

    /// Workers continue.
    pub(crate) async fn stop(&self, limit: Duration) {
        self.0.stop.cancel();
        self.0.tasks.close();
        if timeout(limit, self.0.tasks.wait()).await.is_err() {
            tracing::warn!("some pools that were being changed did not stop in time");
        }
    }
}

async fn backends(
    name: &str,
    pool: &Pool,
    handler: Option<PoolHandler>,
    outbound: &Outbound,
) -> anyhow::Result<Vec<Arc<dyn Backend>>> {
    let made = roles::backends(pool, handler, outbound).await;
    made.with_context(|| format!("cannot make the backend of the pool {name}"))
}

fn joining(worker: &Arc<WorkerRuntime>, presence: &PresencePorts) -> JoiningWorker {
    JoiningWorker::with_presence(Arc::clone(worker) as Arc<dyn Worker>, presence.clone())
}
