use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::failure::Failure;

#[derive(Debug, Default)]
pub(super) struct Tally {
    held: AtomicU64,
    most: AtomicU64,
    refused: Mutex<BTreeMap<String, u64>>,
}

pub(super) struct Holding {
    tally: Arc<Tally>,
    amount: u64,
}

impl Tally {
    pub(super) fn hold(self: &Arc<Self>, amount: u64) -> Holding {
        let held = self.held.fetch_add(amount, Ordering::Relaxed) + amount;
        self.most.fetch_max(held, Ordering::Relaxed);
        Holding {
            tally: Arc::clone(self),
            amount,
        }
    }

    pub(super) fn measured(&self, held: u64) {
        self.most.fetch_max(held, Ordering::Relaxed);
    }

    pub(super) fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    pub(super) fn refused(&self, status: u16, text: &str) {
        self.note(match (status, code(text)) {
            (0, None) => "tool error".to_owned(),
            (0, Some(code)) => code.to_string(),
            (status, None) => status.to_string(),
            (status, Some(code)) => format!("{status} {code}"),
        });
    }

    pub(super) fn failed(&self, failure: &Failure) {
        match failure {
            Failure::Status { status, body, .. } => self.refused(*status, body),
            Failure::Wrong(why) => self.refused(0, why),
            Failure::Transport(_) => self.note("connection ended".to_owned()),
        }
    }

    fn note(&self, what: String) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        *refused.entry(what).or_default() += 1;
    }

    pub(super) fn refusals(&self) -> String {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let each: Vec<String> = refused
            .iter()
            .map(|(what, count)| format!("{what} × {count}"))
            .collect();
        match each.is_empty() {
            true => "-".to_owned(),
            false => each.join(", "),
        }
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.tally.held.fetch_sub(self.amount, Ordering::Relaxed);
    }
}

fn code(text: &str) -> Option<i64> {
    let (_, rest) = text.split_once("\"code\":")?;
    let end = rest.find([',', '}']).unwrap_or(rest.len());
    rest[..end].trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Tally, code};

    #[test]
    fn the_most_that_was_held_stays() {
        let tally = Arc::new(Tally::default());
        let first = tally.hold(2);
        drop((tally.hold(3), first));
        drop(tally.hold(1));
        assert_eq!(tally.most(), 5);
    }

    #[test]
    fn refusals_are_counted_by_status_and_code() {
        let tally = Tally::default();
        for _ in 0..2 {
            tally.refused(429, r#"{"error":{"code":50300,"message":"x"}}"#);
        }
        tally.refused(503, "");
        assert_eq!(tally.refusals(), "429 50300 × 2, 503 × 1");
        assert_eq!(code(r#"{"code":-32800}"#), Some(-32800));
    }
}
