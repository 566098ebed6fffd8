//! Keeping the lead process running, and the backend's state true.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use shoal_ports::PoolCatalog;
use tokio::sync::watch;
use tokio::time::Instant;

use super::error::StartError;
use super::launcher::Launcher;
use super::lists;
use super::pool::Pool;
use super::process::Process;
use super::restart_delay::RestartDelay;
use crate::BackendState;

/// Announcements that come within this time are answered with one reading of the lists: servers
/// that register tools one by one announce each.
const SETTLE: Duration = Duration::from_millis(50);

/// Runs the lead process: the one whose lists are the catalog.
pub(super) struct Supervisor {
    launcher: Arc<Launcher>,
    pool: Arc<Pool>,
    state: watch::Sender<BackendState>,
    /// What was read last; the generations survive restarts.
    catalog: Option<PoolCatalog>,
}

/// How a lead's time ended.
enum End {
    /// It has to be waited with. Where it has never been ready, waiting may be in vain.
    Failed(String, Prospect),
    /// It was retired by the pool.
    Retired,
}

/// What a start that failed says of the next one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Prospect {
    /// It may succeed.
    Open,
    /// It will fail too, unless something is changed.
    Poor,
}

impl Supervisor {
    /// Publishes to `state`.
    pub(super) fn new(
        launcher: Arc<Launcher>,
        pool: Arc<Pool>,
        state: watch::Sender<BackendState>,
    ) -> Self {
        Self {
            launcher,
            pool,
            state,
            catalog: None,
        }
    }

    /// Runs until the backend shuts down.
    pub(super) async fn run(mut self) {
        let config = &self.launcher.config;
        let mut restart_delay = RestartDelay::of(config);
        let closing = self.launcher.closing.clone();
        while !closing.is_cancelled() {
            let began = Instant::now();
            let End::Failed(reason, prospect) = self.lead().await else {
                continue;
            };
            if closing.is_cancelled() {
                break;
            }
            let pause = restart_delay.after_failure(began);
            self.publish_failure(&reason, prospect);
            tracing::warn!(target: "shoal::stdio", reason, ?pause, "the server is restarted");
            tokio::select! {
                () = tokio::time::sleep(pause) => {
                    self.launcher.restarts.fetch_add(1, Ordering::Relaxed);
                }
                () = closing.cancelled() => {}
            }
        }
        self.state.send_replace(BackendState {
            catalog: None,
            detail: Some("shut down".to_owned()),
        });
    }

    /// Starts the lead and stays with it to its end.
    async fn lead(&mut self) -> End {
        let process = match self.launcher.launch_shared().await {
            Ok(process) => process,
            Err(StartError::Closed) => return End::Retired,
            Err(error) => {
                let prospect = match error.may_pass() {
                    true => Prospect::Open,
                    false => Prospect::Poor,
                };
                return End::Failed(error.to_string(), prospect);
            }
        };
        // Before the lists are read, so that a change during the reading is not missed.
        let mut changes = process.link.changes();
        let mut seen = *changes.borrow_and_update();
        match lists::read(&process.link).await {
            Ok(catalog) => self.publish(catalog, [0; 3]),
            Err(error) => {
                process.shutdown().await;
                let reason = format!("its lists could not be read: {error}");
                return End::Failed(reason, Prospect::Open);
            }
        }
        self.pool.lead_joins(&process);
        let over = process.over();
        loop {
            tokio::select! {
                () = over.cancelled() => return self.ended(&process),
                _ = changes.changed() => {
                    tokio::time::sleep(SETTLE).await;
                    let now = *changes.borrow_and_update();
                    self.read_again(&process, std::array::from_fn(|at| now[at] - seen[at])).await;
                    seen = now;
                }
            }
        }
    }

    fn ended(&self, process: &Process) -> End {
        if process.is_retired() {
            return End::Retired;
        }
        let reason = process.link.flights.ended().unwrap_or_default();
        End::Failed(reason.to_string(), Prospect::Open)
    }

    async fn read_again(&mut self, process: &Process, announced: [u64; 3]) {
        match lists::read(&process.link).await {
            Ok(catalog) => self.publish(catalog, announced),
            Err(error) => {
                // Whoever reads the old lists can at least know that they are old.
                let mut catalog = self.catalog.clone().unwrap_or_default();
                add(&mut catalog.generations, announced);
                self.catalog = Some(catalog.clone());
                self.state.send_replace(BackendState {
                    catalog: Some(Arc::new(catalog)),
                    detail: Some(format!("its lists could not be read again: {error}")),
                });
            }
        }
    }

    fn publish(&mut self, mut catalog: PoolCatalog, mut announced: [u64; 3]) {
        if let Some(old) = &self.catalog {
            // After a restart nothing is announced, and yet things may have changed.
            let resources = old.resources != catalog.resources
                || old.resource_templates != catalog.resource_templates;
            let differs = [
                old.tools != catalog.tools,
                resources,
                old.prompts != catalog.prompts,
            ];
            for (announced, differs) in announced.iter_mut().zip(differs) {
                *announced = (*announced).max(u64::from(differs));
            }
            catalog.generations = old.generations;
        }
        add(&mut catalog.generations, announced);
        self.catalog = Some(catalog.clone());
        self.state.send_replace(BackendState {
            catalog: Some(Arc::new(catalog)),
            detail: None,
        });
    }

    fn publish_failure(&self, reason: &str, prospect: Prospect) {
        let was_ready = self.catalog.is_some();
        let detail = match prospect {
            Prospect::Poor if !was_ready => format!("{}{reason}", BackendState::CANNOT_START),
            _ => format!("restarting: {reason}"),
        };
        let deserted = self.pool.lead_fails(&detail);
        self.state.send_modify(|state| {
            state.detail = Some(detail);
            if deserted {
                state.catalog = None;
            }
        });
    }
}

fn add(generations: &mut [u64; 3], announced: [u64; 3]) {
    for (generation, announced) in generations.iter_mut().zip(announced) {
        *generation += announced;
    }
}
