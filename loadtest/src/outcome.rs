use std::collections::BTreeMap;
use std::fmt;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Readers refuse other versions.
pub(crate) const FORMAT: &str = "shoal-loadtest/1";

const QUANTILES: [f64; 10] = [0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0];

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) format: String,
    pub(crate) scenario: String,
    pub(crate) title: String,
    pub(crate) started_unix_s: u64,
    pub(crate) seconds: f64,
    pub(crate) parameters: BTreeMap<String, String>,
    /// Lines that are only printed.
    #[serde(skip)]
    pub(crate) table: Vec<String>,
    pub(crate) figures: Vec<Figure>,
    pub(crate) latencies: Vec<Distribution>,
    pub(crate) series: Vec<Series>,
    #[serde(default)]
    pub(crate) marks: Vec<Mark>,
    pub(crate) violations: Vec<Violation>,
    pub(crate) verdicts: Vec<Verdict>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Figure {
    /// Unique, for example `edge: resident memory a stream`.
    pub(crate) name: String,
    pub(crate) value: f64,
    /// For example `µs`, `KiB` or `1/s`. Empty for a plain number.
    pub(crate) unit: String,
    pub(crate) better: Better,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Better {
    Lower,
    Higher,
    /// The figure only describes the run.
    Neither,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Distribution {
    pub(crate) name: String,
    pub(crate) count: u64,
    pub(crate) mean_us: f64,
    /// Pairs of quantile (0 to 1) and value, ascending.
    pub(crate) quantiles_us: Vec<(f64, f64)>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) unit: String,
    /// Pairs of seconds and value, ascending.
    pub(crate) points: Vec<(f64, f64)>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) at_s: f64,
    /// For example `session node killed`.
    pub(crate) what: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Violation {
    pub(crate) what: String,
    pub(crate) count: u64,
    pub(crate) example: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Verdict {
    /// Includes the figure, for example `p99 of a pause 1.9 s: at most 2.3 s`.
    pub(crate) what: String,
    /// `None` if the run could not decide.
    pub(crate) held: Option<bool>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = match self.held {
            Some(true) => "held",
            Some(false) => "NOT held",
            None => "not decided",
        };
        write!(out, "{held}: {}", self.what)
    }
}

impl Outcome {
    pub(crate) fn begin(scenario: &str, title: impl Into<String>) -> Self {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed();
        Self {
            format: FORMAT.to_owned(),
            scenario: scenario.to_owned(),
            title: title.into(),
            parameters: crate::cli::options(),
            started_unix_s: since.map_or(0, |since| since.as_secs()),
            ..Self::default()
        }
    }

    /// Adds a figure that is better if it is lower.
    pub(crate) fn lower(&mut self, name: impl Into<String>, value: f64, unit: &str) {
        self.figure(name, value, unit, Better::Lower);
    }

    /// Adds a figure that is better if it is higher.
    pub(crate) fn higher(&mut self, name: impl Into<String>, value: f64, unit: &str) {
        self.figure(name, value, unit, Better::Higher);
    }

    /// Adds a figure that only describes the run.
    pub(crate) fn plain(&mut self, name: impl Into<String>, value: f64, unit: &str) {
        self.figure(name, value, unit, Better::Neither);
    }

    pub(crate) fn figure(
        &mut self,
        name: impl Into<String>,
        value: f64,
        unit: &str,
        better: Better,
    ) {
        let (name, unit) = (name.into(), unit.to_owned());
        self.figures.push(Figure {
            name,
            value,
            unit,
            better,
        });
    }

    pub(crate) fn latency(&mut self, name: impl Into<String>, histogram: &Histogram<u64>) {
        let us = |at| (at, histogram.value_at_quantile(at) as f64 / 1e3);
        self.latencies.push(Distribution {
            name: name.into(),
            count: histogram.len(),
            mean_us: histogram.mean() / 1e3,
            quantiles_us: QUANTILES.map(us).into(),
        });
    }

    pub(crate) fn series(&mut self, name: impl Into<String>, unit: &str, points: Vec<(f64, f64)>) {
        let (name, unit) = (name.into(), unit.to_owned());
        self.series.push(Series { name, unit, points });
    }

    /// Adds a point to a series, which begins with its first point.
    pub(crate) fn point(&mut self, name: &str, unit: &str, point: (f64, f64)) {
        match self.series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(point),
            None => self.series(name, unit, vec![point]),
        }
    }

    pub(crate) fn mark(&mut self, at_s: f64, what: impl Into<String>) {
        let what = what.into();
        self.marks.push(Mark { at_s, what });
    }

    /// Adds a violation, unless it happened 0 times.
    pub(crate) fn violation(&mut self, what: impl Into<String>, count: u64, example: &str) {
        if count > 0 {
            let (what, example) = (what.into(), example.to_owned());
            self.violations.push(Violation {
                what,
                count,
                example,
            });
        }
    }

    /// `held` is `None` if the run could not decide.
    pub(crate) fn verdict(&mut self, what: impl Into<String>, held: impl Into<Option<bool>>) {
        let (what, held) = (what.into(), held.into());
        self.verdicts.push(Verdict { what, held });
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.table {
            writeln!(out, "{line}")?;
        }
        writeln!(
            out,
            "{}: {} ({:.0} s)",
            self.scenario, self.title, self.seconds
        )?;
        let widths = self.figures.iter().map(|one| one.name.chars().count());
        let width = widths.max().unwrap_or(0);
        for figure in &self.figures {
            let (name, value, unit) = (&figure.name, figure.value, &figure.unit);
            writeln!(out, "  {name:<width$}  {value:>12.2} {unit}")?;
        }
        for distribution in &self.latencies {
            write!(out, "  {} ({}), ms:", distribution.name, distribution.count)?;
            for (quantile, value) in &distribution.quantiles_us {
                if *quantile >= 0.5 {
                    write!(out, "  p{} {:.2}", quantile * 100.0, value / 1e3)?;
                }
            }
            writeln!(out)?;
        }
        for violation in &self.violations {
            let (what, example) = (&violation.what, &violation.example);
            writeln!(
                out,
                "VIOLATION {what}: {}, first: {example}",
                violation.count
            )?;
        }
        for verdict in &self.verdicts {
            writeln!(out, "{verdict}")?;
        }
        write!(out, "{} kinds of violations", self.violations.len())
    }
}

#[cfg(test)]
mod tests {
    use super::Outcome;
    use crate::scenario::Finished as _;

    #[test]
    fn figures_that_miss_their_bar_do_not_make_a_run_wrong() {
        let mut outcome = Outcome::begin("idle", "nothing");
        outcome.lower("memory", 1.0, "KiB");
        outcome.verdict("memory 1 KiB: at most 0 KiB", false);
        outcome.violation("late answer", 0, "");
        assert!(outcome.is_correct());
        assert!(outcome.to_string().contains("NOT held: memory"));
        outcome.violation("wrong answer", 2, "5 for 4");
        assert!(!outcome.is_correct());
    }

    #[test]
    fn what_is_written_can_be_read() {
        let mut outcome = Outcome::begin("idle", "nothing");
        outcome.lower("memory", 1.5, "KiB");
        let text = serde_json::to_string(&outcome).expect("is JSON");
        let read: Outcome = serde_json::from_str(&text).expect("is an outcome");
        assert_eq!(read.figures[0].value, 1.5);
        assert_eq!(read.format, super::FORMAT);
    }
}
