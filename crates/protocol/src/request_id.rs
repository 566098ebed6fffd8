use std::sync::Arc;

use bytes::Bytes;

use crate::RawJson;
use crate::tokens::utf16_of;

/// A JSON-RPC id: a string or an integer, echoed as received, except that `7.0` becomes `7`. Ids
/// are equal if their values are: `"a"` equals `"\u0061"`, but `1` differs from `"1"`.
#[derive(Clone)]
pub struct RequestId {
    raw: Arc<str>,
    /// The canonical spelling, if `raw` has escapes.
    canonical: Option<Box<str>>,
}

impl RequestId {
    /// Reads an id.
    ///
    /// # Errors
    /// The id is null, a fraction, or of another type.
    pub fn from_json(json: &RawJson) -> Result<Self, &'static str> {
        let text = json.as_str();
        match text.as_bytes().first() {
            Some(b'"') => {
                let canonical = text.contains('\\').then(|| canonical(text));
                Ok(Self {
                    raw: text.into(),
                    canonical,
                })
            }
            Some(b'n') => Err("the id must not be null"),
            Some(b'-' | b'0'..=b'9') => {
                let whole = text.split_once('.').map_or(text, |(whole, fraction)| {
                    let is_zero = fraction.bytes().all(|digit| digit == b'0');
                    if is_zero { whole } else { text }
                });
                match whole.bytes().all(|b| b == b'-' || b.is_ascii_digit()) {
                    true => Ok(Self {
                        raw: whole.into(),
                        canonical: None,
                    }),
                    false => Err("the id must be an integer, not a fraction"),
                }
            }
            _ => Err("the id must be a string or an integer"),
        }
    }

    /// The null id, for answers to unreadable messages (JSON-RPC 2.0, 5).
    pub(crate) fn of_unreadable() -> Self {
        Self {
            raw: "null".into(),
            canonical: None,
        }
    }

    /// Whether this is the null id.
    pub fn names_nothing(&self) -> bool {
        &*self.raw == "null"
    }

    /// Makes an integer id.
    pub fn from_number(number: u64) -> Self {
        Self {
            raw: number.to_string().into(),
            canonical: None,
        }
    }

    /// Makes a string id.
    pub fn from_string(text: &str) -> Self {
        Self {
            raw: RawJson::of(text).as_str().into(),
            canonical: None,
        }
    }

    /// Returns the JSON as received.
    pub fn to_json(&self) -> RawJson {
        RawJson::from_valid(Bytes::copy_from_slice(self.as_bytes()))
    }

    /// Returns the JSON text as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.raw.as_bytes()
    }

    /// Returns the id as a number, if it is a whole number that fits.
    pub fn number(&self) -> Option<u64> {
        self.raw.parse().ok()
    }

    /// Like [`number`](Self::number), but also reads a string, because some servers answer with one.
    pub fn number_as_answered(&self) -> Option<u64> {
        let text = self
            .raw
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'));
        text.unwrap_or(&self.raw).parse().ok()
    }

    fn key(&self) -> &str {
        self.canonical.as_deref().unwrap_or(&self.raw)
    }
}

fn canonical(written: &str) -> Box<str> {
    let mut text = String::from("\"");
    for read in char::decode_utf16(utf16_of(written.as_bytes())) {
        match read {
            Ok(letter) => {
                let quoted = RawJson::of(&letter);
                text.push_str(&quoted.as_str()[1..quoted.len() - 1]);
            }
            Err(half) => text.push_str(&format!("\\u{:04x}", half.unpaired_surrogate())),
        }
    }
    text.push('"');
    text.into()
}

impl PartialEq for RequestId {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for RequestId {}

impl std::hash::Hash for RequestId {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl std::fmt::Debug for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.raw)
    }
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.raw)
    }
}

impl serde::Serialize for RequestId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for RequestId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = RawJson::deserialize(deserializer)?;
        Self::from_json(&json).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::RequestId;
    use crate::RawJson;

    fn id(text: &'static str) -> Result<RequestId, &'static str> {
        RequestId::from_json(&RawJson::from_static(text))
    }

    #[test]
    fn an_id_does_not_keep_its_message() {
        for (text, at) in [(r#"{"id":"a"}"#, 6..9), (r#"{"id":17}"#, 6..8)] {
            let message = Bytes::from(text.as_bytes().to_vec());
            let raw = RawJson::from_valid(message.slice(at.clone()));
            let id = RequestId::from_json(&raw).unwrap();
            drop(raw);
            assert!(message.is_unique(), "{text}");
            assert_eq!(id.as_bytes(), &text.as_bytes()[at]);
        }
    }

    #[test]
    fn keeps_type_and_spelling() {
        for text in [
            "1",
            "\"1\"",
            "-7",
            "123456789012345678901234567890",
            r#""\u0061""#,
        ] {
            assert_eq!(id(text).unwrap().to_json().as_str(), text);
        }
    }

    #[test]
    fn compares_by_value_and_type() {
        assert_ne!(id("1"), id("\"1\""));
        assert_eq!(id(r#""a""#), id(r#""\u0061""#));
        assert_eq!(id(r#""\"\\\/😀""#), id(r#""\u0022\u005c/\ud83d\ude00""#));
    }

    #[test]
    fn half_of_a_surrogate_pair_is_an_id_of_its_own() {
        let half = id(r#""a\uD800\n""#).unwrap();
        assert_eq!(half.to_json().as_str(), r#""a\uD800\n""#);
        assert_eq!(half, id(r#""\u0061\ud800\u000a""#).unwrap());
        for other in [r#""a\ud801\n""#, r#""a\ufffd\n""#, r#""a\\ud800\n""#] {
            assert_ne!(half, id(other).unwrap(), "{other}");
        }
    }

    #[test]
    fn an_integer_may_be_spelled_as_some_libraries_do() {
        assert_eq!(id("7.0"), id("7"));
        assert_eq!(id("-70.00"), id("-70"));
        assert_eq!(id("7.0").unwrap().number_as_answered(), Some(7));
        assert_eq!(id(r#""7""#).unwrap().number_as_answered(), Some(7));
        assert_eq!(id("7").unwrap().number_as_answered(), Some(7));
        assert_eq!(id(r#""a""#).unwrap().number_as_answered(), None);
        for text in ["7.5", "7.01", "7e0", "7.0e1", "null", "{}"] {
            assert!(id(text).is_err(), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_not_an_id() {
        for text in ["null", "1.5", "1e3", "true", "{}", "[]"] {
            assert!(id(text).is_err(), "{text}");
        }
    }
}
