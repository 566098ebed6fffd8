//! Parses server-sent events (WHATWG HTML, Server-sent events).

use std::time::Duration;

use bytes::{Bytes, BytesMut};

/// A server-sent event, with or without data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The id, from which the client can resume.
    pub id: Option<String>,
    /// The delay before a reconnect.
    pub retry: Option<Duration>,
    /// The type, unless `message`.
    pub name: Option<Bytes>,
    /// The data, if any.
    pub data: Option<Bytes>,
}

/// An event larger than this limit, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {0} bytes")]
pub struct EventTooLarge(pub usize);

/// Parses events from bytes as they arrive.
pub struct SseParser {
    limit: usize,
    buffer: BytesMut,
    searched: usize,
    /// Whether the last line ended with a carriage return. A line feed that follows belongs to that line.
    after_return: bool,
    event: SseEvent,
    data: BytesMut,
    has_data: bool,
    begun: bool,
}

impl SseParser {
    /// Limits events to `limit` bytes.
    pub fn of_at_most(limit: usize) -> Self {
        Self {
            limit,
            buffer: BytesMut::new(),
            searched: 0,
            after_return: false,
            event: SseEvent::default(),
            data: BytesMut::new(),
            has_data: false,
            begun: false,
        }
    }

    /// Adds bytes. Take all events before adding more.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next complete event; `None` if more bytes are needed.
    ///
    /// # Errors
    /// The event is too large.
    pub fn next_event(&mut self) -> Result<Option<SseEvent>, EventTooLarge> {
        while let Some(line) = self.line() {
            // Checked per line, so that the result does not depend on how bytes arrive.
            self.expect_room_for(line.len())?;
            let line = if std::mem::replace(&mut self.begun, true) {
                &line[..]
            } else {
                line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&line)
            };
            if !line.is_empty() {
                self.field(line);
            } else if let Some(event) = self.dispatch() {
                return Ok(Some(event));
            }
        }
        self.expect_room_for(self.buffer.len())?;
        Ok(None)
    }

    fn expect_room_for(&self, line: usize) -> Result<(), EventTooLarge> {
        match line + self.data.len() > self.limit {
            true => Err(EventTooLarge(self.limit)),
            false => Ok(()),
        }
    }

    fn line(&mut self) -> Option<BytesMut> {
        if self.after_return && !self.buffer.is_empty() {
            self.after_return = false;
            if self.buffer[0] == b'\n' {
                let _ = self.buffer.split_to(1);
            }
        }
        let Some(end) = memchr::memchr2(b'\n', b'\r', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let mut line = self.buffer.split_to(self.searched + end + 1);
        self.searched = 0;
        self.after_return = line.last() == Some(&b'\r');
        line.truncate(line.len() - 1);
        Some(line)
    }

    fn field(&mut self, line: &[u8]) {
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let (name, value) = (&line[..colon], line.get(colon + 1..).unwrap_or_default());
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.extend_from_slice(b"\n");
                }
                self.data.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => {
                self.event.id = String::from_utf8(value.to_vec()).ok();
            }
            b"retry" => {
                let text = std::str::from_utf8(value).ok();
                let millis = text.and_then(|text| text.parse().ok());
                self.event.retry = millis.map(Duration::from_millis).or(self.event.retry);
            }
            b"event" => {
                self.event.name = (value != b"message").then(|| Bytes::copy_from_slice(value));
            }
            _ => {}
        }
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        let mut event = std::mem::take(&mut self.event);
        let data = self.data.split().freeze();
        self.has_data = false;
        event.data = (!data.is_empty()).then_some(data);
        event.name = event.name.filter(|_| event.data.is_some());
        (event != SseEvent::default()).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::{EventTooLarge, SseEvent, SseParser};

    fn parse(text: &str, chunk: usize) -> Vec<SseEvent> {
        let mut parser = SseParser::of_at_most(1000);
        let mut events = Vec::new();
        for bytes in text.as_bytes().chunks(chunk) {
            parser.feed(bytes);
            events.extend(std::iter::from_fn(|| parser.next_event().unwrap()));
        }
        events
    }

    fn data(text: &'static str) -> SseEvent {
        SseEvent {
            data: Some(Bytes::from_static(text.as_bytes())),
            ..SseEvent::default()
        }
    }

    #[test]
    fn events_do_not_depend_on_chunks_or_line_ends() {
        let text = "\u{feff}: hi\nid: a-1\nretry: 1500\ndata: \n\ndata:{}\ndata: x\nevent: message\n\n:\n\nretry: 7\n\n";
        let expected = [
            SseEvent {
                id: Some("a-1".into()),
                retry: Some(Duration::from_millis(1500)),
                ..SseEvent::default()
            },
            data("{}\nx"),
            SseEvent {
                retry: Some(Duration::from_millis(7)),
                ..SseEvent::default()
            },
        ];
        for ends in ["\n", "\r\n", "\r"] {
            let text = text.replace('\n', ends);
            for chunk in [1, 2, 3, 7, 1000] {
                let events = parse(&(text.clone() + "data"), chunk);
                assert_eq!(events, expected, "{ends:?} {chunk}");
            }
        }
    }

    #[test]
    fn an_event_has_its_type() {
        let named = SseEvent {
            name: Some(Bytes::from_static(b"endpoint")),
            ..data("/messages")
        };
        let text = "event: endpoint\ndata: /messages\n\nevent: ping\n\ndata: {}\n\n";
        assert_eq!(parse(text, 3), [named, data("{}")]);
    }

    #[test]
    fn an_event_that_is_not_finished_does_not_count() {
        assert_eq!(parse("data: {}\n", 100), []);
        assert_eq!(parse("data: {}\nid: \0\n\n", 100), [data("{}")]);
    }

    #[test]
    fn an_event_is_refused_once_it_is_too_large() {
        let mut parser = SseParser::of_at_most(100);
        for _ in 0..3 {
            parser.feed(b"data: 0123456789012345678901234567890123456789\n");
        }
        assert_eq!(parser.next_event(), Err(EventTooLarge(100)));
    }

    #[test]
    fn whether_an_event_is_too_large_does_not_depend_on_chunks() {
        let longest = format!("data: {}\ndata: {}\n\n", "x".repeat(40), "y".repeat(54));
        let longer = format!("data: {}\ndata: {}\n\n", "x".repeat(40), "y".repeat(55));
        for chunk in [1, 2, 30, 1000] {
            let read = |text: &str| {
                let mut parser = SseParser::of_at_most(100);
                let mut chunks = text.as_bytes().chunks(chunk);
                chunks.find_map(|bytes| {
                    parser.feed(bytes);
                    parser.next_event().transpose()
                })
            };
            assert!(matches!(read(&longest), Some(Ok(_))), "{chunk}");
            assert_eq!(read(&longer), Some(Err(EventTooLarge(100))), "{chunk}");
        }
    }
}
