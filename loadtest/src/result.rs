//! Shows results: `report` as one static page, which draws them in the browser with uPlot, and `compare` also as text.

mod compare;

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

pub(crate) use compare::Comparison;

use crate::outcome::{FORMAT, Outcome};

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

#[derive(Debug, Clone, Serialize)]
struct Named {
    /// The file's name, with its folder if the name is not unique.
    name: String,
    outcome: Outcome,
}

pub(crate) fn report(arguments: &Report) -> anyhow::Result<String> {
    let results = read(&arguments.results)?;
    write(&arguments.output, None, &results)?;
    let violations = results.iter().map(|named| named.outcome.violations.len());
    Ok(format!(
        "{}: {} results, {} kinds of violations in them",
        arguments.output.display(),
        results.len(),
        violations.sum::<usize>()
    ))
}

pub(crate) fn compare(arguments: &Compare) -> anyhow::Result<Comparison> {
    let results = read(&arguments.results)?;
    ensure!(
        results.len() > 1,
        "there is only one result, and nothing to compare it with"
    );
    let comparison = Comparison::of(&results);
    if let Some(path) = &arguments.html {
        write(path, Some(&comparison), &results)?;
    }
    Ok(comparison)
}

fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<Named>> {
    let stem = |path: &PathBuf| path.file_stem().unwrap_or_default().to_owned();
    let named = |path: &PathBuf| {
        let is_unique = paths
            .iter()
            .filter(|other| stem(other) == stem(path))
            .count()
            == 1;
        let outcome = outcome(path).with_context(|| format!("could not use {}", path.display()))?;
        let name = match is_unique {
            true => stem(path).to_string_lossy().into_owned(),
            false => path.display().to_string(),
        };
        Ok(Named { name, outcome })
    };
    paths.iter().map(named).collect()
}

fn outcome(path: &Path) -> anyhow::Result<Outcome> {
    let text = std::fs::read_to_string(path).context("it cannot be read")?;
    let value: Value = serde_json::from_str(&text).context("it is no JSON")?;
    let format = value
        .get("format")
        .context("it has no \"format\": it is not a result of this program")?;
    ensure!(
        format == FORMAT,
        "its format is {format}, and this program reads {FORMAT:?}: use the program that wrote it, or measure again"
    );
    serde_json::from_value(value).context("it says that it is a result, but lacks a part of one")
}

fn write(path: &Path, comparison: Option<&Comparison>, results: &[Named]) -> anyhow::Result<()> {
    let written = std::fs::write(path, page(comparison, results));
    written.with_context(|| format!("could not write {}", path.display()))
}

fn page(comparison: Option<&Comparison>, results: &[Named]) -> String {
    let data = json!({"comparison": comparison, "results": results}).to_string();
    include_str!("result/page.html")
        .replace("{{uplot.css}}", include_str!("result/vendor/uPlot.min.css"))
        .replace(
            "{{uplot.js}}",
            include_str!("result/vendor/uPlot.iife.min.js"),
        )
        .replace("{{page.js}}", include_str!("result/page.js"))
        // No text of a result may end the script.
        .replace("{{data}}", &data.replace('<', "\\u003c"))
}

#[cfg(test)]
mod tests {
    use super::{Named, page};
    use crate::outcome::Outcome;

    #[test]
    fn nothing_of_a_result_becomes_markup_or_comes_from_elsewhere() {
        let outcome = Outcome::begin("load", "</script><script>alert(1)</script>");
        let name = "one".to_owned();
        let page = page(None, &[Named { name, outcome }]);
        assert!(page.contains(r"\u003c/script>\u003cscript>alert(1)"));
        assert_eq!(page.matches("</script>").count(), 3);
        for foreign in ["src=", "href=", "@import", "url("] {
            assert!(!page.contains(foreign), "{foreign}");
        }
    }
}
