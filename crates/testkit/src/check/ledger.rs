use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::Context as _;

use super::{Verdict, Violation};

/// The number of executions of each nonce.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger(HashMap<String, u32>);

impl Ledger {
    /// Reads the file of nonces, one line for each execution of an unsafe tool. A missing file means no executions.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        Ok(text.lines().collect())
    }

    pub(super) fn executions(&self, nonce: &str) -> u32 {
        self.0.get(nonce).copied().unwrap_or_default()
    }

    pub(super) fn check(&self, asked: &HashSet<String>, verdict: &mut Verdict) {
        for (nonce, times) in &self.0 {
            verdict.counts.executions += u64::from(*times);
            if !asked.contains(nonce) {
                let detail = format!("{nonce:?} was executed, and nobody asked for it");
                verdict.find(None, Violation::WrongOutcome, detail);
            }
        }
    }
}

impl<'a> FromIterator<&'a str> for Ledger {
    fn from_iter<I: IntoIterator<Item = &'a str>>(nonces: I) -> Self {
        let mut executions: HashMap<String, u32> = HashMap::new();
        for nonce in nonces {
            *executions.entry(nonce.to_owned()).or_default() += 1;
        }
        Self(executions)
    }
}
