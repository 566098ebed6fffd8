use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shoal_testkit::check::Verdict;

use crate::failure::Failure;
use crate::outcome::Violation;

/// How the kinds of wrong answers begin.
const WRONG: &str = "wrong answer";

#[derive(Debug, Default)]
pub(crate) struct Findings {
    kinds: Mutex<BTreeMap<String, Violation>>,
}

impl Findings {
    /// Keeps the example of the first finding of a kind.
    pub(crate) fn add(&self, what: &str, example: impl std::fmt::Display) {
        let mut kinds = self.kinds();
        let kind = kinds.entry(what.to_owned()).or_insert_with(|| Violation {
            what: what.to_owned(),
            count: 0,
            example: example.to_string(),
        });
        kind.count += 1;
    }

    pub(crate) fn failed(&self, what: &str, failure: &Failure) {
        let kind = match failure {
            Failure::Wrong(_) => WRONG,
            Failure::Transport(_) => "no answer",
            Failure::Status { .. } => "refused",
        };
        self.add(&format!("{kind}: {what}"), failure);
    }

    /// Adds the findings of a check.
    pub(crate) fn judged(&self, verdict: &Verdict) {
        for finding in &verdict.findings {
            let client = finding.client.unwrap_or_default();
            let example = format_args!("client {client}: {}", finding.detail);
            self.add(&format!("{:?}", finding.violation), example);
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.kinds().values().map(|kind| kind.count).sum()
    }

    /// Counts the wrong answers among the findings.
    pub(crate) fn wrong(&self) -> u64 {
        let kinds = self.kinds();
        let wrong = kinds.values().filter(|kind| kind.what.starts_with(WRONG));
        wrong.map(|kind| kind.count).sum()
    }

    pub(crate) fn violations(&self) -> Vec<Violation> {
        self.kinds().values().cloned().collect()
    }

    fn kinds(&self) -> MutexGuard<'_, BTreeMap<String, Violation>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::Findings;

    #[test]
    fn findings_are_counted_by_kind_and_the_first_is_kept() {
        let findings = Findings::default();
        findings.add("lost", "step 2");
        findings.add("lost", "step 3");
        findings.add("doubled", "step 4");
        let violations = findings.violations();
        assert_eq!((findings.count(), violations.len()), (3, 2));
        assert_eq!(
            (violations[1].count, violations[1].example.as_str()),
            (2, "step 2")
        );
    }
}
