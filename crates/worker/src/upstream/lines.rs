use std::io;

use bytes::{Bytes, BytesMut};
use shoal_protocol::Ends;
use tokio_util::codec::Decoder;

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A whole line.
    Whole(Bytes),
    /// An overlong line's beginning and end.
    TooLong(Ends),
}

/// A server's text: UTF-8 unless too much of it was invalid.
#[derive(Clone)]
pub(crate) struct Readable {
    pub(crate) text: Bytes,
    pub(crate) replaced: bool,
}

const GROWTH: usize = 64 * 1024;

/// Replaces invalid UTF-8, as the TypeScript SDK does: a damaged letter is better than a lost
/// message. A text that would grow too much stays as it is, and its parser refuses it.
pub(crate) fn readable(text: Bytes) -> Readable {
    if str::from_utf8(&text).is_ok() || growth_of(&text) > GROWTH {
        return Readable {
            text,
            replaced: false,
        };
    }
    Readable {
        text: String::from_utf8_lossy(&text).into_owned().into(),
        replaced: true,
    }
}

fn growth_of(text: &Bytes) -> usize {
    let replacement = char::REPLACEMENT_CHARACTER.len_utf8();
    let invalid = text.utf8_chunks().map(|chunk| chunk.invalid().len());
    let invalid = invalid.filter(|invalid| *invalid > 0);
    invalid
        .map(|invalid| replacement.saturating_sub(invalid))
        .sum()
}

/// Decodes lines that end in `\n` or `\r\n`. Skips overlong lines without buffering them. Decoding
/// cannot fail.
pub struct Lines {
    limit: usize,
    searched: usize,
    overlong: Option<Ends>,
}

impl Lines {
    /// Limits lines to `limit` bytes.
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
        // The extra byte may be the `\r` of a line that fits.
        if text.len() > self.limit + 1 || self.overlong.is_some() {
            // A final `\r` may belong to the line end.
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

    use super::{Ends, GROWTH, Line, Lines, readable};

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
    fn bytes_that_are_no_utf_8_are_replaced_unless_the_text_grows_much() {
        let read = |text: &[u8]| {
            let read = readable(text.to_vec().into());
            (read.text.to_vec(), read.replaced)
        };
        assert_eq!(read("grün".as_bytes()), ("grün".into(), false));
        assert_eq!(
            read(b"gr\xfcn \xe2\x82"),
            ("gr\u{fffd}n \u{fffd}".into(), true)
        );
        let most = vec![0xff; GROWTH / 2];
        assert_eq!(read(&most), ("\u{fffd}".repeat(GROWTH / 2).into(), true));
        let more = vec![0xff; GROWTH / 2 + 1];
        assert_eq!(read(&more), (more.clone(), false));
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
