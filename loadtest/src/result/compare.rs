use std::fmt;

use serde::Serialize;

use super::number::{quantile, short, time_us};
use super::read::Named;
use crate::outcome::{Better, Outcome};

/// Below this relative difference, two values count as the same.
const SAME: f64 = 0.02;

const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];

#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    #[serde(skip)]
    names: Vec<String>,
    /// A head, and a line for each row.
    lines: Vec<Vec<String>>,
    /// The name, and the value in each result.
    differing: Vec<(String, Vec<String>)>,
    #[serde(skip)]
    violations: Vec<usize>,
}

#[derive(Debug)]
struct Row {
    name: String,
    /// `None` if a result lacks the value.
    values: Vec<Option<String>>,
    against_first: Vec<Option<Against>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Against {
    ratio: f64,
    judgement: Judgement,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judgement {
    Better,
    Worse,
    Same,
    None,
}

impl Judgement {
    fn word(self) -> &'static str {
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
        let names: Vec<String> = results.iter().map(|named| named.name.clone()).collect();
        let values: Vec<Vec<Value>> = outcomes.iter().map(|outcome| values(outcome)).collect();
        let all = distinct(values.iter().flatten().map(|value| &value.name));
        let row = |name: &&String| {
            let of = |one: &Vec<Value>| one.iter().find(|value| value.name == **name).cloned();
            row(name, &values.iter().map(of).collect::<Vec<_>>())
        };
        let rows: Vec<Row> = all.iter().map(row).collect();
        Self {
            lines: lines(&names, &rows),
            names,
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

#[derive(Debug, Clone)]
struct Value {
    name: String,
    value: f64,
    text: String,
    better: Better,
}

/// Returns the figures and some quantiles of the latencies.
fn values(outcome: &Outcome) -> Vec<Value> {
    let figures = outcome.figures.iter().map(|figure| Value {
        name: figure.name.clone(),
        value: figure.value,
        text: format!("{} {}", short(figure.value), figure.unit)
            .trim_end()
            .to_owned(),
        better: figure.better,
    });
    let measured = outcome.latencies.iter().filter(|latency| latency.count > 0);
    let quantiles = measured.flat_map(|latency| {
        let asked = |(at, _): &&(f64, f64)| QUANTILES.contains(at);
        latency
            .quantiles_us
            .iter()
            .filter(asked)
            .map(move |&(at, us)| Value {
                name: format!("{}, {}", latency.name, quantile(at)),
                value: us,
                text: time_us(us),
                better: Better::Lower,
            })
    });
    figures.chain(quantiles).collect()
}

fn distinct<'a>(all: impl Iterator<Item = &'a String>) -> Vec<&'a String> {
    let mut names = Vec::new();
    for name in all {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn differing(outcomes: &[&Outcome]) -> Vec<(String, Vec<String>)> {
    let of =
        |outcome: &Outcome, name: &str| outcome.parameters.get(name).cloned().unwrap_or_default();
    let scenarios = outcomes.iter().map(|outcome| outcome.scenario.clone());
    let scenario: (String, Vec<String>) = ("scenario".to_owned(), scenarios.collect());
    let all = distinct(
        outcomes
            .iter()
            .flat_map(|outcome| outcome.parameters.keys()),
    );
    let values = all.into_iter().map(|name| {
        let values: Vec<String> = outcomes.iter().map(|outcome| of(outcome, name)).collect();
        (name.clone(), values)
    });
    std::iter::once(scenario)
        .chain(values)
        .filter(|(_, values)| values.iter().any(|value| *value != values[0]))
        .collect()
}

fn row(name: &str, values: &[Option<Value>]) -> Row {
    let first = values.first().and_then(Option::as_ref);
    let against = |value: &Option<Value>| {
        let (first, value) = (first?, value.as_ref()?);
        Some(against(first.value, value.value, first.better))
    };
    let text = |value: &Option<Value>| value.as_ref().map(|value| value.text.clone());
    Row {
        name: name.to_owned(),
        values: values.iter().map(text).collect(),
        against_first: values.iter().skip(1).map(against).collect(),
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

fn lines(names: &[String], rows: &[Row]) -> Vec<Vec<String>> {
    let mut head = vec![String::new(), names[0].clone()];
    for name in &names[1..] {
        head.extend([name.clone(), format!("over {}", names[0])]);
    }
    let line = |row: &Row| {
        let value = |index: usize| row.values[index].clone().unwrap_or_else(|| "–".to_owned());
        let mut line = vec![row.name.clone(), value(0)];
        for (index, against) in row.against_first.iter().enumerate() {
            line.push(value(index + 1));
            line.push(against.map_or_else(String::new, |against| against.to_string()));
        }
        line
    };
    std::iter::once(head).chain(rows.iter().map(line)).collect()
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = &self.lines;
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
        let widths: Vec<usize> = (0..lines[0].len())
            .map(|column| width(column).unwrap_or(0))
            .collect();
        for line in lines {
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
