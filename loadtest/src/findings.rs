use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::failure::Failure;
use crate::outcome::Violation;

#[derive(Debug, Default)]
pub(crate) struct Findings {
    kinds: Mutex<BTreeMap<String, (u64, String)>>,
}

impl Findings {
    /// Keeps the example of the first finding of a kind.
    pub(crate) fn add(&self, what: &str, example: impl std::fmt::Display) {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        match kinds.get_mut(what) {
            Some((count, _)) => *count += 1,
            None => {
                kinds.insert(what.to_owned(), (1, example.to_string()));
            }
        }
    }

    pub(crate) fn failed(&self, what: &str, failure: &Failure) {
        let kind = match failure {
            Failure::Wrong(_) => "wrong answer",
            Failure::Transport(_) => "no answer",
            Failure::Status { .. } => "refused",
        };
        self.add(kind, format_args!("{what}: {failure}"));
    }

    pub(crate) fn count(&self) -> u64 {
        let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        kinds.values().map(|(count, _)| count).sum()
    }

    pub(crate) fn violations(&self) -> Vec<Violation> {
        let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let violation = |(what, (count, example)): (&String, &(u64, String))| Violation {
            what: what.clone(),
            count: *count,
            example: example.clone(),
        };
        kinds.iter().map(violation).collect()
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
