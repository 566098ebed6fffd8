use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::outcome::Outcome;
use crate::scenario::Finished;

/// Maximum ratio of the good tenant's p99 to its baseline.
pub(super) const SLOWER: f64 = 3.0;

#[derive(Debug)]
pub(super) struct Memory {
    pub(super) process: String,
    pub(super) most_kib: u64,
    pub(super) bound_kib: u64,
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) item: String,
    pub(super) held: u64,
    pub(super) setting: String,
    /// The limit of all processes together.
    pub(super) limit: u64,
    pub(super) refused: String,
    pub(super) baseline: Duration,
    pub(super) beside: Duration,
    pub(super) slowest: Vec<String>,
    pub(super) calls: u64,
    pub(super) failed: u64,
    pub(super) first_failure: Option<String>,
    /// CPU seconds of all processes per second, in the baseline and beside the hostile tenant.
    pub(super) cpu: [f64; 2],
    pub(super) memory: Vec<Memory>,
}

impl Row {
    pub(super) fn ratio(&self) -> f64 {
        self.beside.as_secs_f64() / self.baseline.as_secs_f64().max(f64::EPSILON)
    }

    pub(super) fn faults(&self) -> Vec<(&'static str, String)> {
        let item = &self.item;
        let mut faults = Vec::new();
        if self.failed > 0 {
            let first = self.first_failure.as_deref().unwrap_or_default();
            faults.push((
                "a call of the good tenant failed",
                format!("{item}: {first}"),
            ));
        }
        if self.ratio() > SLOWER {
            let slowest = self.slowest.join(", ");
            let text = format!(
                "{item}: p99 {:.1} × the baseline; slowest {slowest}",
                self.ratio()
            );
            faults.push(("the good tenant noticed", text));
        }
        for Memory {
            process,
            most_kib,
            bound_kib,
            ..
        } in &self.memory
        {
            if most_kib > bound_kib {
                let text = format!("{item}: {process} {most_kib} KiB of {bound_kib}");
                faults.push(("more memory than the configuration says", text));
            }
        }
        faults
    }

    fn fullest(&self) -> Option<&Memory> {
        let share = |memory: &&Memory| memory.most_kib * 1000 / memory.bound_kib.max(1);
        self.memory.iter().max_by_key(share)
    }
}

/// The rows, and the outcome, which alone is written as JSON.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Table {
    #[serde(skip)]
    pub(super) rows: Vec<Row>,
    pub(super) outcome: Outcome,
}

impl Finished for Table {
    fn is_correct(&self) -> bool {
        self.outcome.is_correct()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "| item | held at most | may hold | refused | good p99, baseline → beside | × | failed | RSS at most / bound | CPU/s |\n\
             |---|--:|---|---|--:|--:|--:|---|---|"
        )?;
        for row in &self.rows {
            let ms = |time: Duration| time.as_secs_f64() * 1e3;
            write!(
                out,
                "| {} | {} | {} ({}) | {} | {:.1} → {:.1} ms | {:.2} | {} of {} | ",
                row.item,
                row.held,
                row.limit,
                row.setting,
                row.refused,
                ms(row.baseline),
                ms(row.beside),
                row.ratio(),
                row.failed,
                row.calls,
            )?;
            if let Some(Memory {
                process,
                most_kib,
                bound_kib,
                ..
            }) = row.fullest()
            {
                write!(
                    out,
                    "{process} {} / {} MiB",
                    most_kib >> 10,
                    bound_kib >> 10
                )?;
            }
            writeln!(out, " | {:.2} → {:.2} |", row.cpu[0], row.cpu[1])?;
        }
        write!(out, "\n{}", self.outcome)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Memory, Row};

    fn row() -> Row {
        Row {
            item: "sessions".to_owned(),
            held: 1,
            setting: "limits.sessions_per_principal".to_owned(),
            limit: 2,
            refused: "-".to_owned(),
            baseline: Duration::from_millis(10),
            beside: Duration::from_millis(29),
            slowest: Vec::new(),
            calls: 100,
            failed: 0,
            first_failure: None,
            cpu: [0.1, 0.2],
            memory: vec![Memory {
                process: "edge 1".to_owned(),
                most_kib: 100,
                bound_kib: 100,
            }],
        }
    }

    #[test]
    fn whoever_is_slower_fails_or_grows_is_at_fault() {
        assert!(row().faults().is_empty());
        let change = |change: fn(&mut Row)| {
            let mut row = row();
            change(&mut row);
            row.faults().len()
        };
        assert_eq!(change(|row| row.beside = Duration::from_millis(31)), 1);
        assert_eq!(change(|row| row.failed = 1), 1);
        assert_eq!(change(|row| row.memory[0].most_kib = 101), 1);
    }
}
