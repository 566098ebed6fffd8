//! The command lines of `loadtest features` and `loadtest telemetry`.

use anyhow::ensure;
use clap::Args;

use super::case::{Case, Part};
use super::cases;
use crate::cli::Turns;
use crate::mcp::Mode;

#[derive(Debug, Args)]
pub(crate) struct Features {
    #[command(flatten)]
    pub(super) turns: Turns,
    /// The era to speak [default: both].
    #[arg(long, value_enum)]
    mode: Option<Mode>,
    /// Cases to measure beside the one without features, by name and separated by commas [default: all].
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Count the instructions of a call instead, by callgrind: for machines on which others work. Needs valgrind; what is
    /// said of sessions, times and rounds does not count.
    #[arg(long)]
    pub(super) instructions: bool,
}

impl Features {
    pub(super) fn cases(&self) -> anyhow::Result<Vec<Case>> {
        let mut cases = match self.mode {
            Some(mode) => cases::features(&[mode]),
            None => cases::features(&[Mode::Legacy, Mode::Modern]),
        };
        for name in &self.only {
            let mut names: Vec<&str> = cases.iter().map(|case| case.name).collect();
            names.sort_unstable();
            names.dedup();
            ensure!(
                names.contains(&name.as_str()),
                "there is no case {name:?}; there are: {}",
                names.join(", ")
            );
        }
        if !self.only.is_empty() {
            cases.retain(|case| {
                case.part == Part::Off || self.only.iter().any(|name| name == case.name)
            });
        }
        Ok(cases)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Telemetry {
    #[command(flatten)]
    pub(super) turns: Turns,
    /// The era to speak.
    #[arg(long, value_enum, default_value_t = Mode::Legacy)]
    mode: Mode,
    /// Leave the cluster out, which needs `redis-server`.
    #[arg(long)]
    no_cluster: bool,
}

impl Telemetry {
    pub(super) fn cases(&self) -> Vec<Case> {
        cases::telemetry(self.mode, !self.no_cluster)
    }
}
