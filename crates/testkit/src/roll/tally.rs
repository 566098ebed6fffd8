//! Counts failures as an ordinary client sees them.
//!
//! Unlike [`crate::check`], the tally counts each failed exchange, even if the patient client succeeded later: a
//! refusal, an error, a failed connection, or an answer that broke off before an event id.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde::Serialize;

use crate::check::{self, Ledger, Rules, Violation};
use crate::history::{Answer, Channel, Ended, Entry, History, Message, Step, Tool, Work};

/// A failure that an ordinary client would show its user.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failure {
    /// The time since the run began.
    pub at: Duration,
    /// The client.
    pub client: usize,
    /// A description.
    pub what: String,
}

/// A call that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// When the call was made, since the run began.
    pub at: Duration,
    /// How long the call took.
    pub took: Duration,
    /// How long the call's tool works by itself.
    pub takes: Duration,
}

/// The totals of all clients.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tally {
    /// Requests: calls, streams opened, sessions opened.
    pub requests: u64,
    /// Calls answered with their result.
    pub answered: u64,
    /// The failures.
    pub failures: Vec<Failure>,
    /// When clients had to open another session.
    pub reinitialised: Vec<Duration>,
    /// Events that were lost or out of order.
    pub lost: u64,
    /// Events or answers that came twice.
    pub doubled: u64,
    /// Surplus executions of calls that must not be repeated.
    pub executed_twice: u64,
    /// Descriptions of all broken promises.
    pub violations: Vec<String>,
    /// When streams were resumed with an event id.
    pub resumes: Vec<Duration>,
    /// Listening streams that modern clients had to open again.
    pub told_to_return: u64,
    /// The calls that were answered.
    #[serde(skip)]
    pub samples: Vec<Sample>,
}

impl Tally {
    /// The first `sessions` clients have sessions.
    pub(super) fn of(histories: &[History], sessions: usize, ledger: &Ledger) -> Self {
        let mut tally = Self::default();
        for history in histories {
            tally.count(history, history.client >= sessions);
        }
        tally.answered = tally.samples.len() as u64;
        tally.failures.sort_by_key(|failure| failure.at);
        let verdict = check::check(histories, ledger, &Rules::default());
        let count = |violation| verdict.count(violation) as u64;
        tally.lost = count(Violation::Lost) + count(Violation::OutOfOrder);
        tally.doubled = count(Violation::Duplicated);
        tally.executed_twice += count(Violation::ExecutedTwice);
        tally.violations = verdict.findings.iter().map(ToString::to_string).collect();
        tally
    }

    /// Whether all promises were kept and nothing failed.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.failures.is_empty() && self.reinitialised.is_empty() && self.violations.is_empty()
    }

    fn count(&mut self, history: &History, modern: bool) {
        let mut calls: HashMap<u64, (Duration, &Work)> = HashMap::new();
        let mut primed: HashSet<Channel> = HashSet::from([Channel::Standalone]);
        let mut told_gone: HashSet<&str> = HashSet::new();
        // The greatest surplus so far in an answer of the tool that counts its calls: the number of
        // repeated executions.
        let mut ahead = 0;
        for Entry { at, step } in &history.entries {
            let mut failed = |what: String| {
                self.failures.push(Failure {
                    at: *at,
                    client: history.client,
                    what,
                });
            };
            match step {
                Step::Opening => self.requests += 1,
                Step::Sent { request, work, .. } => {
                    self.requests += 1;
                    calls.insert(*request, (*at, work));
                }
                Step::Listening { after, .. } => {
                    self.requests += 1;
                    self.resumes.extend(after.is_some().then_some(*at));
                }
                Step::Refused {
                    channel,
                    status,
                    code,
                    message,
                } => failed(format!("{channel:?}: {status}, {code:?}: {message}")),
                Step::Forgotten { session, .. } => {
                    if told_gone.insert(session) {
                        self.reinitialised.push(*at);
                    }
                }
                Step::Received {
                    channel,
                    id,
                    message,
                } => {
                    if id.is_some() {
                        primed.insert(*channel);
                    }
                    let Message::Response { request, answer } = message else {
                        continue;
                    };
                    if !matches!(answer, Answer::Result { failed: false, .. }) {
                        failed(format!("{channel:?}: {answer:?}"));
                    }
                    // Ignores a second answer to the same request, which `crate::check` reports.
                    if let Some((sent, work)) = calls.remove(request) {
                        let more = counted_too_often(work, answer);
                        self.executed_twice += more.saturating_sub(ahead);
                        ahead = ahead.max(more);
                        self.samples.push(Sample {
                            at: sent,
                            took: *at - sent,
                            takes: work.takes(),
                        });
                    }
                }
                Step::Ended {
                    channel,
                    how,
                    answered,
                    cause,
                    tag,
                } => {
                    if !answered || !primed.contains(channel) {
                        failed(format!("{channel:?}, exchange {tag}: {how:?}: {cause}"));
                    } else if modern && *how == Ended::Orderly {
                        self.told_to_return += 1;
                    }
                }
                Step::Opened { .. } | Step::Replied { .. } => {}
            }
        }
    }
}

fn counted_too_often(work: &Work, answer: &Answer) -> u64 {
    match answer {
        Answer::Result { text, .. } if work.tool == Tool::CountUp => {
            let counted: u64 = text.parse().unwrap_or(0);
            counted.saturating_sub(u64::from(work.steps))
        }
        _ => 0,
    }
}
