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
pub(super) enum FramingFault {
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
    next: NextPart,
    head: Head,
    heads: u64,
    line: HeadLine,
}

#[derive(Clone, Copy, Debug, Default)]
enum NextPart {
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
struct HeadLine {
    kept: Vec<u8>,
    last: Option<u8>,
}

impl Framing {
    /// Returns a fault with the number of its request, counted from 0.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Option<(u64, FramingFault)> {
        while !bytes.is_empty() {
            bytes = match self.next {
                NextPart::Unclear => return None,
                NextPart::Body(left) => self.skip(bytes, left, NextPart::Body, NextPart::Head),
                NextPart::Chunk(left) => self.skip(bytes, left, NextPart::Chunk, NextPart::Size),
                NextPart::Head | NextPart::Size | NextPart::Trailer => {
                    let Some(end) = memchr(b'\n', bytes) else {
                        self.line.keep(bytes);
                        return None;
                    };
                    let at = self.heads;
                    if let Some(fault) = self.line(&bytes[..end]) {
                        self.next = NextPart::Unclear;
                        return Some((at, fault));
                    }
                    &bytes[end + 1..]
                }
            };
        }
        None
    }

    pub(super) fn is_amid(&self) -> bool {
        !matches!(self.next, NextPart::Head) || self.head.begun || self.line.last.is_some()
    }

    pub(super) fn is_in_head(&self) -> bool {
        matches!(self.next, NextPart::Head) && self.is_amid()
    }

    fn skip<'b>(
        &mut self,
        bytes: &'b [u8],
        left: u64,
        same: fn(u64) -> NextPart,
        then: NextPart,
    ) -> &'b [u8] {
        let skipped = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        self.next = match left - skipped as u64 {
            0 => then,
            left => same(left),
        };
        &bytes[skipped..]
    }

    /// `end` is the line's last part, without the LF.
    fn line(&mut self, end: &[u8]) -> Option<FramingFault> {
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

    fn whole_line(&mut self, line: &[u8], whole_end: bool) -> Option<FramingFault> {
        let is_empty = line.is_empty() || line == b"\r";
        match self.next {
            NextPart::Head => {
                self.head.bare |= !whole_end;
                if !is_empty {
                    self.head.line(line);
                } else if self.head.begun {
                    return self.end_head();
                }
                None
            }
            NextPart::Size => match chunk_size(line).filter(|_| whole_end) {
                Some(0) => self.then(NextPart::Trailer),
                Some(size) => self.then(NextPart::Chunk(size.saturating_add(2))),
                None => Some(FramingFault::Unclear),
            },
            NextPart::Trailer if !whole_end => Some(FramingFault::Unclear),
            NextPart::Trailer if is_empty => self.then(NextPart::Head),
            NextPart::Trailer | NextPart::Body(_) | NextPart::Chunk(_) | NextPart::Unclear => None,
        }
    }

    fn then(&mut self, next: NextPart) -> Option<FramingFault> {
        self.next = next;
        None
    }

    fn end_head(&mut self) -> Option<FramingFault> {
        let head = std::mem::take(&mut self.head);
        let fault = head.fault();
        self.heads += 1;
        self.next = match head.length {
            _ if head.codings > 0 => NextPart::Size,
            Some(length) if length > 0 => NextPart::Body(length),
            _ => NextPart::Head,
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

    fn fault(&self) -> Option<FramingFault> {
        match self {
            Self { bare: true, .. } => Some(FramingFault::BareLineFeed),
            Self {
                lengths, codings, ..
            } if *lengths > 0 && *codings > 0 => Some(FramingFault::LengthAndCoding),
            Self { lengths: 2.., .. } => Some(FramingFault::LengthTwice),
            Self { codings: 2.., .. } => Some(FramingFault::CodingTwice),
            Self {
                unknown_coding: true,
                ..
            } => Some(FramingFault::UnknownCoding),
            // The length is no number, or its line is longer than [`KEPT`].
            Self {
                lengths: 1,
                length: None,
                ..
            } => Some(FramingFault::Unclear),
            _ => None,
        }
    }
}

impl HeadLine {
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
