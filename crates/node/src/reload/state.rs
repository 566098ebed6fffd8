use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use parking_lot::Mutex;
use serde::Serialize;

/// The state of the configuration, for operators.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConfigurationReport {
    /// The file that reloads read, if any.
    pub file: Option<PathBuf>,
    /// When the configuration was last found usable, in seconds since the epoch.
    pub taken_at: u64,
    /// Why later content was refused. The earlier configuration stays in force.
    pub refused: Option<String>,
    /// Changed settings that take effect at the next start.
    pub at_next_start: Vec<String>,
    /// Pools that keep their old form because the new one is not ready, with the reason.
    pub waiting: Vec<String>,
}

pub(crate) struct ConfigurationState {
    known: Mutex<ConfigurationReport>,
    /// The settings that wait for a restart, as last logged.
    told: Mutex<Vec<String>>,
    discovered: Mutex<BTreeSet<String>>,
}

impl ConfigurationState {
    pub(crate) fn new() -> Self {
        let known = ConfigurationReport {
            taken_at: now(),
            ..ConfigurationReport::default()
        };
        Self {
            known: Mutex::new(known),
            told: Mutex::default(),
            discovered: Mutex::default(),
        }
    }

    pub(super) fn reads(&self, file: Option<&Path>) {
        self.known.lock().file = file.map(Path::to_owned);
    }

    pub(super) fn discovers(&self, pools: BTreeSet<String>) {
        *self.discovered.lock() = pools;
    }

    /// The process's readiness does not wait for these pools.
    pub(crate) fn discovered(&self) -> BTreeSet<String> {
        self.discovered.lock().clone()
    }

    pub(super) fn taken(&self, at_next_start: Vec<String>) {
        let mut known = self.known.lock();
        known.taken_at = now();
        known.refused = None;
        known.at_next_start = at_next_start;
    }

    pub(super) fn refused(&self, reason: String) {
        self.known.lock().refused = Some(reason);
    }

    pub(super) fn is_news(&self, at_next_start: &[String]) -> bool {
        let mut told = self.told.lock();
        let is_news = *told != at_next_start;
        *told = at_next_start.to_vec();
        is_news && !at_next_start.is_empty()
    }

    pub(crate) fn report(&self, waiting: Vec<String>) -> ConfigurationReport {
        ConfigurationReport {
            waiting,
            ..self.known.lock().clone()
        }
    }

    pub(crate) fn taken_at(&self) -> u64 {
        self.known.lock().taken_at
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}
