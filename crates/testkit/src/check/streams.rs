//! The event ids of every stream must be in order, without gaps and repeats.

use std::collections::HashMap;

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
            } => match id.parse() {
                Ok(id) => streams.take(*channel, id, message, findings),
                Err(_) => findings.find(Violation::OutOfOrder, format!("event id {id:?}")),
            },
            _ => {}
        }
    }
}

impl Streams<'_> {
    fn take(
        &mut self,
        channel: Channel,
        id: EventId,
        message: &Message,
        findings: &mut Findings<'_>,
    ) {
        let prime = matches!(message, Message::Prime);
        let session = self.sessions.get(&channel).copied().unwrap_or_default();
        let key = (session, id.stream);
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
