//! The rules in force, and their file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use shoal_ports::read_text;
use shoal_telemetry::metrics::{ReloadOutcome, metrics};
use tokio::sync::watch;

use crate::config::{PolicyConfig, Rule, RulesFile};
use crate::error::PolicyError;
use crate::policy::Policy;

/// Maximum bytes of a rules file.
const LONGEST_FILE: u64 = 1 << 20;

/// The rules in force: those of the configuration, and those of a file that may change.
#[derive(Debug)]
pub struct RulesInForce {
    configured: Vec<Rule>,
    file: Option<PathBuf>,
    current: RwLock<Arc<Policy>>,
    changed: watch::Sender<()>,
}

impl RulesInForce {
    /// Reads the rules, or returns `None` if the configuration has no rules and no file.
    ///
    /// # Errors
    /// The rules cannot be used, and the node must not start without them.
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
            current: RwLock::new(Arc::new(policy)),
            changed: watch::Sender::new(()),
        }))
    }

    /// Returns the rules in force, which may be empty if the file says so (`rules = []`).
    pub fn current(&self) -> Arc<Policy> {
        self.current.read().clone()
    }

    /// Wakes when the rules change.
    pub fn changed(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Reads the file again and returns whether the rules changed. Errors are logged, and the old
    /// rules stay. Blocks.
    pub fn reread(&self) -> bool {
        self.try_reread().unwrap_or_default()
    }

    /// Like [`reread`](Self::reread), but returns the error.
    ///
    /// # Errors
    /// The rules cannot be used.
    pub fn try_reread(&self) -> Result<bool, PolicyError> {
        let Some(file) = &self.file else {
            return Ok(false);
        };
        let policy = read(&self.configured, file).inspect_err(|error| {
            metrics().policy.reloaded(ReloadOutcome::Refused);
            tracing::error!(
                file = %file.display(), %error,
                "the policy rules cannot be used; those that were read before stay in force"
            );
        })?;
        let mut current = self.current.write();
        if policy.fingerprint() == current.fingerprint() {
            return Ok(false);
        }
        *current = Arc::new(policy);
        drop(current);
        metrics().policy.reloaded(ReloadOutcome::Changed);
        tracing::info!(file = %file.display(), "other policy rules are in force");
        self.changed.send_replace(());
        Ok(true)
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
    // A truncated or unwritten file must not allow everything. `rules = []` does so on purpose.
    let rules = file.rules.ok_or_else(|| PolicyError::NoRule {
        path: path.to_owned(),
    })?;
    let all: Vec<Rule> = configured.iter().chain(&rules).cloned().collect();
    Ok(Policy::compile(&all)?)
}

#[cfg(test)]
mod tests;
