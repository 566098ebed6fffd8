mod lease;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use shoal_ports::{CallFailure, CallOutcome, FailureKey, ListOwner};
use shoal_protocol::Era;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

pub(super) use self::lease::ProcessLease;
use super::crashes::{Crashes, Occupants, ProcessAdmission};
use super::demand::Want;
use super::placement::{Plan, ProcessPlacement, SlotId, WaiterId};
use crate::CallContext;
use crate::backend::BackendPatience;
use crate::upstream::{
    ConnectionBinding, Launcher, Lead, ModernSide, Quarantine, RestartDelay, SHORT_PAUSE,
    ServerConnection, StartError,
};

const BUSY: &str = "all processes of the server are busy";
const SHORTEST_IDLE: Duration = Duration::from_millis(10);

pub(super) struct ProcessPool {
    launcher: Arc<Launcher>,
    opening: PoolOpening,
    state: Mutex<ProcessPoolState>,
    wanted: Notify,
}

pub(super) enum PoolOpening {
    BesideLead(ConnectionBinding),
    Modern(Arc<ModernSide>),
}

struct ProcessPoolState {
    placement: ProcessPlacement,
    processes: HashMap<SlotId, ServerProcess>,
    waiters: HashMap<WaiterId, Waiter>,
    crashes: Crashes,
    last_id: u64,
    down: Option<Down>,
    restart_delay: RestartDelay,
}

struct ServerProcess {
    connection: Arc<ServerConnection>,
    occupants: Occupants,
    is_followed: bool,
}

struct Waiter {
    granted: oneshot::Sender<ProcessLease>,
    key: FailureKey,
    apart: bool,
}

struct Down {
    reason: String,
    /// Whether calls are refused. They wait until a restart has failed, because most restarts are quick.
    stays: bool,
}

struct PlacementSteps {
    granted: Vec<(oneshot::Sender<ProcessLease>, ProcessLease)>,
    retired: Vec<Arc<ServerConnection>>,
    start: usize,
}

struct WaiterGuard<'a> {
    id: WaiterId,
    pool: &'a ProcessPool,
}

impl ProcessPool {
    pub(super) fn new(
        launcher: Arc<Launcher>,
        placement: ProcessPlacement,
        opening: PoolOpening,
    ) -> Self {
        let (placement, down) = match opening {
            PoolOpening::BesideLead(_) => (placement, Some(Down::stays("the server is starting"))),
            PoolOpening::Modern(_) => (placement.without_lead(), None),
        };
        let state = ProcessPoolState {
            placement,
            processes: HashMap::new(),
            waiters: HashMap::new(),
            last_id: 0,
            down,
            restart_delay: RestartDelay::of(&launcher.settings),
            crashes: Crashes::new(
                launcher.settings.restart_delay,
                launcher.settings.max_restart_delay,
            ),
        };
        Self {
            state: Mutex::new(state),
            wanted: Notify::new(),
            launcher,
            opening,
        }
    }

    /// Waits for a lease for a call of this key, within the call's maximum wait.
    ///
    /// # Errors
    /// Nothing was executed: there is no process, none became free, similar calls ended too many processes,
    /// or the call was cancelled.
    pub(super) async fn lease(
        self: &Arc<Self>,
        mut want: Want,
        key: FailureKey,
        context: &CallContext,
    ) -> Result<ProcessLease, CallFailure> {
        let admission = self.state.lock().crashes.admit(&key);
        let (apart, certain) = match admission {
            ProcessAdmission::Shared => (false, false),
            ProcessAdmission::Apart { certain } => (true, certain),
            ProcessAdmission::Later(pause, _) if pause <= SHORT_PAUSE => {
                let paused = async {
                    sleep(pause).await;
                    Ok(())
                };
                context.wait(BackendPatience::OfPool(BUSY), paused).await?;
                (true, true)
            }
            ProcessAdmission::Later(pause, ended) => {
                let reason =
                    format!("your calls like this one have ended the server {ended} times");
                return Err(CallFailure::overloaded(reason, pause));
            }
        };
        // An owner's processes are apart already.
        want.apart = (apart && want.owner.is_none()).then_some(key);
        want.may_share = !certain;
        let (sender, mut granted) = oneshot::channel();
        let id = {
            let mut state = self.state.lock();
            if let Some(reason) = state.unavailable() {
                return Err(CallFailure::NotExecuted { reason });
            }
            let id = WaiterId(state.next_id());
            let waiter = Waiter {
                granted: sender,
                key,
                apart,
            };
            state.placement.wait(id, want);
            state.waiters.insert(id, waiter);
            id
        };
        let _guard = WaiterGuard { id, pool: self };
        self.wanted.notify_one();
        self.proceed();
        if let Ok(lease) = granted.try_recv() {
            return Ok(lease);
        }
        let granted = async {
            tokio::select! {
                biased;
                granted = granted => granted.map_err(|_| {
                    let state = self.state.lock();
                    let down = state.down.as_ref().map(|down| &*down.reason);
                    CallFailure::not_executed(down.unwrap_or_default())
                }),
                () = context.cancelled().cancelled() => {
                    Err(CallFailure::not_executed("no process of the server became free in time"))
                }
            }
        };
        context.wait(BackendPatience::OfCall, granted).await
    }

    /// Returns a running process for Shoal's own requests. The successor of a retired lead gets them once it runs.
    pub(super) fn any(&self) -> Option<Arc<ServerConnection>> {
        let state = self.state.lock();
        let rank = |(id, _): &(&SlotId, _)| (state.placement.is_retiring(**id), **id);
        let first = state.processes.iter().min_by_key(rank);
        first.map(|(_, process)| process.connection.clone())
    }

    pub(super) fn is_of(&self, lease: &ProcessLease, owner: ListOwner) {
        let is_new = {
            let mut state = self.state.lock();
            let process = state.processes.get_mut(&lease.slot);
            process.is_some_and(|it| !std::mem::replace(&mut it.is_followed, true))
        };
        if is_new {
            self.launcher.own_lists.follow(&lease.process, owner);
        }
    }

    pub(super) fn ended(&self, lease: &ProcessLease, outcome: &CallOutcome) {
        if lease.apart && !matches!(outcome, CallOutcome::Failed(_)) {
            self.state.lock().crashes.succeeded_apart(&lease.key);
        }
    }

    /// Refuses further calls, and waits for the processes to end by the launcher's token.
    pub(super) async fn close(&self) {
        let processes: Vec<Arc<ServerConnection>> = {
            let mut state = self.state.lock();
            state.down = Some(Down::stays("the server is shutting down"));
            state.dismiss();
            let processes = state.processes.values();
            processes
                .map(|process| process.connection.clone())
                .collect()
        };
        let ended = processes.iter().map(|process| process.shutdown());
        futures::future::join_all(ended).await;
    }

    fn join(self: &Arc<Self>, process: &Arc<ServerConnection>, lead: bool) {
        let id = {
            let mut state = self.state.lock();
            let id = SlotId(state.next_id());
            let modern = process.link.greeting().era == Era::Modern;
            state.placement.join(id, lead, modern);
            let process = ServerProcess {
                connection: process.clone(),
                occupants: Occupants::default(),
                is_followed: false,
            };
            state.processes.insert(id, process);
            id
        };
        self.proceed();
        let (pool, over) = (self.clone(), process.over());
        tokio::spawn(async move {
            pool.attend(id, &over).await;
            pool.leave(id);
        });
    }

    async fn attend(self: &Arc<Self>, id: SlotId, over: &CancellationToken) {
        let longest = self.launcher.settings.session_idle.max(SHORTEST_IDLE);
        let mut wait = longest;
        while timeout(wait, over.cancelled()).await.is_err() {
            let left = self.state.lock().placement.give_up_idle(id, longest);
            wait = left.filter(|left| !left.is_zero()).unwrap_or(longest);
            if left == Some(Duration::ZERO) {
                self.proceed();
            }
        }
    }

    fn leave(self: &Arc<Self>, id: SlotId) {
        {
            let mut state = self.state.lock();
            state.remove(id);
            if state.unavailable().is_some() {
                state.dismiss();
            }
        }
        self.proceed();
    }

    fn proceed(self: &Arc<Self>) {
        let steps = {
            let mut state = self.state.lock();
            let plan = state.plan();
            state.prepare(plan, self)
        };
        for (waiter, lease) in steps.granted {
            // Dropping the lease of a waiter that gave up returns its process.
            drop(waiter.send(lease));
        }
        for process in steps.retired {
            process.retire();
        }
        for _ in 0..steps.start {
            tokio::spawn(self.clone().grow());
        }
    }

    async fn grow(self: Arc<Self>) {
        let began = Instant::now();
        let opened = match &self.opening {
            PoolOpening::BesideLead(binding) => self.launcher.launch(binding).await,
            PoolOpening::Modern(side) => side.open().await,
        };
        match opened {
            Ok(process) => {
                self.state.lock().placement.started();
                self.join(&process, false);
            }
            Err(error) => {
                let stderr = self.launcher.stderr();
                tracing::warn!(target: "shoal::stdio", %error, stderr, "another server process could not be started");
                let pause = self.state.lock().not_started(began, &error, &self.opening);
                sleep(pause).await;
                self.state.lock().may_start(&self.opening);
                self.proceed();
            }
        }
    }
}

impl Lead for Arc<ProcessPool> {
    fn joins(&self, process: &Arc<ServerConnection>) {
        self.state.lock().down = None;
        self.join(process, true);
    }

    /// Fails calls if there is no other process and a restart has failed or is far off. After the end
    /// of a process that had run, calls wait for the restart.
    fn fails(&self, reason: &str, pause: Duration) -> bool {
        let mut state = self.state.lock();
        state.down = Some(Down {
            reason: reason.to_owned(),
            stays: state.down.is_some() || pause > SHORT_PAUSE,
        });
        state.sweep();
        let deserted = state.unavailable().is_some();
        if deserted {
            state.dismiss();
        }
        deserted
    }

    fn retires(&self, process: &Arc<ServerConnection>) {
        {
            let mut state = self.state.lock();
            let is_it =
                |(_, other): &(&SlotId, &ServerProcess)| Arc::ptr_eq(&other.connection, process);
            let slot = state.processes.iter().find(is_it).map(|(id, _)| *id);
            slot.into_iter().for_each(|id| state.placement.retire(id));
        }
        self.proceed();
    }

    fn wanted(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            while self.state.lock().waiters.is_empty() {
                self.wanted.notified().await;
            }
        })
    }
}

impl Down {
    fn stays(reason: &str) -> Self {
        Self {
            reason: reason.to_owned(),
            stays: true,
        }
    }
}

impl ProcessPoolState {
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn unavailable(&self) -> Option<String> {
        let down = self.down.as_ref().filter(|down| down.stays)?;
        (self.placement.is_deserted()).then(|| down.reason.clone())
    }

    fn dismiss(&mut self) {
        for (id, _) in self.waiters.drain() {
            self.placement.forget(id);
        }
    }

    /// Returns the pause before the next start.
    fn not_started(
        &mut self,
        began: Instant,
        error: &StartError,
        opening: &PoolOpening,
    ) -> Duration {
        // In a pool with a lead, the supervisor sets `down`.
        if matches!(opening, PoolOpening::Modern(_)) {
            self.down = Some(Down::stays(&error.to_string()));
            if self.unavailable().is_some() {
                self.dismiss();
            }
        }
        self.restart_delay.after_failure(began)
    }

    fn may_start(&mut self, opening: &PoolOpening) {
        self.placement.started();
        if matches!(opening, PoolOpening::Modern(_)) {
            self.down = None;
        }
    }

    fn remove(&mut self, id: SlotId) {
        self.placement.leave(id);
        let removed = self.processes.remove(&id);
        if let Some(process) = removed.filter(|process| !process.connection.is_retired()) {
            self.crashes.ended(&process.occupants);
        }
    }

    fn sweep(&mut self) {
        let dead = self
            .processes
            .iter()
            .filter(|(_, process)| !process.connection.is_alive());
        let dead: Vec<SlotId> = dead.map(|(id, _)| *id).collect();
        for id in dead {
            self.remove(id);
        }
    }

    fn plan(&mut self) -> Plan {
        self.sweep();
        let processes = &self.processes;
        self.placement.plan(|id| {
            let process = processes.get(&id);
            process.map_or(Quarantine::None, |p| p.connection.link.pending.quarantine())
        })
    }

    fn prepare(&mut self, plan: Plan, pool: &Arc<ProcessPool>) -> PlacementSteps {
        let mut granted = Vec::new();
        for (waiter, slot, alone) in plan.granted {
            let waiter = self.waiters.remove(&waiter);
            let process = self.processes.get_mut(&slot);
            let (Some(waiter), Some(process)) = (waiter, process) else {
                continue;
            };
            process.occupants.enter(waiter.key);
            granted.push((
                waiter.granted,
                ProcessLease {
                    process: process.connection.clone(),
                    alone,
                    apart: waiter.apart,
                    key: waiter.key,
                    slot,
                    pool: pool.clone(),
                },
            ));
        }
        let retired = plan.retired.iter();
        let retired = retired.filter_map(|id| self.processes.get(id));
        let retired = retired.map(|process| process.connection.clone());
        PlacementSteps {
            granted,
            retired: retired.collect(),
            start: plan.start,
        }
    }
}

impl Drop for WaiterGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.state.lock();
        if state.waiters.remove(&self.id).is_some() {
            state.placement.forget(self.id);
        }
    }
}
