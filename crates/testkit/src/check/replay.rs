//! A finished stream must come again unchanged.

use std::collections::BTreeMap;

use super::{Findings, Violation};
use crate::history::{Channel, Entry, Message, Step};

pub(super) fn check(entries: &[Entry], findings: &mut Findings<'_>) {
    let mut replays: BTreeMap<u64, &str> = BTreeMap::new();
    for entry in entries {
        if let Step::Listening {
            channel: Channel::Replay(request),
            after: Some(after),
            ..
        } = &entry.step
        {
            replays.entry(*request).or_insert(after);
        }
    }
    for (request, after) in replays {
        let first = events(entries, Channel::Request(request));
        let first = first.skip_while(|(id, _)| *id != Some(after)).skip(1);
        let again = events(entries, Channel::Replay(request));
        let told = |(_, message): &(Option<&str>, &Message)| **message != Message::Prime;
        let first: Vec<_> = first.filter(told).collect();
        let again: Vec<_> = again.filter(told).collect();
        if first != again {
            let detail =
                format!("request {request}, after {after}: {again:?} instead of {first:?}");
            findings.find(Violation::WrongReplay, detail);
        }
    }
}

fn events(entries: &[Entry], of: Channel) -> impl Iterator<Item = (Option<&str>, &Message)> {
    entries.iter().filter_map(move |entry| match &entry.step {
        Step::Received {
            channel,
            id,
            message,
        } if *channel == of => Some((id.as_deref(), message)),
        _ => None,
    })
}
