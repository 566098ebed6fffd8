//! Reloads the configuration at run time.

mod reader;
mod state;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use shoal_dispatch::Dispatch;
use shoal_edge::Quotas;
use shoal_policy::{RulesInForce, RulesRead};
use shoal_ports::{FileWatch, read_file};
use shoal_telemetry::metrics::{ReloadOutcome, metrics};
use tokio_util::task::AbortOnDropHandle;

pub use self::reader::ConfigReader;
pub use self::state::ConfigurationReport;
pub(crate) use self::state::ConfigurationState;

use crate::config::changes::at_next_start;
use crate::config::{Finding, LONGEST_FILE, Loaded, QuotaConfig, Reload, Role};
use crate::given;
use crate::pools::Pools;
use crate::service_manager::ServiceManager;
use crate::signals::HangUps;

pub(crate) struct Reloads {
    reader: ConfigReader,
    started: Loaded,
    /// Settings of reloads, which change only at a restart.
    how: Reload,
    pools: Pools,
    state: Arc<ConfigurationState>,
    quotas: Option<(Quotas, Vec<QuotaConfig>)>,
    /// The rules, whose file each reload rereads because it may change together with the configuration.
    rules: Option<(Arc<RulesInForce>, Dispatch)>,
    manager: Option<ServiceManager>,
    left_out: Vec<Finding>,
    /// The reason of the last refusal, and the file's content.
    refused: Option<(String, Option<Vec<u8>>)>,
}

struct TakenChanges {
    pools: Vec<String>,
    quotas: bool,
    at_next_start: Vec<String>,
}

impl Reloads {
    pub(crate) fn new(
        reader: ConfigReader,
        started: Loaded,
        pools: Pools,
        state: Arc<ConfigurationState>,
    ) -> Self {
        state.reads(reader.file());
        state.discovers(started.discovered.clone());
        Self {
            how: started.settings.reload.clone(),
            reader,
            started,
            pools,
            state,
            quotas: None,
            rules: None,
            manager: None,
            left_out: Vec::new(),
            refused: None,
        }
    }

    pub(crate) fn with_quotas(mut self, quotas: &Quotas) -> Self {
        let settings = &self.started.settings;
        let edge = settings.node.is(Role::Edge);
        self.quotas = edge.then(|| (quotas.clone(), settings.quotas.clone()));
        self
    }

    /// The rules are read before the pools change.
    pub(crate) fn with_rules(
        mut self,
        rules: Option<Arc<RulesInForce>>,
        dispatch: &Dispatch,
    ) -> Self {
        self.rules = rules.map(|rules| (rules, dispatch.clone()));
        self
    }

    pub(crate) fn telling(mut self, manager: ServiceManager) -> Self {
        self.manager = Some(manager);
        self
    }

    /// Reloads on `hang_ups` and changes of a watched file, until the handle is dropped.
    pub(crate) fn run(mut self, mut hang_ups: HangUps) -> AbortOnDropHandle<()> {
        let mut watch = self.reader.take_watch().filter(|_| self.how.watch);
        let mut discovered = self.reader.take_discovered();
        let every = self.how.watch_every.get();
        AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                let why = tokio::select! {
                    () = hang_ups.next() => "SIGHUP",
                    () = changed(&mut watch, every) => "the file has changed",
                    () = changed(&mut discovered, every) => "other servers were found",
                };
                if let Some(manager) = &self.manager {
                    manager.reloading().await;
                }
                self.reload(why).await;
                if let Some(manager) = &self.manager {
                    manager.reloaded().await;
                }
            }
        }))
    }

    fn tell_left_out(&mut self, left_out: Vec<Finding>) {
        for finding in &left_out {
            if !self.left_out.contains(finding) {
                tracing::warn!("{finding}");
            }
        }
        self.left_out = left_out;
    }

    async fn reload(&mut self, why: &'static str) {
        let discovery = self.started.settings.discovery.file.clone();
        let Some(file) = self.reader.file().map(ToOwned::to_owned).or(discovery) else {
            tracing::info!(why, "there is no configuration file to read again");
            return;
        };
        let shown = file.display();
        tracing::debug!(why, file = %shown, "reading the configuration again");
        let outcome = match self.take().await {
            Ok(taken) => {
                self.refused = None;
                self.state.taken(taken.at_next_start.clone());
                self.tell(why, &taken)
            }
            Err(reason) => {
                let refused = (reason, read_file(&file, LONGEST_FILE).ok());
                // Log once for each reason and content of the file.
                if self.refused.as_ref() != Some(&refused) {
                    let reason = &refused.0;
                    tracing::error!(why, file = %shown, "the configuration stays as it was: {reason}");
                }
                self.state.refused(refused.0.clone());
                self.refused = Some(refused);
                ReloadOutcome::Refused
            }
        };
        metrics().configuration.reloaded(outcome);
    }

    /// # Errors
    ///
    /// Why the configuration is unusable. Then nothing has changed.
    async fn take(&mut self) -> Result<TakenChanges, String> {
        let next = self
            .reader
            .load_again()
            .map_err(|failure| failure.to_string())?;
        let read = read_rules(self.rules.as_ref())
            .await
            .map_err(|error| format!("{error:#}"))?;
        // `apply` calls `put_in_force` after removed pools have stopped taking calls and before new pools take any, so
        // that a pool's calls get only the rules that were written with it.
        let mut quotas = false;
        let put_in_force = || {
            quotas = take_quotas(&mut self.quotas, &next.settings.quotas);
            if let (Some((rules, dispatch)), Some(read)) = (&self.rules, read)
                && rules.put_in_force(read)
            {
                dispatch.rules_changed();
            }
        };
        let sessions = self.how.sessions.get();
        let applied = self
            .pools
            .apply(&next.settings.pools, sessions, put_in_force);
        let pools = applied.await.map_err(|error| format!("{error:#}"))?;
        if !pools.is_empty() && self.started.settings.node.is(Role::Worker) {
            given::tell_withheld(&next.settings);
        }
        self.tell_left_out(next.left_out.clone());
        self.state.discovers(next.discovered.clone());
        Ok(TakenChanges {
            pools,
            quotas,
            at_next_start: at_next_start(&self.started, &next),
        })
    }

    fn tell(&self, why: &'static str, taken: &TakenChanges) -> ReloadOutcome {
        let TakenChanges {
            pools,
            quotas,
            at_next_start,
        } = taken;
        let later = self.state.is_news(at_next_start);
        if later {
            tracing::warn!(settings = ?at_next_start, "these settings have changed, and take effect at the next start");
        }
        if pools.is_empty() && !quotas && !later {
            tracing::info!(why, "the configuration says what it said before");
            return ReloadOutcome::Unchanged;
        }
        tracing::info!(why, ?pools, quotas, "the configuration was read again");
        ReloadOutcome::Changed
    }
}

/// Returns whether the quotas changed.
fn take_quotas(quotas: &mut Option<(Quotas, Vec<QuotaConfig>)>, next: &[QuotaConfig]) -> bool {
    match quotas {
        Some((quotas, known)) if known != next => {
            quotas.set(next);
            *known = next.to_vec();
            true
        }
        _ => false,
    }
}

async fn read_rules(
    rules: Option<&(Arc<RulesInForce>, Dispatch)>,
) -> anyhow::Result<Option<RulesRead>> {
    let Some((rules, _)) = rules else {
        return Ok(None);
    };
    let rules = Arc::clone(rules);
    let read = tokio::task::spawn_blocking(move || rules.read_again()).await?;
    read.context("policy.file")
}

/// Waits for ever without a file.
pub(crate) async fn changed(watch: &mut Option<FileWatch>, every: Duration) {
    match watch {
        Some(watch) => watch.changed(every).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
