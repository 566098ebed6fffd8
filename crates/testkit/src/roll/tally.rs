//! Counts failures as an ordinary client sees them.
//!
//! Unlike [`crate::check`], the tally counts each failed exchange, even if the patient client succeeded later: a
//! refusal, an error, a failed connection, or an answer that broke off before an event id.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::load::Seen;
use super::modern::Notes;
use crate::check::{self, Ledger, Rules, Verdict, Violation};
use crate::history::{Answer, Channel, Ended, Entry, History, Message, Step, Tool, Work};

/// A failure that an ordinary client would show its user.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failure {
    /// The time since the run began.
    pub at: Duration,
    /// The client.
    pub client: String,
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
    /// Resumable streams that broke instead of being closed cleanly.
    pub broken_off: u64,
    /// Listening streams that modern clients had to open again.
    pub told_to_return: u64,
    /// When requests were sent.
    #[serde(skip)]
    pub sent: Vec<Duration>,
    /// The calls that were answered.
    #[serde(skip)]
    pub samples: Vec<Sample>,
}

impl Tally {
    pub(super) fn of(seen: &Seen, ledger: &Ledger) -> Self {
        let mut tally = Self::default();
        for history in &seen.legacy {
            tally.legacy(history);
        }
        for notes in &seen.modern {
            tally.modern(notes);
        }
        let verdict = check::check(&seen.legacy, ledger, &Rules::default());
        tally.judged(&verdict);
        if seen.unfinished > 0 {
            let unfinished = format!("{} calls did not end at all", seen.unfinished);
            tally.violations.push(unfinished);
        }
        tally.failures.sort_by_key(|failure| failure.at);
        tally
    }

    /// Whether all promises were kept and nothing failed.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.failures.is_empty() && self.reinitialised.is_empty() && self.violations.is_empty()
    }

    fn judged(&mut self, verdict: &Verdict) {
        let count = |violation| verdict.count(violation) as u64;
        self.lost = count(Violation::Lost) + count(Violation::OutOfOrder);
        self.doubled = count(Violation::Duplicated);
        self.executed_twice += count(Violation::ExecutedTwice);
        let described = verdict.findings.iter().map(|finding| {
            let client = finding
                .client
                .map_or_else(String::new, |client| client.to_string());
            format!(
                "{:?}: client {client}: {}",
                finding.violation, finding.detail
            )
        });
        self.violations.extend(described);
    }

    fn legacy(&mut self, history: &History) {
        let mut calls: HashMap<u64, (Duration, Work)> = HashMap::new();
        let mut primed: HashSet<Channel> = HashSet::new();
        let mut told_gone: HashSet<&str> = HashSet::new();
        // The greatest surplus so far in an answer of the tool that counts its calls: the number of
        // repeated executions.
        let mut ahead = 0;
        for Entry { at, step } in &history.entries {
            let mut failed = |what: String| {
                self.failures.push(Failure {
                    at: *at,
                    client: history.client.to_string(),
                    what,
                });
            };
            match step {
                Step::Opening => self.sent.push(*at),
                Step::Sent { request, work, .. } => {
                    self.sent.push(*at);
                    calls.insert(*request, (*at, work.clone()));
                }
                Step::Listening { after, .. } => {
                    self.sent.push(*at);
                    if after.is_some() {
                        self.resumes.push(*at);
                    }
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
                    if let Message::Response { request, answer } = message {
                        match answer {
                            Answer::Result { failed: false, .. } => {}
                            bad => failed(format!("{channel:?}: {bad:?}")),
                        }
                        // Ignores a second answer to the same request, which `crate::check`
                        // reports.
                        if let Some((sent, work)) = calls.remove(request) {
                            let more = counted_too_often(&work, answer);
                            self.executed_twice += more.saturating_sub(ahead);
                            ahead = ahead.max(more);
                            self.samples.push(Sample {
                                at: sent,
                                took: *at - sent,
                                takes: work.takes(),
                            });
                        }
                    }
                }
                Step::Ended {
                    channel,
                    how,
                    answered,
                    cause,
                    tag,
                } => {
                    let has_way_back = primed.contains(channel) || *channel == Channel::Standalone;
                    if !answered || !has_way_back {
                        failed(format!("{channel:?}, exchange {tag}: {how:?}: {cause}"));
                    } else if *how == Ended::Broken {
                        self.broken_off += 1;
                    }
                }
                Step::Opened { .. } | Step::Replied { .. } => {}
            }
        }
        self.count();
    }

    fn modern(&mut self, notes: &Arc<Notes>) {
        let seen = notes.seen();
        self.sent.extend(seen.sent);
        self.samples.extend(seen.answered);
        self.failures.extend(seen.failed);
        self.told_to_return += seen.told_to_return;
        self.count();
    }

    fn count(&mut self) {
        self.requests = self.sent.len() as u64;
        self.answered = self.samples.len() as u64;
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
