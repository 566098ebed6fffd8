use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::Serialize;
use serde_json::Value;

use crate::outcome::{FORMAT, Outcome};

#[derive(Debug, Clone, Serialize)]
pub(super) struct Named {
    /// The file's name, with its folder if the name is not unique.
    pub(super) name: String,
    pub(super) outcome: Outcome,
}

pub(super) fn all(paths: &[PathBuf]) -> anyhow::Result<Vec<Named>> {
    let stems: Vec<String> = paths.iter().map(|path| stem(path)).collect();
    let mut results = Vec::with_capacity(paths.len());
    for (path, name) in paths.iter().zip(&stems) {
        let outcome = one(path).with_context(|| format!("could not use {}", path.display()))?;
        let alone = stems.iter().filter(|other| *other == name).count() == 1;
        let name = if alone {
            name.clone()
        } else {
            path.display().to_string()
        };
        results.push(Named { name, outcome });
    }
    Ok(results)
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

fn one(path: &Path) -> anyhow::Result<Outcome> {
    let text = fs::read_to_string(path).context("it cannot be read")?;
    let value: Value = serde_json::from_str(&text).context("it is no JSON")?;
    let format = value.get("format").context(
        "it has no \"format\": this command cannot read what `run`, `resume`, `features` and `telemetry` write with --json",
    )?;
    ensure!(
        format == FORMAT,
        "its format is {format}, and this program reads {FORMAT:?}: use the program that wrote it, or measure again"
    );
    serde_json::from_value(value).context("it says that it is a result, but lacks a part of one")
}
