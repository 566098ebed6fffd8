//! Options and results that all measurements share.

use std::fmt::Display;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use shoal_testkit::cluster::Builder;

use crate::outcome::Outcome;
use crate::servers::{self, shoal_binary};

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
    pub(crate) json: Option<PathBuf>,
    /// Directory for the logs of the processes [default: none, logs are discarded].
    #[arg(long)]
    logs: Option<PathBuf>,
}

impl Subject {
    pub(crate) fn shoal(&self) -> anyhow::Result<PathBuf> {
        shoal_binary(self.shoal.as_deref())
    }

    /// Returns the builder of a cluster with the demo tools.
    pub(crate) fn cluster(&self) -> anyhow::Result<Builder> {
        let builder = servers::cluster(&self.shoal()?, None).logs(self.logs.clone());
        Ok(builder.setting("pools.demo.backend", "demo"))
    }
}

/// Runs a measurement on this number of threads; `None` means one per core. Returns whether all checks succeeded.
pub(crate) fn execute(
    threads: Option<usize>,
    json: Option<&PathBuf>,
    measuring: impl Future<Output = anyhow::Result<Outcome>>,
) -> anyhow::Result<bool> {
    finish(&crate::runtime(threads)?.block_on(measuring)?, json)
}

/// Prints a result, and writes it to the file `json`.
pub(crate) fn finish(result: &impl Finished, json: Option<&PathBuf>) -> anyhow::Result<bool> {
    crate::say(result);
    if let Some(path) = json {
        let mut text = serde_json::to_vec_pretty(result).context("could not encode the report")?;
        text.push(b'\n');
        let written = std::fs::write(path, text);
        written.with_context(|| format!("could not write {}", path.display()))?;
    }
    Ok(result.is_correct())
}
