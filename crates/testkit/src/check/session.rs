//! Sessions outlive nodes, unless their data is gone, and then they are told.

use std::collections::HashSet;
use std::time::Duration;

use http::StatusCode;

use super::{Findings, Outage, Rules, Violation, code};
use crate::history::{Channel, Entry, Step};

/// Checks the sessions of one client.
pub(super) fn check(entries: &[Entry], rules: &Rules, findings: &mut Findings<'_>) {
    let mut opening = false;
    let mut forgotten = HashSet::new();
    let mut opened: Vec<(Duration, &str)> = Vec::new();
    for Entry { at, step } in entries {
        match step {
            Step::Opening => opening = true,
            Step::Opened { session } => {
                opening = false;
                opened.push((*at, session));
            }
            // Several exchanges may be told of the same session.
            Step::Forgotten { session, channel }
                if forgotten.insert(session.as_str()) && !excused(*at, session, &opened, rules) =>
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
    if opening {
        findings.find(Violation::Lost, "a session could not be opened to the end");
    }
    for (at, session) in opened {
        let must_be_told = rules.wipes.iter().any(|wipe| at < wipe.from);
        if must_be_told && !forgotten.contains(session) {
            let detail = format!("session {session}, opened at {at:?}");
            findings.find(Violation::NotTold, detail);
        }
    }
}

/// A session may be gone if all data was lost while it lived.
fn excused(at: Duration, session: &str, opened: &[(Duration, &str)], rules: &Rules) -> bool {
    let since = opened.iter().rfind(|(_, known)| *known == session);
    // Told before it was wholly open: its data was lost on the way.
    let since = since.map_or(Duration::ZERO, |(since, _)| *since);
    let wiped = |wipe: &Outage| since <= wipe.until && wipe.from <= at;
    rules.wipes.iter().any(wiped)
}

/// A status that says to come back.
pub(super) fn is_passing(status: u16) -> bool {
    [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::BAD_GATEWAY,
    ]
    .iter()
    .any(|passing| passing.as_u16() == status)
}

/// A refusal is fine if it says to come back and that nothing was done, or is for the check of calls to
/// judge, or tells of history that is gone with its data.
fn is_fine(channel: Channel, status: u16, told: Option<i64>, rules: &Rules) -> bool {
    if is_passing(status) {
        let nothing_done = [None, Some(code::OVERLOADED), Some(code::NOT_EXECUTED)];
        return nothing_done.contains(&told);
    }
    matches!(channel, Channel::Request(_)) || is_gone(told, rules)
}

/// Whether a refusal tells of history that is gone, and data was lost.
pub(super) fn is_gone(told: Option<i64>, rules: &Rules) -> bool {
    rules.may_forget() && told == Some(code::GONE)
}
