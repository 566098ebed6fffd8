use std::time::Duration;

use super::attempt::{Attempt, Unanswered};
use super::session::is_gone;
use super::{Findings, Ledger, Rules, Violation, code};
use crate::history::{Answer, Entry, Tool, Work};

pub(super) struct CallRecord {
    work: Work,
    attempts: Vec<Attempt>,
}

enum Fate {
    Result(String),
    Error(i64, String),
    LostWithEdge,
    HungUp,
    /// The session is gone, which the check of sessions reports.
    Forgotten,
    Lost(String),
}

impl CallRecord {
    pub(super) fn new(work: Work) -> Self {
        Self {
            work,
            attempts: Vec::new(),
        }
    }

    pub(super) fn nonce(&self) -> &str {
        &self.work.nonce
    }

    pub(super) fn sent(&mut self, request: u64, at: Duration) {
        self.attempts.push(Attempt::sent(request, at));
    }

    pub(super) fn step(&mut self, request: u64, entry: &Entry) {
        let attempt = self.attempts.iter_mut().find(|a| a.request == request);
        if let Some(attempt) = attempt {
            attempt.step(entry);
        }
    }

    pub(super) fn check(&self, ledger: &Ledger, rules: &Rules, findings: &mut Findings<'_>) {
        findings.verdict.counts.calls += 1;
        for attempt in &self.attempts {
            self.check_answers(attempt, rules, findings);
            self.check_statuses(attempt, rules, findings);
        }
        let Some(last) = self.attempts.last() else {
            return;
        };
        let fate = self.fate(last, rules);
        let executions = ledger.executions(&self.work.nonce);
        self.check_fate(&fate, rules, findings);
        self.check_executions(&fate, executions, findings);
        if let Fate::Result(_) = fate {
            self.check_steps(last, rules, findings);
        }
    }

    fn check_answers(&self, attempt: &Attempt, rules: &Rules, findings: &mut Findings<'_>) {
        for extra in attempt.answers.iter().skip(1) {
            if end_was_lost(attempt, extra, rules) {
                continue;
            }
            findings.find(
                Violation::Duplicated,
                self.told(&format!("again {extra:?}")),
            );
        }
        for stray in &attempt.strays {
            findings.find(Violation::WrongAnswer, self.told(stray));
        }
        if attempt.questions > 1 {
            let detail = format!("asked {} times", attempt.questions);
            findings.find(Violation::Duplicated, self.told(&detail));
        }
    }

    fn check_statuses(&self, attempt: &Attempt, rules: &Rules, findings: &mut Findings<'_>) {
        findings.verdict.counts.tasks += u64::from(!attempt.statuses.is_empty());
        for pair in attempt.statuses.windows(2) {
            let [(told, before), (_, after)] = pair else {
                continue;
            };
            let goes_back = has_ended(before) && before != after;
            if goes_back && !rules.lost_writes_between(attempt.sent, *told) {
                let detail = format!("its task was {before}, and then {after}");
                findings.find(Violation::OutOfOrder, self.told(&detail));
            }
        }
    }

    fn fate(&self, last: &Attempt, rules: &Rules) -> Fate {
        if let Some(answer) = last.answers.first() {
            return match answer {
                Answer::Result {
                    text,
                    failed: false,
                } => Fate::Result(text.clone()),
                Answer::Result { text, failed: true } => {
                    Fate::Error(0, format!("the tool says: {text}"))
                }
                // The call ran when its session was lost, or the store lost its end after the worker had released the
                // call.
                Answer::Error { code, .. }
                    if (is_gone(Some(*code), rules) || self.may_be_unknown(*code))
                        && rules.may_be_gone(last.sent, Duration::MAX) =>
                {
                    Fate::Forgotten
                }
                answer if end_was_lost(last, answer, rules) => Fate::Forgotten,
                Answer::Error { code, message } => Fate::Error(*code, message.clone()),
            };
        }
        match &last.end {
            Unanswered::Forgotten => Fate::Forgotten,
            Unanswered::HungUp => Fate::HungUp,
            Unanswered::Broken { tag, at } if !last.has_id => {
                let killed = rules.edge_was_killed(tag, last.sent, *at);
                if killed && !self.work.tool.is_safe_to_repeat() {
                    Fate::LostWithEdge
                } else {
                    Fate::Lost(format!("broke at {at:?} (exchange {tag}), without an id"))
                }
            }
            Unanswered::Broken { tag, at } => {
                Fate::Lost(format!("broke at {at:?} (exchange {tag}), never answered"))
            }
            Unanswered::Failed { code, at, .. }
                if is_gone(*code, rules) && rules.may_be_gone(last.sent, *at) =>
            {
                Fate::Forgotten
            }
            // Both the node that knew the outcome and the session were lost.
            Unanswered::Failed {
                code: Some(code @ code::OUTCOME_UNKNOWN),
                why,
                at,
            } => match rules.may_be_gone(last.sent, *at) && self.may_be_unknown(*code) {
                true => Fate::Forgotten,
                false => Fate::Error(*code, why.clone()),
            },
            Unanswered::Failed { why, .. } => Fate::Lost(format!("refused: {why}")),
            Unanswered::Refused => Fate::Lost("refused until the end".to_owned()),
            Unanswered::Open => Fate::Lost("never answered".to_owned()),
        }
    }

    fn may_be_unknown(&self, code: i64) -> bool {
        code == code::OUTCOME_UNKNOWN && !self.work.tool.is_safe_to_repeat()
    }

    fn check_fate(&self, fate: &Fate, rules: &Rules, findings: &mut Findings<'_>) {
        let counts = &mut findings.verdict.counts;
        match fate {
            Fate::Result(text) => {
                counts.results += 1;
                if self.work.tool != Tool::Increment && *text != self.work.answer() {
                    findings.find(Violation::WrongAnswer, self.told(text));
                }
            }
            Fate::Error(code, message) => {
                *counts.errors.entry(*code).or_default() += 1;
                let excused = match *code {
                    code::OVERLOADED | code::NOT_EXECUTED => rules.not_executed,
                    code => rules.outcome_unknown && self.may_be_unknown(code),
                };
                if !excused {
                    let detail = self.told(&format!("{code}: {message}"));
                    findings.find(Violation::UnexpectedError, detail);
                }
            }
            Fate::LostWithEdge => counts.lost_with_edge += 1,
            Fate::HungUp => counts.hung_up += 1,
            Fate::Forgotten => counts.gone += 1,
            Fate::Lost(why) => findings.find(Violation::Lost, self.told(why)),
        }
    }

    fn check_executions(&self, fate: &Fate, executions: u32, findings: &mut Findings<'_>) {
        if !self.work.tool.is_noted() {
            return;
        }
        if executions > 1 {
            let detail = self.told(&format!("executed {executions} times"));
            findings.find(Violation::ExecutedTwice, detail);
        }
        let wrong = match fate {
            Fate::Result(_) => executions == 0,
            Fate::Error(code::OVERLOADED | code::NOT_EXECUTED, _) => executions > 0,
            _ => false,
        };
        if wrong {
            let detail = self.told(&format!("was answered so, and executed {executions} times"));
            findings.find(Violation::WrongOutcome, detail);
        }
    }

    fn check_steps(&self, attempt: &Attempt, rules: &Rules, findings: &mut Findings<'_>) {
        let Work { tool, steps, .. } = &self.work;
        if *tool == Tool::Ask && attempt.questions == 0 {
            findings.find(Violation::Lost, self.told("the question"));
        }
        // A call that became a task reports no progress.
        if !attempt.statuses.is_empty() {
            return;
        }
        let expected = match tool {
            Tool::Steps | Tool::StepsOnce | Tool::Job => u64::from(*steps),
            _ => 0,
        };
        let may_rerun = rules.reruns && tool.is_safe_to_repeat();
        let mut before = 0;
        for step in &attempt.steps {
            let violation = match *step {
                step if step == before + 1 => None,
                1 if may_rerun => None,
                step if step == before => Some(Violation::Duplicated),
                step if step < before => Some(Violation::OutOfOrder),
                _ => Some(Violation::Lost),
            };
            if let Some(violation) = violation {
                let detail = self.told(&format!("step {step} after step {before}"));
                findings.find(violation, detail);
            }
            before = *step;
        }
        if before != expected {
            let detail = format!("answered after step {before} of {expected}");
            findings.find(Violation::Lost, self.told(&detail));
        }
    }

    fn told(&self, what: &str) -> String {
        let Work {
            call, tool, nonce, ..
        } = &self.work;
        let requests: Vec<u64> = self.attempts.iter().map(|a| a.request).collect();
        format!(
            "call {call}, {} {nonce}, requests {requests:?}: {what}",
            tool.name()
        )
    }
}

/// Lost writes must lie between the sending of the call and the poll that reported its end.
fn end_was_lost(attempt: &Attempt, answer: &Answer, rules: &Rules) -> bool {
    let lost = matches!(
        answer,
        Answer::Error {
            code: code::OUTCOME_UNKNOWN | code::GONE,
            ..
        }
    );
    let ended = attempt
        .statuses
        .iter()
        .find(|(_, status)| has_ended(status));
    lost && ended.is_some_and(|(told, _)| rules.may_be_gone(attempt.sent, *told))
}

fn has_ended(status: &str) -> bool {
    !matches!(status, "working" | "input_required")
}
