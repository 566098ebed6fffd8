//! What every scenario ends with, in one form: figures, latencies, series over time, violations and verdicts. `report` and
//! `compare` read this form, whichever scenario wrote it.

use std::collections::BTreeMap;
use std::fmt;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The form's name and version; readers refuse others.
pub(crate) const FORMAT: &str = "shoal-loadtest/1";

/// The quantiles that a latency is described by.
const QUANTILES: [f64; 10] = [0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0];

/// What one run of a scenario measured and verified.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// [`FORMAT`].
    pub(crate) format: String,
    /// The scenario's name, as on the command line.
    pub(crate) scenario: String,
    /// One line that says what was done to which server.
    pub(crate) title: String,
    /// When it began, in seconds since 1970.
    pub(crate) started_unix_s: u64,
    /// The time measured, in seconds.
    pub(crate) seconds: f64,
    /// What it was asked to do, by the names of the command line's options.
    pub(crate) parameters: BTreeMap<String, String>,
    /// Single values.
    pub(crate) figures: Vec<Figure>,
    /// Distributions.
    pub(crate) latencies: Vec<Distribution>,
    /// Values over time.
    pub(crate) series: Vec<Series>,
    /// Moments at which something was done or happened, ascending.
    #[serde(default)]
    pub(crate) marks: Vec<Mark>,
    /// Answers and streams that were not what was promised; none in a good run.
    pub(crate) violations: Vec<Violation>,
    /// What was asked of the figures, and whether it held.
    pub(crate) verdicts: Vec<Verdict>,
}

/// One value.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Figure {
    /// What it is, unique within an outcome: `edge: resident memory a stream`.
    pub(crate) name: String,
    pub(crate) value: f64,
    /// `µs`, `KiB`, `1/s`; empty for a plain number.
    pub(crate) unit: String,
    /// Which way is good, for comparisons.
    pub(crate) better: Better,
}

/// Which way a figure gets better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Better {
    Lower,
    Higher,
    /// Neither: it only describes the run.
    Neither,
}

/// How long something took, in microseconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Distribution {
    /// What took that long, unique within an outcome.
    pub(crate) name: String,
    pub(crate) count: u64,
    pub(crate) mean_us: f64,
    /// Pairs of a quantile (0 to 1) and the value that this share of all does not exceed, ascending.
    pub(crate) quantiles_us: Vec<(f64, f64)>,
}

impl Distribution {
    /// The distribution in a histogram of nanoseconds.
    pub(crate) fn of(name: impl Into<String>, histogram: &Histogram<u64>) -> Self {
        let quantiles = QUANTILES.iter();
        Self {
            name: name.into(),
            count: histogram.len(),
            mean_us: histogram.mean() / 1e3,
            quantiles_us: quantiles
                .map(|&at| (at, histogram.value_at_quantile(at) as f64 / 1e3))
                .collect(),
        }
    }
}

/// A value over time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Series {
    /// What it is, unique within an outcome.
    pub(crate) name: String,
    pub(crate) unit: String,
    /// Pairs of the seconds since the run began and the value, ascending.
    pub(crate) points: Vec<(f64, f64)>,
}

/// A moment of the run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// Seconds since the run began, as in the series.
    pub(crate) at_s: f64,
    /// What was done or happened: `session node killed`.
    pub(crate) what: String,
}

/// Something that must not happen, and did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Violation {
    /// What it was.
    pub(crate) what: String,
    pub(crate) count: u64,
    /// The first of them, in words.
    pub(crate) example: String,
}

/// Whether a figure is what was asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Verdict {
    /// What was asked, with the figure that answers it: `p99 of a pause 1.9 s: at most 2.3 s`.
    pub(crate) what: String,
    /// `None` where the run could not decide it.
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
    /// An outcome with nothing in it yet, of a run that begins now.
    pub(crate) fn begin(scenario: &str, title: impl Into<String>) -> Self {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed();
        Self {
            format: FORMAT.to_owned(),
            scenario: scenario.to_owned(),
            title: title.into(),
            started_unix_s: since.map_or(0, |since| since.as_secs()),
            seconds: 0.0,
            parameters: BTreeMap::new(),
            figures: Vec::new(),
            latencies: Vec::new(),
            series: Vec::new(),
            marks: Vec::new(),
            violations: Vec::new(),
            verdicts: Vec::new(),
        }
    }

    /// Adds a figure.
    pub(crate) fn figure(
        &mut self,
        name: impl Into<String>,
        value: f64,
        unit: &str,
        better: Better,
    ) {
        self.figures.push(Figure {
            name: name.into(),
            value,
            unit: unit.to_owned(),
            better,
        });
    }

    /// Whether all that was verified was right; figures have no say in it.
    pub(crate) fn is_correct(&self) -> bool {
        self.violations.is_empty()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "{}: {} ({:.0} s)",
            self.scenario, self.title, self.seconds
        )?;
        let width = self
            .figures
            .iter()
            .map(|figure| figure.name.chars().count());
        let width = width.max().unwrap_or(0);
        for Figure {
            name, value, unit, ..
        } in &self.figures
        {
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
        for Violation {
            what,
            count,
            example,
        } in &self.violations
        {
            writeln!(out, "VIOLATION {what}: {count}, first: {example}")?;
        }
        for verdict in &self.verdicts {
            writeln!(out, "{verdict}")?;
        }
        write!(out, "{} kinds of violations", self.violations.len())
    }
}

#[cfg(test)]
mod tests {
    use super::{Better, Outcome, Verdict, Violation};

    #[test]
    fn figures_that_miss_their_bar_do_not_make_a_run_wrong() {
        let mut outcome = Outcome::begin("idle", "nothing");
        outcome.figure("memory", 1.0, "KiB", Better::Lower);
        outcome.verdicts.push(Verdict {
            what: "memory 1 KiB: at most 0 KiB".to_owned(),
            held: Some(false),
        });
        assert!(outcome.is_correct());
        assert!(outcome.to_string().contains("NOT held: memory"));
        outcome.violations.push(Violation {
            what: "wrong answer".to_owned(),
            count: 2,
            example: "5 for 4".to_owned(),
        });
        assert!(!outcome.is_correct());
    }

    #[test]
    fn what_is_written_can_be_read() {
        let mut outcome = Outcome::begin("idle", "nothing");
        outcome.figure("memory", 1.5, "KiB", Better::Lower);
        let text = serde_json::to_string(&outcome).expect("is JSON");
        let read: Outcome = serde_json::from_str(&text).expect("is an outcome");
        assert_eq!(read.figures[0].value, 1.5);
        assert_eq!(read.format, super::FORMAT);
    }
}
