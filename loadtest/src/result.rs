mod compare;
mod number;
mod page;
mod read;

use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;

pub(crate) use compare::Comparison;

/// Which results to show, and where.
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Results from `--json`.
    #[arg(required = true, value_name = "RESULT.json")]
    results: Vec<PathBuf>,
    /// HTML file to write.
    #[arg(short, long, default_value = "report.html")]
    output: PathBuf,
}

/// Which results to put side by side.
#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Two or more results from `--json`; the first one is the baseline.
    #[arg(required = true, num_args = 2.., value_name = "RESULT.json")]
    results: Vec<PathBuf>,
    /// Additional HTML file to write [default: none].
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(crate) fn report(arguments: &Report) -> anyhow::Result<String> {
    let results = read::all(&arguments.results)?;
    write(&arguments.output, &page::page(None, &results)?)?;
    let violations = results.iter().map(|named| named.outcome.violations.len());
    Ok(format!(
        "{}: {} results, {} kinds of violations in them",
        arguments.output.display(),
        results.len(),
        violations.sum::<usize>()
    ))
}

pub(crate) fn compare(arguments: &Compare) -> anyhow::Result<Comparison> {
    let results = read::all(&arguments.results)?;
    ensure!(
        results.len() > 1,
        "there is only one result, and nothing to compare it with"
    );
    let comparison = Comparison::of(&results);
    if let Some(path) = &arguments.html {
        write(path, &page::page(Some(&comparison), &results)?)?;
    }
    Ok(comparison)
}

fn write(path: &PathBuf, page: &str) -> anyhow::Result<()> {
    std::fs::write(path, page).with_context(|| format!("could not write {}", path.display()))
}
