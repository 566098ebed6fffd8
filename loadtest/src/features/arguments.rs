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
    /// Protocol era to use [default: both].
    #[arg(long, value_enum)]
    mode: Option<Mode>,
    /// Cases to measure besides the one without features, separated by commas [default: all].
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Count the instructions of a call by callgrind instead, for machines with other load. Needs valgrind; ignores the
    /// options for sessions, times and rounds.
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
    /// Protocol era to use.
    #[arg(long, value_enum, default_value_t = Mode::Legacy)]
    mode: Mode,
    /// Skip the cluster, which needs `redis-server`.
    #[arg(long)]
    no_cluster: bool,
}

impl Telemetry {
    pub(super) fn cases(&self) -> Vec<Case> {
        cases::telemetry(self.mode, !self.no_cluster)
    }
}
