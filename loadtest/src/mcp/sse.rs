//! Parses `text/event-stream` by the WHATWG grammar, but also reports blocks with only an `id` or a `retry`, with
//! which MCP primes streams.

use std::collections::VecDeque;

use memchr::memchr2;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    /// Lines joined by line feeds; empty for a priming event.
    pub(crate) data: String,
    pub(crate) retry_ms: Option<u64>,
}

/// Accepts a body in chunks that are cut anywhere.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    partial: Vec<u8>,
    block: Block,
    ready: VecDeque<Event>,
    /// After a chunk that ended in CR, a leading LF belongs to that CR.
    swallow_line_feed: bool,
    past_first_line: bool,
}

#[derive(Debug, Default)]
struct Block {
    event: Event,
    has_field: bool,
    has_data: bool,
}

impl Parser {
    pub(crate) fn push(&mut self, mut chunk: &[u8]) {
        if self.swallow_line_feed && !chunk.is_empty() {
            self.swallow_line_feed = false;
            chunk = chunk.strip_prefix(b"\n").unwrap_or(chunk);
        }
        while let Some(end) = memchr2(b'\n', b'\r', chunk) {
            if self.partial.is_empty() {
                self.line(&chunk[..end]);
            } else {
                let mut line = std::mem::take(&mut self.partial);
                line.extend_from_slice(&chunk[..end]);
                self.line(&line);
                line.clear();
                self.partial = line;
            }
            let carriage_return = chunk[end] == b'\r';
            chunk = &chunk[end + 1..];
            if carriage_return {
                match chunk.first() {
                    Some(b'\n') => chunk = &chunk[1..],
                    Some(_) => {}
                    None => self.swallow_line_feed = true,
                }
            }
        }
        self.partial.extend_from_slice(chunk);
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    fn line(&mut self, line: &[u8]) {
        let mut line = line;
        if !self.past_first_line {
            self.past_first_line = true;
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if line.is_empty() {
            let block = std::mem::take(&mut self.block);
            if block.has_field {
                self.ready.push_back(block.event);
            }
        } else {
            self.block.field(line);
        }
    }
}

impl Block {
    fn field(&mut self, line: &[u8]) {
        let (name, value) = match line.iter().position(|&byte| byte == b':') {
            Some(0) => return,
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match name {
            b"data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(&value);
                self.has_data = true;
            }
            b"id" if !value.contains('\0') => self.event.id = Some(value.into_owned()),
            b"event" => self.event.name = Some(value.into_owned()),
            b"retry" => match value.parse() {
                Ok(milliseconds) => self.event.retry_ms = Some(milliseconds),
                Err(_) => return,
            },
            _ => return,
        }
        self.has_field = true;
    }
}

#[cfg(test)]
mod tests;
