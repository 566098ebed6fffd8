//! Checks Shoal's promises (`docs/guarantees.md`) in the clients' histories and the ledger of executions. [`Rules`]
//! say what the faults of a run excuse.

mod attempt;
mod call;
mod ledger;
mod replay;
mod rules;
mod session;
mod streams;
#[cfg(test)]
mod tests;
mod verdict;

use std::collections::BTreeMap;

pub use ledger::Ledger;
pub use rules::{Outage, Rules};
pub(crate) use session::is_passing;
pub use verdict::{Counts, Finding, Verdict, Violation};

use self::call::CallRecord;
use crate::history::{Channel, Ended, Entry, History, Message, Step};

/// Shoal's own JSON-RPC error codes (`docs/errors.md`).
pub mod code {
    /// A limit was reached before the request ran.
    pub const OVERLOADED: i64 = 50_300;
    /// The request did not run.
    pub const NOT_EXECUTED: i64 = 50_301;
    /// The call started, and its outcome is unknown.
    pub const OUTCOME_UNKNOWN: i64 = 50_002;
    /// The session, the stream or its history is gone.
    pub const GONE: i64 = 50_410;
}

/// Checks all histories against the ledger.
#[must_use]
pub fn check(histories: &[History], ledger: &Ledger, rules: &Rules) -> Verdict {
    let mut verdict = Verdict::default();
    check_more(&mut verdict, histories, ledger, rules);
    verdict
}

/// Adds the result of a check to a verdict.
pub fn check_more(verdict: &mut Verdict, histories: &[History], ledger: &Ledger, rules: &Rules) {
    let mut nonces = std::collections::HashSet::new();
    for history in histories {
        let mut findings = Findings {
            client: history.client,
            verdict,
        };
        count(&history.entries, &mut findings.verdict.counts);
        session::check(&history.entries, rules, &mut findings);
        streams::check(&history.entries, &mut findings);
        replay::check(&history.entries, &mut findings);
        for call in calls(&history.entries) {
            call.check(ledger, rules, &mut findings);
            nonces.insert(call.nonce().to_owned());
        }
    }
    ledger.check(&nonces, verdict);
}

struct Findings<'a> {
    client: usize,
    verdict: &'a mut Verdict,
}

impl Findings<'_> {
    fn find(&mut self, violation: Violation, detail: impl Into<String>) {
        self.verdict.find(Some(self.client), violation, detail);
    }
}

fn calls(entries: &[Entry]) -> Vec<CallRecord> {
    let mut calls: BTreeMap<u64, CallRecord> = BTreeMap::new();
    let mut call_of: BTreeMap<u64, u64> = BTreeMap::new();
    for entry in entries {
        if let Step::Sent { request, work, .. } = &entry.step {
            call_of.insert(*request, work.call);
            calls
                .entry(work.call)
                .or_insert_with(|| CallRecord::new(work.clone()))
                .sent(*request, entry.at);
        } else if let Some(request) = entry.step.request() {
            let call = call_of.get(&request).and_then(|call| calls.get_mut(call));
            if let Some(call) = call {
                call.step(request, entry);
            }
        }
    }
    calls.into_values().collect()
}

fn count(entries: &[Entry], counts: &mut Counts) {
    for entry in entries {
        match &entry.step {
            Step::Opened { .. } => counts.sessions += 1,
            Step::Forgotten { .. } => counts.forgotten += 1,
            Step::Sent { .. } => counts.requests += 1,
            Step::Refused { status, .. } => *counts.refused.entry(*status).or_default() += 1,
            Step::Listening {
                channel: Channel::Replay(_),
                ..
            } => counts.replays += 1,
            Step::Listening { after, .. } => counts.resumes += u64::from(after.is_some()),
            Step::Received {
                message, channel, ..
            } => {
                let standalone = *channel == Channel::Standalone;
                counts.changes += u64::from(standalone && message.is_notification());
                counts.events += u64::from(!matches!(message, Message::Prime));
            }
            Step::Ended { how, .. } => match how {
                Ended::Willingly => counts.left += 1,
                Ended::Orderly | Ended::Broken => counts.breaks += 1,
            },
            Step::Opening | Step::Replied { .. } => {}
        }
    }
}
