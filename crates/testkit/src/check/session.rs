use std::collections::HashSet;
use std::time::Duration;

use super::{Findings, Outage, Rules, Violation, code};
use crate::history::{Channel, Entry, Step};

struct Opened<'a> {
    session: &'a str,
    from: Duration,
    at: Duration,
}

pub(super) fn check(entries: &[Entry], rules: &Rules, findings: &mut Findings<'_>) {
    let mut opening = None;
    let mut forgotten = HashSet::new();
    let mut opened: Vec<Opened<'_>> = Vec::new();
    for Entry { at, step } in entries {
        match step {
            Step::Opening => opening = Some(*at),
            Step::Opened { session } => {
                opened.push(Opened {
                    session,
                    from: opening.take().unwrap_or(*at),
                    at: *at,
                });
            }
            // Several exchanges may report one lost session.
            Step::Forgotten { session, channel }
                if forgotten.insert(session.as_str())
                    && !excused(*at, session, &opened, opening, rules) =>
            {
                let detail = format!("session {session} on {channel:?} at {at:?}");
                findings.find(Violation::Forgotten, detail);
            }
            Step::Refused {
                channel,
                status,
                code,
                message,
            } if !is_fine(*channel, *status, *code, rules) => {
                let detail = format!("{channel:?} at {at:?}: {status}, {code:?}: {message}");
                findings.find(Violation::UnexpectedError, detail);
            }
            _ => {}
        }
    }
    if opening.is_some() {
        findings.find(Violation::Lost, "a session could not be opened to the end");
    }
    for Opened { session, at, .. } in opened {
        let must_be_told = rules.wipes.iter().any(|wipe| at < wipe.from);
        if must_be_told && !forgotten.contains(session) {
            let detail = format!("session {session}, opened at {at:?}");
            findings.find(Violation::NotTold, detail);
        }
    }
}

/// Excused if all data was lost during the session's life, or writes during its opening.
fn excused(
    at: Duration,
    session: &str,
    opened: &[Opened<'_>],
    opening: Option<Duration>,
    rules: &Rules,
) -> bool {
    let known = opened.iter().rfind(|known| known.session == session);
    // A session that is not known yet was lost during its opening.
    let since = known.map_or(Duration::ZERO, |known| known.at);
    let wiped = |wipe: &Outage| since <= wipe.until && wipe.from <= at;
    let (from, until) = match known {
        Some(known) => (known.from, known.at),
        None => (opening.unwrap_or(at), at),
    };
    let written = |lost: &Outage| from <= lost.until && lost.from <= until;
    rules.wipes.iter().any(wiped) || rules.lost_writes.iter().any(written)
}

/// Whether a client may repeat what was refused. A balancer without an edge sends `502`.
pub(crate) fn is_passing(status: u16, told: Option<i64>) -> bool {
    matches!(status, 429 | 502 | 503) && told != Some(code::OUTCOME_UNKNOWN)
}

/// Ignores refusals that the client can retry or that other checks judge, and those of a lost session or history.
fn is_fine(channel: Channel, status: u16, told: Option<i64>, rules: &Rules) -> bool {
    if is_passing(status, told) {
        let nothing_done = [None, Some(code::OVERLOADED), Some(code::NOT_EXECUTED)];
        return nothing_done.contains(&told);
    }
    matches!(channel, Channel::Request(_)) || is_gone(told, rules)
}

pub(super) fn is_gone(told: Option<i64>, rules: &Rules) -> bool {
    rules.may_forget() && told == Some(code::GONE)
}
