use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON value as shared text, which keeps order, white space, number spelling and unknown members.
#[derive(Clone, PartialEq, Eq)]
pub struct RawJson(Bytes);

impl RawJson {
    /// Wraps text known to be valid JSON.
    pub fn from_valid(text: Bytes) -> Self {
        Self(text)
    }

    /// Wraps a literal, such as `{}`.
    pub const fn from_static(text: &'static str) -> Self {
        Self(Bytes::from_static(text.as_bytes()))
    }

    /// Validates and wraps `text`.
    ///
    /// # Errors
    /// The parser's message, with line and column.
    pub fn parse_text(text: Bytes) -> Result<Self, serde_json::Error> {
        let value: &RawValue = serde_json::from_slice(&text)?;
        let inner = text.slice_ref(value.get().as_bytes());
        Ok(Self(inner))
    }

    /// Serializes a value.
    ///
    /// # Panics
    /// `value` cannot be written as JSON.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Self {
        let text = serde_json::to_vec(value).expect("own types serialize to JSON");
        Self(text.into())
    }

    /// Returns the text's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Returns a shared buffer.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// Returns a shared buffer, without a copy.
    pub fn to_bytes(&self) -> Bytes {
        self.0.clone()
    }

    /// Replaces unpaired surrogates in strings by U+FFFD; `None` without any.
    pub fn without_halves(&self) -> Option<Self> {
        let mut text = self.0.to_vec();
        let mut found = false;
        let mut at = 0;
        while let Some(next) = text.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
            let escape = at + next;
            at = escape + 2;
            let Some(unit) = unit_at(&text, escape) else {
                continue;
            };
            at = escape + UNIT;
            match unit {
                0xd800..0xdc00 if matches!(unit_at(&text, at), Some(0xdc00..0xe000)) => at += UNIT,
                0xd800..0xe000 => {
                    text[escape..at].copy_from_slice(b"\\ufffd");
                    found = true;
                }
                _ => {}
            }
        }
        found.then(|| Self(text.into()))
    }

    /// Copies the text, so that its message can be freed.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }

    /// Reads the value into a type.
    ///
    /// # Errors
    /// The value has another shape, or more than 128 levels.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        // Validates UTF-8 once instead of for each string.
        serde_json::from_str(self.as_str())
    }

    /// Whether the value is null.
    pub fn is_null(&self) -> bool {
        self.as_str() == "null"
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.0.first() == Some(&b'{')
    }

    /// Returns a JSON string's content; `None` for other values.
    pub fn string(&self) -> Option<String> {
        content(self.as_bytes()).map(Cow::into_owned)
    }

    /// Returns a JSON string's content. Copies it only if it has escapes.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        content(self.as_bytes())
    }

    pub(crate) fn part(&self, at: Range<usize>) -> Self {
        Self(self.0.slice(at))
    }

    /// Returns the text's length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Debug for RawJson {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_slice(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for RawJson {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(Bytes::from(String::from(Box::<str>::from(raw)))))
    }
}

const UNIT: usize = 6;

fn unit_at(text: &[u8], at: usize) -> Option<u16> {
    let digits = text.get(at..at + UNIT)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

pub(crate) fn content(value: &[u8]) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if has_backslash(inner) {
        serde_json::from_slice(value).map(Cow::Owned).ok()
    } else {
        str::from_utf8(inner).map(Cow::Borrowed).ok()
    }
}

pub(crate) fn has_backslash(text: &[u8]) -> bool {
    match text.len() {
        ..8 => text.contains(&b'\\'),
        8..16 => ends_have_backslash::<8>(text),
        16..=32 => ends_have_backslash::<16>(text),
        _ => memchr::memchr(b'\\', text).is_some(),
    }
}

/// The first and last `N` bytes may overlap. The fold compiles to a vector comparison.
fn ends_have_backslash<const N: usize>(text: &[u8]) -> bool {
    let has = |end: &[u8; N]| end.iter().fold(false, |has, &byte| has | (byte == b'\\'));
    text.first_chunk().is_some_and(has) | text.last_chunk().is_some_and(has)
}

#[cfg(test)]
mod tests {
    use super::{RawJson, content, has_backslash};

    #[test]
    fn a_backslash_is_seen_wherever_it_stands() {
        for length in 0..70 {
            for filler in [b'x', 0xc3, b'\\' ^ 0x80, b'\\' - 1] {
                let mut text = vec![filler; length];
                assert!(!has_backslash(&text), "{length} {filler}");
                for at in 0..length {
                    text[at] = b'\\';
                    assert!(has_backslash(&text), "{length} {filler} {at}");
                    text[at] = filler;
                }
            }
        }
    }

    #[test]
    fn half_of_a_surrogate_pair_is_replaced_and_nothing_else() {
        let without = |text: &'static str| RawJson::from_static(text).without_halves();
        for (text, expected) in [
            (r#"{"a":"\ud800"}"#, r#"{"a":"\ufffd"}"#),
            (
                r#"["x\uDC00\ud83d\ude00\ud83d"]"#,
                r#"["x\ufffd\ud83d\ude00\ufffd"]"#,
            ),
            (r#""\ud800\u0041\udfff""#, r#""\ufffd\u0041\ufffd""#),
            (r#""\ud800\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
        ] {
            let read = without(text).unwrap();
            assert_eq!(read.as_str(), expected);
            assert!(read.read::<serde_json::Value>().is_ok());
        }
        for text in [r#""\\ud800""#, r#""\ud83d\ude00 \u0041\n""#, r#""""#, "5"] {
            assert!(without(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_string_reads_as_its_parser_reads_it_whatever_its_length() {
        for length in 0..40 {
            for at in 0..=length {
                for piece in ["", "ä", "\\n", "\\\"", "\\u00e4", "\\x"] {
                    let mut text = "x".repeat(length);
                    text.insert_str(at, piece);
                    let text = format!("\"{text}\"");
                    let read = serde_json::from_str::<String>(&text).ok();
                    assert_eq!(content(text.as_bytes()).as_deref(), read.as_deref());
                }
            }
        }
    }
}
