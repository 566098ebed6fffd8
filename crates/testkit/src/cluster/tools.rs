//! What the workers of a cluster run.

use std::path::PathBuf;

use anyhow::Context as _;

use crate::directory::Directory;
use crate::programs;

/// What the workers run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tools {
    /// The demo tools that are built into `shoal`.
    Demo,
    /// The fixtures of the official conformance suite, built in as well.
    Conformance,
    /// A stdio server, with its arguments.
    Command(Vec<String>),
    /// `chaos_tools`, whose deeds are noted in a ledger.
    Chaos,
    /// The same, but no worker has all pools: every other one has the tool that asks, and the rest the others.
    SplitChaos,
    /// Pools as a configuration file says.
    Configured(String),
}

/// Calls that a worker runs at once in chaos: none shall wait, or be refused, for lack of room.
const ROOM: usize = 4096;

/// Processes of the tool that asks, started as they are needed: each serves one call at a time. All clients are one principal,
/// of which as many calls may ask.
const ASKING_PROCESSES: usize = 256;

impl Tools {
    /// Settings that leave a worker of [`Tools::Chaos`] hardly any room.
    pub(crate) const LITTLE_ROOM: [(&'static str, &'static str); 4] = [
        ("pools.chaos.concurrency", "1"),
        ("pools.chaos.queue", "0"),
        ("pools.asking.concurrency", "1"),
        ("pools.asking.queue", "0"),
    ];

    /// The end of the command line of the worker of this number.
    pub(super) fn arguments(
        &self,
        directory: &Directory,
        number: usize,
    ) -> anyhow::Result<Vec<String>> {
        match self {
            Self::Demo => Ok(vec!["--demo".to_owned()]),
            Self::Conformance => Ok(vec!["--conformance".to_owned()]),
            Self::Command(words) => {
                let dashes = std::iter::once("--".to_owned());
                Ok(dashes.chain(words.iter().cloned()).collect())
            }
            Self::Chaos => configured(directory, number, &chaos(directory)?.concat()),
            Self::SplitChaos => configured(directory, number, &chaos(directory)?[number % 2]),
            Self::Configured(text) => configured(directory, number, text),
        }
    }
}

/// Where [`Tools::Chaos`] note what they execute.
pub(super) fn ledger(directory: &Directory) -> PathBuf {
    directory.file("ledger")
}

fn configured(directory: &Directory, number: usize, text: &str) -> anyhow::Result<Vec<String>> {
    let file = directory.file(&format!("worker-{number}.toml"));
    std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(vec![
        "--config".to_owned(),
        file.to_string_lossy().into_owned(),
    ])
}

/// The pools of [`Tools::Chaos`].
fn chaos(directory: &Directory) -> anyhow::Result<[String; 2]> {
    // A JSON string is a TOML string, for paths at least.
    let program = serde_json::to_string(&programs::chaos_tools()?)?;
    let ledger = serde_json::to_string(&ledger(directory))?;
    let pool = |name: &str, more: &str| {
        format!(
            "[pools.{name}]\n\
             concurrency = {ROOM}\n\
             queue = {ROOM}\n\
             queue_age = \"1m\"\n\
             [pools.{name}.backend.stdio]\n\
             command = {program}\n\
             env = {{ CHAOS_LEDGER = {ledger} }}\n\
             isolation = \"shared\"\n\
             {more}\n"
        )
    };
    let asking = format!("args = [\"--asking\"]\nprocesses = {ASKING_PROCESSES}");
    // It never asks, so calls need not run alone in their processes.
    Ok([pool("chaos", "era = \"modern\""), pool("asking", &asking)])
}
