//! The event ids of every stream must be in order, without gaps and repeats. Those of other servers must be unique.

use std::collections::{HashMap, HashSet};

use shoal_protocol::{EventId, StreamId};

use super::{Findings, Violation};
use crate::history::{Channel, Entry, Message, Step};

struct Stream {
    channel: Channel,
    last: EventId,
}

#[derive(Default)]
struct Streams<'a> {
    sessions: HashMap<Channel, &'a str>,
    streams: HashMap<(&'a str, StreamId), Stream>,
    opaque: HashSet<(&'a str, &'a str)>,
}

pub(super) fn check(entries: &[Entry], findings: &mut Findings<'_>) {
    let mut streams = Streams::default();
    for entry in entries {
        match &entry.step {
            Step::Sent {
                request, session, ..
            } => {
                streams.sessions.insert(Channel::Request(*request), session);
            }
            Step::Listening {
                channel, session, ..
            } => {
                streams.sessions.insert(*channel, session);
            }
            Step::Received {
                channel,
                id: Some(id),
                message,
            } if !matches!(channel, Channel::Replay(_)) => match id.parse() {
                Ok(id) => streams.take(*channel, id, message, findings),
                Err(_) if streams.is_new(*channel, id) => {}
                Err(_) => findings.find(Violation::Duplicated, format!("event id {id:?}")),
            },
            _ => {}
        }
    }
}

impl<'a> Streams<'a> {
    fn session(&self, channel: Channel) -> &'a str {
        self.sessions.get(&channel).copied().unwrap_or_default()
    }

    fn is_new(&mut self, channel: Channel, id: &'a str) -> bool {
        self.opaque.insert((self.session(channel), id))
    }

    fn take(
        &mut self,
        channel: Channel,
        id: EventId,
        message: &Message,
        findings: &mut Findings<'_>,
    ) {
        let prime = matches!(message, Message::Prime);
        let key = (self.session(channel), id.stream);
        let Some(stream) = self.streams.get_mut(&key) else {
            // Without a priming event, a call's stream begins with 1.
            if !prime && channel != Channel::Standalone && id.sequence != 1 {
                let detail = format!("{channel:?} begins with event {id}");
                findings.find(Violation::Lost, detail);
            }
            self.streams.insert(key, Stream { channel, last: id });
            return;
        };
        if stream.channel != channel {
            let detail = format!("event {id} of {:?} came on {channel:?}", stream.channel);
            findings.find(Violation::WrongAnswer, detail);
        }
        let last = stream.last;
        let expected = last.sequence + u64::from(!prime);
        let what = || format!("{channel:?}: event {id} after {last}");
        // Each owner uses another epoch and continues the sequence.
        if id.sequence > expected {
            findings.find(Violation::Lost, what());
        } else if id.sequence < expected {
            findings.find(Violation::Duplicated, what());
            return;
        }
        stream.last = id;
    }
}
