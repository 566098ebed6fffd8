use std::path::PathBuf;

use anyhow::Context as _;

use crate::directory::Directory;
use crate::programs;

/// The tools of a cluster's workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tools {
    /// The demo tools that are built into `shoal`.
    Demo,
    /// The built-in fixtures of the official conformance suite.
    Conformance,
    /// A stdio server, with its arguments.
    Command(Vec<String>),
    /// `chaos_tools`, which record executions in a ledger.
    Chaos,
    /// `chaos_tools`, with the tool that asks on half of the workers, and the rest on the others.
    SplitChaos,
    /// Pools from the text of a configuration file.
    Configured(String),
}

const ROOM: usize = 4096;

/// Each server process serves one call that asks. All clients together can have this many such
/// calls.
const ASKING_PROCESSES: usize = 256;

impl Tools {
    pub(crate) const LITTLE_ROOM: [(&'static str, &'static str); 4] = [
        ("pools.chaos.concurrency", "1"),
        ("pools.chaos.queue", "0"),
        ("pools.asking.concurrency", "1"),
        ("pools.asking.queue", "0"),
    ];

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

fn chaos(directory: &Directory) -> anyhow::Result<[String; 2]> {
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
    // A modern server does not ask mid-call, so calls can share a process.
    Ok([pool("chaos", "era = \"modern\""), pool("asking", &asking)])
}
