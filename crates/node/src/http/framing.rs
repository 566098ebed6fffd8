//! Finds requests that a proxy could read differently.
//!
//! hyper accepts lines that end in LF alone, and a length that is repeated or beside a transfer coding. A proxy that
//! reads such a request differently may forward it as two (request smuggling), so this module inspects the bytes before
//! hyper.

use memchr::memchr;

const KEPT: usize = 256;
const LENGTH: &[u8] = b"content-length";
const CODING: &[u8] = b"transfer-encoding";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    BareLineFeed,
    LengthAndCoding,
    LengthTwice,
    CodingTwice,
    UnknownCoding,
    /// The end of this request's body, or of the body before it, is uncertain.
    Unclear,
}

#[derive(Debug, Default)]
pub(super) struct Framing {
    next: Next,
    head: Head,
    heads: u64,
    line: Line,
}

#[derive(Clone, Copy, Debug, Default)]
enum Next {
    #[default]
    Head,
    Body(u64),
    Size,
    Chunk(u64),
    Trailer,
    Unclear,
}

#[derive(Debug, Default)]
struct Head {
    begun: bool,
    bare: bool,
    length: Option<u64>,
    lengths: usize,
    codings: usize,
    unknown_coding: bool,
}

#[derive(Debug, Default)]
struct Line {
    kept: Vec<u8>,
    last: Option<u8>,
}

impl Framing {
    /// Returns a fault with the number of its request, counted from 0.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Option<(u64, Fault)> {
        while !bytes.is_empty() {
            bytes = match self.next {
                Next::Unclear => return None,
                Next::Body(left) => self.skip(bytes, left, Next::Body, Next::Head),
                Next::Chunk(left) => self.skip(bytes, left, Next::Chunk, Next::Size),
                Next::Head | Next::Size | Next::Trailer => {
                    let Some(end) = memchr(b'\n', bytes) else {
                        self.line.keep(bytes);
                        return None;
                    };
                    let at = self.heads;
                    if let Some(fault) = self.line(&bytes[..end]) {
                        self.next = Next::Unclear;
                        return Some((at, fault));
                    }
                    &bytes[end + 1..]
                }
            };
        }
        None
    }

    pub(super) fn is_amid(&self) -> bool {
        !matches!(self.next, Next::Head) || self.head.begun || self.line.last.is_some()
    }

    pub(super) fn is_in_head(&self) -> bool {
        matches!(self.next, Next::Head) && self.is_amid()
    }

    fn skip<'b>(
        &mut self,
        bytes: &'b [u8],
        left: u64,
        same: fn(u64) -> Next,
        then: Next,
    ) -> &'b [u8] {
        let skipped = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        self.next = match left - skipped as u64 {
            0 => then,
            left => same(left),
        };
        &bytes[skipped..]
    }

    /// `end` is the line's last part, without the LF.
    fn line(&mut self, end: &[u8]) -> Option<Fault> {
        if self.line.last.is_none() {
            let kept = &end[..end.len().min(KEPT)];
            return self.whole_line(kept, end.last() == Some(&b'\r'));
        }
        self.line.keep(end);
        let mut line = std::mem::take(&mut self.line);
        let fault = self.whole_line(&line.kept, line.last == Some(b'\r'));
        line.kept.clear();
        self.line.kept = line.kept;
        fault
    }

    fn whole_line(&mut self, line: &[u8], whole_end: bool) -> Option<Fault> {
        let is_empty = line.is_empty() || line == b"\r";
        match self.next {
            Next::Head => {
                self.head.bare |= !whole_end;
                if !is_empty {
                    self.head.line(line);
                } else if self.head.begun {
                    return self.end_head();
                }
                None
            }
            Next::Size => match chunk_size(line).filter(|_| whole_end) {
                Some(0) => self.then(Next::Trailer),
                Some(size) => self.then(Next::Chunk(size.saturating_add(2))),
                None => Some(Fault::Unclear),
            },
            Next::Trailer if !whole_end => Some(Fault::Unclear),
            Next::Trailer if is_empty => self.then(Next::Head),
            Next::Trailer | Next::Body(_) | Next::Chunk(_) | Next::Unclear => None,
        }
    }

    fn then(&mut self, next: Next) -> Option<Fault> {
        self.next = next;
        None
    }

    fn end_head(&mut self) -> Option<Fault> {
        let head = std::mem::take(&mut self.head);
        let fault = head.fault();
        self.heads += 1;
        self.next = match head.length {
            _ if head.codings > 0 => Next::Size,
            Some(length) if length > 0 => Next::Body(length),
            _ => Next::Head,
        };
        fault
    }
}

impl Head {
    fn line(&mut self, line: &[u8]) {
        if !self.begun {
            self.begun = true;
            return;
        }
        if !matches!(line.first(), Some(b'c' | b'C' | b't' | b'T')) {
            return;
        }
        let Some(colon) = memchr(b':', line) else {
            return;
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(LENGTH) {
            self.lengths += 1;
            self.length = std::str::from_utf8(value)
                .ok()
                .and_then(|value| value.parse().ok());
        } else if name.eq_ignore_ascii_case(CODING) {
            self.codings += 1;
            self.unknown_coding |= !value.eq_ignore_ascii_case(b"chunked");
        }
    }

    fn fault(&self) -> Option<Fault> {
        match self {
            Self { bare: true, .. } => Some(Fault::BareLineFeed),
            Self {
                lengths, codings, ..
            } if *lengths > 0 && *codings > 0 => Some(Fault::LengthAndCoding),
            Self { lengths: 2.., .. } => Some(Fault::LengthTwice),
            Self { codings: 2.., .. } => Some(Fault::CodingTwice),
            Self {
                unknown_coding: true,
                ..
            } => Some(Fault::UnknownCoding),
            // The length is no number, or its line is longer than [`KEPT`].
            Self {
                lengths: 1,
                length: None,
                ..
            } => Some(Fault::Unclear),
            _ => None,
        }
    }
}

impl Line {
    fn keep(&mut self, bytes: &[u8]) {
        let room = KEPT.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.last = bytes.last().copied().or(self.last);
    }
}

fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit());
    let digits = std::str::from_utf8(&line[..digits.count()]).ok()?;
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests;
