use std::fmt;

use serde::Serialize;

use super::Named;
use crate::outcome::{Better, Figure, Outcome};

/// Below this relative difference, two values count as the same.
const SAME: f64 = 0.02;

#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    /// A head, and a line for each figure.
    lines: Vec<Vec<String>>,
    /// The name, and the value in each result.
    differing: Vec<(String, Vec<String>)>,
    /// The results with violations, and the number of their kinds.
    #[serde(skip)]
    violations: Vec<(String, usize)>,
}

impl Comparison {
    pub(super) fn of(results: &[Named]) -> Self {
        let violations = results
            .iter()
            .map(|one| (one.name.clone(), one.outcome.violations.len()));
        Self {
            lines: lines(results),
            differing: differing(results),
            violations: violations.filter(|(_, kinds)| *kinds > 0).collect(),
        }
    }

    pub(crate) fn is_correct(&self) -> bool {
        self.violations.is_empty()
    }
}

fn lines(results: &[Named]) -> Vec<Vec<String>> {
    let figures: Vec<Vec<Figure>> = results.iter().map(|one| figures(&one.outcome)).collect();
    let of = |figures: &[Figure], name: &str| figures.iter().find(|it| it.name == name).cloned();
    let first = &results[0].name;
    let mut head = vec![String::new(), first.clone()];
    for other in &results[1..] {
        head.extend([other.name.clone(), format!("over {first}")]);
    }
    let mut lines = vec![head];
    for name in distinct(figures.iter().flatten().map(|figure| &figure.name)) {
        let first = of(&figures[0], name);
        let mut line = vec![name.clone(), shown(first.as_ref())];
        for other in &figures[1..] {
            let other = of(other, name);
            line.push(shown(other.as_ref()));
            let pair = first.as_ref().zip(other);
            line.push(pair.map_or_else(String::new, |(first, other)| over(first, other.value)));
        }
        lines.push(line);
    }
    lines
}

/// Returns the figures and some quantiles of the latencies.
fn figures(outcome: &Outcome) -> Vec<Figure> {
    let measured = outcome.latencies.iter().filter(|one| one.count > 0);
    let quantiles = measured.flat_map(|latency| {
        let of = |(quantile, at): (&str, f64)| {
            let (_, us) = latency
                .quantiles_us
                .iter()
                .find(|(known, _)| *known == at)?;
            Some(Figure {
                name: format!("{}, {quantile}", latency.name),
                value: *us,
                unit: "µs".to_owned(),
                better: Better::Lower,
            })
        };
        [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)]
            .into_iter()
            .filter_map(of)
    });
    outcome.figures.iter().cloned().chain(quantiles).collect()
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

fn differing(results: &[Named]) -> Vec<(String, Vec<String>)> {
    let each = |of: &dyn Fn(&Outcome) -> String| -> Vec<String> {
        results.iter().map(|one| of(&one.outcome)).collect()
    };
    let scenario = (
        "scenario".to_owned(),
        each(&|outcome| outcome.scenario.clone()),
    );
    let names = distinct(results.iter().flat_map(|one| one.outcome.parameters.keys()));
    let options = names.into_iter().map(|name| {
        let value = |outcome: &Outcome| outcome.parameters.get(name).cloned().unwrap_or_default();
        (name.clone(), each(&value))
    });
    let all = std::iter::once(scenario).chain(options);
    all.filter(|(_, values)| values.iter().any(|value| *value != values[0]))
        .collect()
}

fn shown(figure: Option<&Figure>) -> String {
    let Some(Figure { value, unit, .. }) = figure else {
        return "–".to_owned();
    };
    let (value, unit) = match unit.as_str() {
        "µs" if *value >= 1e6 => (value / 1e6, "s"),
        "µs" if *value >= 1e3 => (value / 1e3, "ms"),
        unit => (*value, unit),
    };
    let digits = match value.fract() == 0.0 {
        true => 0,
        false => [100.0, 10.0, 1.0, 0.1]
            .iter()
            .filter(|least| value.abs() < **least)
            .count(),
    };
    format!("{value:.digits$} {unit}").trim_end().to_owned()
}

/// Returns the ratio to the first value, and whether that is better.
fn over(first: &Figure, value: f64) -> String {
    let judgement = match first.better {
        Better::Neither => "",
        // Two values of 0 are the same too.
        _ if (value - first.value).abs() <= first.value.abs() * SAME => "same",
        Better::Lower if value < first.value => "better",
        Better::Higher if value > first.value => "better",
        Better::Lower | Better::Higher => "worse",
    };
    match value / first.value {
        ratio if ratio.is_finite() => format!("{ratio:.2} × {judgement}"),
        _ if value == first.value => format!("1.00 × {judgement}"),
        _ => judgement.to_owned(),
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            let mut text = String::new();
            for (column, cell) in line.iter().enumerate() {
                let cells = self.lines.iter().map(|line| line[column].chars().count());
                let width = cells.max().unwrap_or(0);
                // Values are aligned to the right, names and judgements to the left.
                text += &match column {
                    0 => format!("{cell:<width$}"),
                    column if column > 1 && column % 2 == 1 => format!("  {cell:<width$}"),
                    _ => format!("  {cell:>width$}"),
                };
            }
            writeln!(out, "{}", text.trim_end())?;
        }
        for (name, values) in &self.differing {
            writeln!(out, "NOT ALIKE: {name} is {}", values.join(" | "))?;
        }
        for (name, violations) in &self.violations {
            writeln!(
                out,
                "VIOLATIONS in {name}: {violations} kinds; its figures are of a server that answers wrongly"
            )?;
        }
        write!(out, "within {:.0} % counts as the same", SAME * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Comparison, Named, over, shown};
    use crate::outcome::{Better, Figure, Outcome};

    fn figure(name: &str, value: f64, better: Better) -> Figure {
        Figure {
            name: name.to_owned(),
            value,
            unit: "µs".to_owned(),
            better,
        }
    }

    fn named(name: &str, figures: &[(&str, f64)]) -> Named {
        let mut outcome = Outcome::begin("load", "made up");
        outcome
            .parameters
            .insert("mode".to_owned(), name.to_owned());
        for (name, value) in figures {
            outcome.lower(*name, *value, "µs");
        }
        Named {
            name: name.to_owned(),
            outcome,
        }
    }

    #[test]
    fn each_figure_is_judged_by_which_way_is_good() {
        let judge = |first, value, better| over(&figure("", first, better), value);
        assert_eq!(judge(10.0, 9.0, Better::Lower), "0.90 × better");
        assert_eq!(judge(10.0, 9.0, Better::Higher), "0.90 × worse");
        assert_eq!(judge(10.0, 10.1, Better::Lower), "1.01 × same");
        assert_eq!(judge(10.0, 99.0, Better::Neither), "9.90 × ");
        assert_eq!(judge(0.0, 0.0, Better::Lower), "1.00 × same");
        assert_eq!(judge(0.0, 1.0, Better::Lower), "worse");
    }

    #[test]
    fn what_one_result_lacks_is_shown_as_missing_and_not_judged() {
        let a = named("a", &[("cpu", 10.0), ("only a", 1.0)]);
        let mut b = named("b", &[("cpu", 5.0), ("only b", 1.0)]);
        b.outcome.scenario = "idle".to_owned();
        let comparison = Comparison::of(&[a, b]);
        let text = comparison.to_string();
        assert_eq!(comparison.lines.len(), 4);
        assert_eq!(comparison.lines[1][3], "0.50 × better");
        assert!(comparison.lines[2][3].is_empty() && comparison.lines[3][3].is_empty());
        assert!(text.contains("0.50 × better"), "{text}");
        assert!(text.contains("NOT ALIKE: mode is a | b"), "{text}");
        assert!(
            text.contains("NOT ALIKE: scenario is load | idle"),
            "{text}"
        );
    }

    #[test]
    fn numbers_keep_what_matters() {
        let shown = |value| shown(Some(&figure("", value, Better::Lower)));
        assert_eq!(shown(12.345), "12.3 µs");
        assert_eq!(shown(0.01234), "0.0123 µs");
        assert_eq!(shown(1_500.0), "1.50 ms");
        assert_eq!(shown(-3.0), "-3 µs");
    }
}
