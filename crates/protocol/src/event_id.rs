use bytes::BufMut;

use crate::shown;

/// A stream's number in one session's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

impl StreamId {
    /// The stream of a bare GET, for messages without a request.
    pub const STANDALONE: Self = Self(0);
}

impl std::fmt::Display for StreamId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// An SSE event's id: unique within its session, and a cursor within its stream.
///
/// It is written as `epoch-stream-sequence` in lower-case hexadecimal. The epoch is random for each log and claim, so
/// that Shoal recognises cursors of other logs. Sequences continue across claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventId {
    /// The random number of the log and claim that numbered the event.
    pub epoch: u32,
    /// The event's stream.
    pub stream: StreamId,
    /// Position in the stream, from 1; 0 is before the first event.
    pub sequence: u64,
}

/// A `Last-Event-ID` that Shoal did not issue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an event id of this server")]
pub struct InvalidEventId(pub String);

impl std::fmt::Display for EventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:x}-{:x}-{:x}",
            self.epoch, self.stream.0, self.sequence
        )
    }
}

impl EventId {
    /// Writes as `Display` does, but faster.
    pub fn write_to(&self, text: &mut impl BufMut) {
        put_hex(text, u64::from(self.epoch));
        text.put_u8(b'-');
        put_hex(text, u64::from(self.stream.0));
        text.put_u8(b'-');
        put_hex(text, self.sequence);
    }
}

fn put_hex(text: &mut impl BufMut, number: u64) {
    let mut digits = [0; 16];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b"0123456789abcdef"[(rest % 16) as usize];
        rest /= 16;
        if rest == 0 {
            break;
        }
    }
    text.put_slice(&digits[at..]);
}

impl std::str::FromStr for EventId {
    type Err = InvalidEventId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let mut parts = text.split('-');
            let id = Self {
                epoch: u32::try_from(hex(parts.next()?)?).ok()?,
                stream: StreamId(u32::try_from(hex(parts.next()?)?).ok()?),
                sequence: hex(parts.next()?)?,
            };
            parts.next().is_none().then_some(id)
        };
        parse().ok_or_else(|| InvalidEventId(shown(text, 64)))
    }
}

fn hex(text: &str) -> Option<u64> {
    let canonical = !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        && (text == "0" || !text.starts_with('0'));
    canonical.then(|| u64::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::{EventId, StreamId};

    #[test]
    fn ids_survive_the_wire() {
        for (epoch, stream, sequence) in [(0, 0, 0), (u32::MAX, u32::MAX, u64::MAX), (7, 3, 255)] {
            let id = EventId {
                epoch,
                stream: StreamId(stream),
                sequence,
            };
            assert_eq!(id.to_string().parse(), Ok(id));
            let mut written = Vec::new();
            id.write_to(&mut written);
            assert_eq!(written, id.to_string().into_bytes());
        }
    }

    #[test]
    fn only_the_canonical_spelling_is_an_id() {
        for text in [
            "",
            "1",
            "1-2",
            "1-2-3-4",
            "01-2-3",
            "1-2-G",
            "1-2-+3",
            "1--3",
            "A-1-1",
            "1ffffffff-0-0",
        ] {
            assert!(text.parse::<EventId>().is_err(), "{text}");
        }
    }
}
