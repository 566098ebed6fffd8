use std::fmt;

use super::number::{quantile, short, time_us};
use super::read::Named;
use crate::outcome::{Better, Figure, Outcome};

/// Below this relative difference, two values count as the same.
const SAME: f64 = 0.02;

const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];

#[derive(Debug)]
pub(crate) struct Comparison {
    pub(super) names: Vec<String>,
    pub(super) rows: Vec<Row>,
    /// The name, and the value in each result.
    pub(super) differing: Vec<(String, Vec<String>)>,
    violations: Vec<usize>,
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: String,
    /// `None` if a result lacks the value.
    pub(super) values: Vec<Option<String>>,
    pub(super) against_first: Vec<Option<Against>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Against {
    pub(super) ratio: f64,
    pub(super) judgement: Judgement,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judgement {
    Better,
    Worse,
    Same,
    None,
}

impl Judgement {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::None => "",
        }
    }
}

impl Comparison {
    pub(super) fn of(results: &[Named]) -> Self {
        let outcomes: Vec<&Outcome> = results.iter().map(|named| &named.outcome).collect();
        let mut rows = Vec::new();
        for name in names(&outcomes, |outcome| {
            outcome.figures.iter().map(|figure| &figure.name)
        }) {
            let find = |outcome: &&Outcome| {
                outcome
                    .figures
                    .iter()
                    .find(|figure| figure.name == name)
                    .cloned()
            };
            let figures: Vec<Option<Figure>> = outcomes.iter().map(find).collect();
            let better = figures
                .iter()
                .flatten()
                .next()
                .map_or(Better::Neither, |figure| figure.better);
            let text = |figure: &Figure| {
                format!("{} {}", short(figure.value), figure.unit)
                    .trim_end()
                    .to_owned()
            };
            let texts = figures
                .iter()
                .map(|figure| figure.as_ref().map(text))
                .collect();
            let values: Vec<Option<f64>> = figures
                .iter()
                .map(|figure| figure.as_ref().map(|figure| figure.value))
                .collect();
            rows.push(row(name, texts, &values, better));
        }
        for name in names(&outcomes, |outcome| {
            outcome.latencies.iter().map(|latency| &latency.name)
        }) {
            for at in QUANTILES {
                let find = |outcome: &&Outcome| {
                    let latency = outcome
                        .latencies
                        .iter()
                        .find(|latency| latency.name == name)?;
                    let pair = latency
                        .quantiles_us
                        .iter()
                        .find(|(quantile, _)| *quantile == at)?;
                    (latency.count > 0).then_some(pair.1)
                };
                let values: Vec<Option<f64>> = outcomes.iter().map(find).collect();
                let texts = values.iter().map(|value| value.map(time_us)).collect();
                rows.push(row(
                    format!("{name}, {}", quantile(at)),
                    texts,
                    &values,
                    Better::Lower,
                ));
            }
        }
        Self {
            names: results.iter().map(|named| named.name.clone()).collect(),
            rows,
            differing: differing(&outcomes),
            violations: outcomes
                .iter()
                .map(|outcome| outcome.violations.len())
                .collect(),
        }
    }

    pub(crate) fn is_correct(&self) -> bool {
        self.violations.iter().all(|violations| *violations == 0)
    }
}

fn names<'a, I: Iterator<Item = &'a String>>(
    outcomes: &[&'a Outcome],
    of: impl Fn(&'a Outcome) -> I,
) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in outcomes.iter().flat_map(|outcome| of(outcome)) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

fn differing(outcomes: &[&Outcome]) -> Vec<(String, Vec<String>)> {
    let of =
        |outcome: &Outcome, name: &str| outcome.parameters.get(name).cloned().unwrap_or_default();
    let scenarios = outcomes.iter().map(|outcome| outcome.scenario.clone());
    let scenario: (String, Vec<String>) = ("scenario".to_owned(), scenarios.collect());
    let all = names(outcomes, |outcome| outcome.parameters.keys());
    let values = all.into_iter().map(|name| {
        let values: Vec<String> = outcomes.iter().map(|outcome| of(outcome, &name)).collect();
        (name, values)
    });
    std::iter::once(scenario)
        .chain(values)
        .filter(|(_, values)| values.iter().any(|value| *value != values[0]))
        .collect()
}

fn row(name: String, texts: Vec<Option<String>>, values: &[Option<f64>], better: Better) -> Row {
    let first = values.first().copied().flatten();
    let others = values.iter().skip(1);
    Row {
        name,
        values: texts,
        against_first: others
            .map(|value| Some(against(first?, (*value)?, better)))
            .collect(),
    }
}

fn against(first: f64, value: f64, better: Better) -> Against {
    let ratio = if value == first { 1.0 } else { value / first };
    let judgement = match better {
        Better::Neither => Judgement::None,
        // Two values of 0 are the same too.
        _ if (value - first).abs() <= first.abs() * SAME => Judgement::Same,
        Better::Lower if value < first => Judgement::Better,
        Better::Higher if value > first => Judgement::Better,
        Better::Lower | Better::Higher => Judgement::Worse,
    };
    Against { ratio, judgement }
}

impl fmt::Display for Against {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ratio.is_finite() {
            write!(out, "{:.2} × ", self.ratio)?;
        }
        write!(out, "{}", self.judgement.word())
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = vec![Vec::new(), vec![String::new(), self.names[0].clone()]];
        for name in &self.names[1..] {
            lines[1].extend([name.clone(), format!("over {}", self.names[0])]);
        }
        lines.remove(0);
        for row in &self.rows {
            let value = |index: usize| row.values[index].clone().unwrap_or_else(|| "–".to_owned());
            let mut line = vec![row.name.clone(), value(0)];
            for (index, against) in row.against_first.iter().enumerate() {
                line.push(value(index + 1));
                line.push(against.map_or_else(String::new, |against| against.to_string()));
            }
            lines.push(line);
        }
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
        let widths: Vec<usize> = (0..lines[0].len())
            .map(|column| width(column).unwrap_or(0))
            .collect();
        for line in &lines {
            let mut text = String::new();
            for (place, (cell, width)) in line.iter().zip(&widths).enumerate() {
                let cell = match place {
                    0 => format!("{cell:<width$}"),
                    _ if place % 2 == 1 && place > 1 => format!("  {cell:<width$}"),
                    _ => format!("  {cell:>width$}"),
                };
                text.push_str(&cell);
            }
            writeln!(out, "{}", text.trim_end())?;
        }
        for (name, values) in &self.differing {
            writeln!(out, "NOT ALIKE: {name} is {}", values.join(" | "))?;
        }
        for (name, violations) in self.names.iter().zip(&self.violations) {
            if *violations > 0 {
                writeln!(
                    out,
                    "VIOLATIONS in {name}: {violations} kinds; its figures are of a server that answers wrongly"
                )?;
            }
        }
        write!(out, "within {:.0} % counts as the same", SAME * 100.0)
    }
}

#[cfg(test)]
mod tests;
