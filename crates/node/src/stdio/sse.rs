//! Reads server-sent events as they arrive (WHATWG HTML, Server-sent events).

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;

use super::exchange::{Broken, ReplyBody};

/// Bytes of one event; a message larger than this is nobody's intention.
const MAX_EVENT_BYTES: usize = 64 << 20;

/// One event, or one that only sets the id or the time to come back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// Where to resume after it.
    pub(super) id: Option<String>,
    /// When to come back after a break.
    pub(super) retry: Option<Duration>,
    /// The message; `None` if there is none.
    pub(super) data: Option<Bytes>,
}

/// Events of a response body.
pub(super) struct Events {
    body: ReplyBody,
    parser: Parser,
}

impl Events {
    pub(super) fn of(body: ReplyBody) -> Self {
        Self {
            body,
            parser: Parser::default(),
        }
    }

    /// The next event; `None` at the end of the stream. Cancellation safe.
    pub(super) async fn next(&mut self) -> Option<Result<Event, Broken>> {
        loop {
            if let Some(event) = self.parser.next() {
                return Some(Ok(event));
            }
            match self.body.next().await? {
                Ok(bytes) => self.parser.feed(&bytes),
                Err(broken) => return Some(Err(broken)),
            }
            if self.parser.buffer.len() + self.parser.data.len() > MAX_EVENT_BYTES {
                return Some(Err(Broken("an event is larger than 64 MiB".to_owned())));
            }
        }
    }
}

/// Bytes in, events out.
#[derive(Default)]
struct Parser {
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line end.
    searched: usize,
    /// The line before ended with a carriage return; a line feed that follows belongs to it.
    after_return: bool,
    event: Event,
    data: BytesMut,
    has_data: bool,
    begun: bool,
}

impl Parser {
    fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    fn next(&mut self) -> Option<Event> {
        while let Some(line) = self.line() {
            let line = if std::mem::replace(&mut self.begun, true) {
                &line[..]
            } else {
                line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&line)
            };
            if !line.is_empty() {
                self.field(line);
            } else if let Some(event) = self.dispatch() {
                return Some(event);
            }
        }
        None
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
            // Comments, event types (MCP uses none over Streamable HTTP), unknown fields.
            _ => {}
        }
    }

    /// The event that an empty line ends, if there is anything in it.
    fn dispatch(&mut self) -> Option<Event> {
        let mut event = std::mem::take(&mut self.event);
        let data = self.data.split().freeze();
        self.has_data = false;
        event.data = (!data.is_empty()).then_some(data);
        (event != Event::default()).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::{Event, Parser};

    fn parse(text: &str, chunk: usize) -> Vec<Event> {
        let mut parser = Parser::default();
        let mut events = Vec::new();
        for bytes in text.as_bytes().chunks(chunk) {
            parser.feed(bytes);
            events.extend(std::iter::from_fn(|| parser.next()));
        }
        events
    }

    fn data(text: &'static str) -> Event {
        Event {
            data: Some(Bytes::from_static(text.as_bytes())),
            ..Event::default()
        }
    }

    #[test]
    fn events_do_not_depend_on_chunks_or_line_ends() {
        let text = "\u{feff}: hi\nid: a-1\nretry: 1500\ndata: \n\ndata:{}\ndata: x\nevent: message\n\n:\n\nretry: 7\n\n";
        let expected = [
            Event {
                id: Some("a-1".into()),
                retry: Some(Duration::from_millis(1500)),
                data: None,
            },
            data("{}\nx"),
            Event {
                retry: Some(Duration::from_millis(7)),
                ..Event::default()
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
    fn an_event_that_is_not_finished_does_not_count() {
        assert_eq!(parse("data: {}\n", 100), []);
        assert_eq!(parse("data: {}\nid: \0\n\n", 100), [data("{}")]);
    }
}
