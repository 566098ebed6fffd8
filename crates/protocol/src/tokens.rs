use crate::depth::end_of_string;
use crate::object::skip_space;

/// A token of valid JSON. Names and strings keep quotes and escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// `{`
    ObjectBegins,
    /// `}`
    ObjectEnds,
    /// `[`
    ArrayBegins,
    /// `]`
    ArrayEnds,
    /// A member's name, before its value.
    Name(&'a [u8]),
    /// A string value.
    String(&'a [u8]),
    /// A number.
    Number(&'a [u8]),
    /// `true`, `false` or `null`.
    Literal(&'a [u8]),
}

/// Iterates over the tokens of valid JSON. Stops at the first fault in invalid text.
#[derive(Clone, Debug)]
pub struct Tokens<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    /// Iterates over a text's tokens.
    pub fn of(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let text = self.text;
        loop {
            let start = self.at;
            let first = *text.get(start)?;
            self.at += 1;
            return Some(match first {
                b'{' => Token::ObjectBegins,
                b'}' => Token::ObjectEnds,
                b'[' => Token::ArrayBegins,
                b']' => Token::ArrayEnds,
                b'"' => {
                    let end = (end_of_string(text, start) + 1).min(text.len());
                    let written = &text[start..end];
                    self.at = skip_space(text, end);
                    if text.get(self.at) == Some(&b':') {
                        self.at += 1;
                        Token::Name(written)
                    } else {
                        Token::String(written)
                    }
                }
                b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => continue,
                _ => {
                    while text.get(self.at).is_some_and(|&byte| !ends_scalar(byte)) {
                        self.at += 1;
                    }
                    let written = &text[start..self.at];
                    match first {
                        b'-' | b'0'..=b'9' => Token::Number(written),
                        _ => Token::Literal(written),
                    }
                }
            });
        }
    }
}

fn ends_scalar(byte: u8) -> bool {
    matches!(
        byte,
        b',' | b':' | b'}' | b']' | b'{' | b'[' | b'"' | b' ' | b'\t' | b'\n' | b'\r'
    )
}

/// Returns a JSON string's UTF-16 code units, including unpaired surrogates.
pub fn utf16_of(written: &[u8]) -> Vec<u16> {
    let inner = written.strip_prefix(b"\"").unwrap_or(written);
    let inner = inner.strip_suffix(b"\"").unwrap_or(inner);
    let mut rest = std::str::from_utf8(inner).unwrap_or_default();
    let mut units = Vec::with_capacity(rest.len());
    while let Some((plain, escaped)) = rest.split_once('\\') {
        units.extend(plain.encode_utf16());
        let mut letters = escaped.chars();
        let letter = letters.next().unwrap_or('\\');
        rest = letters.as_str();
        units.push(match letter {
            'b' => 0x08,
            't' => 0x09,
            'n' => 0x0a,
            'f' => 0x0c,
            'r' => 0x0d,
            'u' => {
                let digits = rest.get(..4).unwrap_or_default();
                rest = rest.get(4..).unwrap_or_default();
                u16::from_str_radix(digits, 16).unwrap_or(0xfffd)
            }
            itself => u16::try_from(u32::from(itself)).unwrap_or(0xfffd),
        });
    }
    units.extend(rest.encode_utf16());
    units
}

#[cfg(test)]
mod tests {
    use super::Token::{
        ArrayBegins, ArrayEnds, Literal, Name, Number, ObjectBegins, ObjectEnds, String,
    };
    use super::{Tokens, utf16_of};

    #[test]
    fn a_text_is_taken_apart_as_it_is_written() {
        let text = br#" {"a" : [1.0,-0 ,"b:",1e400] , "\u0061":{},"c":null,"d":"\"","e":[true]}"#;
        let tokens: Vec<_> = Tokens::of(text).collect();
        let expected = [
            ObjectBegins,
            Name(b"\"a\""),
            ArrayBegins,
            Number(b"1.0"),
            Number(b"-0"),
            String(b"\"b:\""),
            Number(b"1e400"),
            ArrayEnds,
            Name(br#""\u0061""#),
            ObjectBegins,
            ObjectEnds,
            Name(b"\"c\""),
            Literal(b"null"),
            Name(b"\"d\""),
            String(br#""\"""#),
            Name(b"\"e\""),
            ArrayBegins,
            Literal(b"true"),
            ArrayEnds,
            ObjectEnds,
        ];
        assert_eq!(tokens, expected);
        for broken in ["\"", "{\"a", "[1", "nul", "\"\\", "}}]]"] {
            assert!(Tokens::of(broken.as_bytes()).count() > 0, "{broken}");
        }
    }

    #[test]
    fn strings_are_read_as_their_parser_reads_them() {
        for text in [
            r#""""#,
            r#""plain ä 😀""#,
            r#""\"\\\/\b\f\n\r\t""#,
            r#""\u0061\ud83d\ude00x""#,
        ] {
            let read: std::string::String = serde_json::from_str(text).unwrap();
            let units: Vec<u16> = read.encode_utf16().collect();
            assert_eq!(utf16_of(text.as_bytes()), units, "{text}");
        }
        assert_eq!(utf16_of(br#""a\ud800""#), [0x61, 0xd800]);
        for broken in ["\"\\", "\"\\u", "\"\\u00", "\"\\x\"", "\""] {
            utf16_of(broken.as_bytes());
        }
    }
}
