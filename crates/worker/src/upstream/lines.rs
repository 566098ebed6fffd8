//! Cutting a byte stream into lines of bounded length.

use std::borrow::Cow;
use std::io;

use bytes::{Bytes, BytesMut};
use shoal_protocol::Ends;
use tokio_util::codec::Decoder;

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// All of it.
    Whole(Bytes),
    /// Only how an overlong line begins and ends.
    TooLong(Ends),
}

/// A text of a server that is UTF-8.
pub(crate) struct Readable {
    /// The text.
    pub(crate) text: Bytes,
    /// Whether some bytes were not, in whose places are replacement characters.
    pub(crate) replaced: bool,
}

/// Replaces what is no UTF-8, as the TypeScript SDK does: one letter in another encoding is less of a loss than the message.
pub(crate) fn readable(text: Bytes) -> Readable {
    match String::from_utf8_lossy(&text) {
        Cow::Borrowed(_) => Readable {
            text,
            replaced: false,
        },
        Cow::Owned(replaced) => Readable {
            text: replaced.into(),
            replaced: true,
        },
    }
}

/// Decodes lines that end in `\n` or `\r\n`. An overlong line is skipped without being kept, so
/// memory stays bounded whatever the other side writes. Never fails.
pub struct Lines {
    limit: usize,
    searched: usize,
    overlong: Option<Ends>,
}

impl Lines {
    /// Lines of at most `limit` bytes.
    pub fn of_at_most(limit: usize) -> Self {
        Self {
            limit,
            searched: 0,
            overlong: None,
        }
    }

    fn finish(&mut self, mut line: BytesMut) -> Line {
        for end in [b'\n', b'\r'] {
            if line.last() == Some(&end) {
                line.truncate(line.len() - 1);
            }
        }
        let mut overlong = match self.overlong.take() {
            Some(overlong) => overlong,
            None if line.len() > self.limit => Ends::default(),
            None => return Line::Whole(line.freeze()),
        };
        overlong.pass(&line);
        Line::TooLong(overlong)
    }
}

impl Decoder for Lines {
    type Item = Line;
    type Error = io::Error;

    fn decode(&mut self, text: &mut BytesMut) -> io::Result<Option<Line>> {
        if let Some(end) = text[self.searched..].iter().position(|byte| *byte == b'\n') {
            let line = text.split_to(self.searched + end + 1);
            self.searched = 0;
            return Ok(Some(self.finish(line)));
        }
        // One byte more than the limit may still be the `\r` of a line that fits.
        if text.len() > self.limit + 1 || self.overlong.is_some() {
            // A `\r` may be the end of the line's end.
            let passed = text.len() - usize::from(text.last() == Some(&b'\r'));
            (self.overlong.get_or_insert_default()).pass(&text.split_to(passed));
        }
        self.searched = text.len();
        Ok(None)
    }

    fn decode_eof(&mut self, text: &mut BytesMut) -> io::Result<Option<Line>> {
        if let Some(line) = self.decode(text)? {
            return Ok(Some(line));
        }
        self.searched = 0;
        let rest = text.split();
        Ok((!rest.is_empty() || self.overlong.is_some()).then(|| self.finish(rest)))
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use tokio_util::codec::Decoder;

    use super::{Ends, Line, Lines};

    fn decode(limit: usize, parts: &[&str]) -> Vec<Line> {
        let mut lines = Lines::of_at_most(limit);
        let mut text = BytesMut::new();
        let mut found = Vec::new();
        for part in parts {
            text.extend_from_slice(part.as_bytes());
            while let Some(line) = lines.decode(&mut text).unwrap() {
                found.push(line);
            }
        }
        while let Some(line) = lines.decode_eof(&mut text).unwrap() {
            found.push(line);
        }
        found
    }

    fn whole(text: &'static str) -> Line {
        Line::Whole(text.as_bytes().into())
    }

    #[test]
    fn lines_are_found_however_the_bytes_arrive() {
        let expected = [whole("one"), whole(""), whole("two"), whole("three")];
        assert_eq!(decode(9, &["one\n\r\ntwo\nthree"]), expected);
        assert_eq!(
            decode(9, &["o", "ne\n", "\r", "\ntw", "o", "\n", "three"]),
            expected
        );
    }

    #[test]
    fn an_overlong_line_is_skipped_and_the_next_one_read() {
        let long = format!("begin{}end", "x".repeat(2000));
        for cut in [1, 5, 500, 1500] {
            let (first, second) = long.split_at(cut);
            let found = decode(100, &[first, second, "\nnext\n"]);
            let ends = Ends::of(long.as_bytes());
            assert_eq!(found, [Line::TooLong(ends), whole("next")], "cut at {cut}");
        }
    }

    #[test]
    fn an_overlong_line_is_told_the_same_however_it_arrives() {
        let line = "xxxx\r\r\r\n";
        let all = decode(2, &[line]);
        assert_eq!(all, [Line::TooLong(Ends::of(b"xxxx\r\r"))]);
        for cut in 1..line.len() {
            let (first, second) = line.split_at(cut);
            assert_eq!(decode(2, &[first, second]), all, "cut at {cut}");
        }
    }

    #[test]
    fn the_limit_itself_fits() {
        assert_eq!(decode(4, &["four\r\n"]), [whole("four")]);
        assert!(matches!(decode(4, &["five!\n"])[0], Line::TooLong(_)));
    }
}
