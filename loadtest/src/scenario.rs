//! Options and results that all measurements share.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use serde::Serialize;

use crate::outcome::Outcome;
use crate::servers::shoal_binary;

/// A measurement of several seconds or more.
pub(crate) trait Scenario {
    /// Number of threads; `None` means one per core.
    const THREADS: Option<usize> = None;

    /// File for the result as JSON.
    fn json(&self) -> Option<&Path>;

    /// Fails if the run cannot begin or continue. Wrong answers are part of the outcome.
    async fn run(&self) -> anyhow::Result<impl Finished>;
}

/// The result of a measurement.
pub(crate) trait Finished: Display + Serialize {
    fn is_correct(&self) -> bool;
}

impl Finished for Outcome {
    fn is_correct(&self) -> bool {
        self.violations.is_empty()
    }
}

/// The options of a scenario that starts Shoal.
#[derive(Debug, Args)]
pub(crate) struct Subject {
    /// Shoal binary [default: `shoal` next to this program, if it exists].
    #[arg(long)]
    shoal: Option<PathBuf>,
    /// File for the result as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
}

impl Subject {
    pub(crate) fn shoal(&self) -> anyhow::Result<PathBuf> {
        shoal_binary(self.shoal.as_deref())
    }

    pub(crate) fn json(&self) -> Option<&Path> {
        self.json.as_deref()
    }
}

/// Returns whether all checks succeeded.
pub(crate) fn execute<S: Scenario>(scenario: &S) -> anyhow::Result<bool> {
    execute_on(S::THREADS, scenario)
}

pub(crate) fn execute_on(threads: Option<usize>, scenario: &impl Scenario) -> anyhow::Result<bool> {
    let result = crate::runtime(threads)?.block_on(scenario.run())?;
    finish(&result, scenario.json())
}

/// Prints a result, and writes it to the file `json`.
pub(crate) fn finish(result: &impl Finished, json: Option<&Path>) -> anyhow::Result<bool> {
    crate::say(result);
    if let Some(path) = json {
        let mut text = serde_json::to_vec_pretty(result).context("could not encode the report")?;
        text.push(b'\n');
        let written = std::fs::write(path, text);
        written.with_context(|| format!("could not write {}", path.display()))?;
    }
    Ok(result.is_correct())
}
