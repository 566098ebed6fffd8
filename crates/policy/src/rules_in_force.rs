use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use shoal_ports::read_text;
use shoal_telemetry::metrics::{ReloadOutcome, metrics};
use tokio::sync::watch;

use crate::config::{PolicyConfig, Rule, RulesFile};
use crate::error::PolicyError;
use crate::policy::Policy;

/// Maximum bytes of a rules file.
const LONGEST_FILE: u64 = 1 << 20;

/// The rules in force, from the configuration and a file that may change.
#[derive(Debug)]
pub struct RulesInForce {
    configured: Vec<Rule>,
    file: Option<PathBuf>,
    /// The lock is held during each read, so a higher number means later content.
    readings: Mutex<u64>,
    current: RwLock<InForce>,
    changed: watch::Sender<()>,
}

#[derive(Debug)]
struct InForce {
    policy: Arc<Policy>,
    reading: u64,
}

/// Rules read from the file but not in force yet.
#[derive(Debug)]
#[must_use = "these rules are not in force yet"]
pub struct RulesRead(InForce);

impl RulesInForce {
    /// Reads the rules; `None` if the configuration has neither rules nor a file.
    ///
    /// # Errors
    /// Why the rules are unusable. The node must not start without them.
    pub fn open(config: &PolicyConfig) -> Result<Option<Self>, PolicyError> {
        if config.rules.is_empty() && config.file.is_none() {
            return Ok(None);
        }
        let policy = match &config.file {
            None => Policy::compile(&config.rules)?,
            Some(path) => read(&config.rules, path)?,
        };
        Ok(Some(Self {
            configured: config.rules.clone(),
            file: config.file.clone(),
            readings: Mutex::new(0),
            current: RwLock::new(InForce {
                policy: Arc::new(policy),
                reading: 0,
            }),
            changed: watch::Sender::new(()),
        }))
    }

    /// Returns the rules in force, empty after `rules = []`.
    pub fn current(&self) -> Arc<Policy> {
        self.current.read().policy.clone()
    }

    /// Returns a receiver of changes of the rules.
    pub fn changed(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Puts the file's present rules in force. Returns whether the rules changed. After an error, which is
    /// logged, the old rules stay. Blocks.
    pub fn reread(&self) -> bool {
        let read = self.read_again().ok().flatten();
        read.is_some_and(|read| self.put_in_force(read))
    }

    /// Reads the file again without putting its rules in force; `None` without a file. Blocks.
    ///
    /// # Errors
    /// Why the rules are unusable, which is also logged.
    pub fn read_again(&self) -> Result<Option<RulesRead>, PolicyError> {
        let Some(file) = &self.file else {
            return Ok(None);
        };
        let mut readings = self.readings.lock();
        *readings += 1;
        let policy = read(&self.configured, file).inspect_err(|error| {
            metrics().policy.reloaded(ReloadOutcome::Refused);
            tracing::error!(
                file = %file.display(), %error,
                "cannot use the policy rules; the previous ones stay in force"
            );
        })?;
        Ok(Some(RulesRead(InForce {
            policy: Arc::new(policy),
            reading: *readings,
        })))
    }

    /// Puts rules in force, unless rules that were read later already are. Returns whether the rules changed.
    pub fn put_in_force(&self, read: RulesRead) -> bool {
        let RulesRead(next) = read;
        let mut current = self.current.write();
        if next.reading < current.reading {
            return false;
        }
        if next.policy.fingerprint() == current.policy.fingerprint() {
            // Keeps the equal policy, which has cached decisions.
            current.reading = next.reading;
            return false;
        }
        *current = next;
        drop(current);
        metrics().policy.reloaded(ReloadOutcome::Changed);
        let file = self.file.as_deref().unwrap_or(Path::new(""));
        tracing::info!(file = %file.display(), "other policy rules are in force");
        self.changed.send_replace(());
        true
    }
}

fn read(configured: &[Rule], path: &Path) -> Result<Policy, PolicyError> {
    compile(configured, path, &text_of(path)?)
}

fn text_of(path: &Path) -> Result<String, PolicyError> {
    read_text(path, LONGEST_FILE).map_err(|error| PolicyError::Read {
        path: path.to_owned(),
        error,
    })
}

fn compile(configured: &[Rule], path: &Path, text: &str) -> Result<Policy, PolicyError> {
    let file: RulesFile = toml::from_str(text).map_err(|error| PolicyError::Syntax {
        path: path.to_owned(),
        reason: error.to_string().trim_end().to_owned(),
    })?;
    // A truncated or empty file must not allow everything. An operator can do so with `rules = []`.
    let rules = file.rules.ok_or_else(|| PolicyError::NoRule {
        path: path.to_owned(),
    })?;
    let all: Vec<Rule> = configured.iter().chain(&rules).cloned().collect();
    Ok(Policy::compile(&all)?)
}

#[cfg(test)]
mod tests;
