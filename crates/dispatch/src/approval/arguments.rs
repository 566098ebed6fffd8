//! Arguments as a person reads them: indented, bounded, and with nothing hidden.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use sha2::{Digest as _, Sha256};
use shoal_protocol::{RawJson, RpcError};

/// Bytes of arguments in a question.
const LONGEST: usize = 4096;

/// Arguments that a person cannot be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotShown {
    /// A server may take either of two members with one name, and so another one than the person has seen.
    #[error("arguments must not repeat a member where a person must agree to the call")]
    Repeated,
    #[error("arguments are nested too deeply for a person to agree to the call")]
    TooDeep,
}

impl NotShown {
    pub(super) fn to_rpc(self) -> RpcError {
        RpcError::invalid_params(self.to_string())
    }
}

/// Writes arguments. Whatever cannot be seen is written as an escape. Long ones are cut, and it is said how much is missing.
///
/// # Errors
/// When a person could not be sure of what they say.
pub(super) fn pretty(arguments: Option<&RawJson>) -> Result<String, NotShown> {
    let Some(arguments) = arguments else {
        return Ok("Without arguments.".to_owned());
    };
    let shown: Shown = arguments.read().map_err(|_| NotShown::TooDeep)?;
    let mut text = String::new();
    write(&shown, 0, &mut text)?;
    if text.len() <= LONGEST {
        return Ok(format!("Arguments:\n{text}"));
    }
    let mut end = LONGEST;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let (left_out, digest) = (text.len() - end, Sha256::digest(arguments.as_bytes()));
    let digest = digest.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    text.truncate(end);
    Ok(format!(
        "Arguments (cut: {left_out} more bytes are not shown; SHA-256 of all {digest}):\n{text}…"
    ))
}

/// JSON with each of its members, in their order.
enum Shown {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl<'de> Deserialize<'de> for Shown {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Shown;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Shown, E> {
        Ok(Shown::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Shown, E> {
        Ok(Shown::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Shown, E> {
        Ok(Shown::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Shown, E> {
        Ok(Shown::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Shown, E> {
        Ok(Number::from_f64(value).map_or(Shown::Null, Shown::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Shown, E> {
        Ok(Shown::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Shown, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = from.next_element()? {
            items.push(item);
        }
        Ok(Shown::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Shown, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = from.next_entry()? {
            members.push(member);
        }
        Ok(Shown::Object(members))
    }
}

fn write(shown: &Shown, depth: usize, text: &mut String) -> Result<(), NotShown> {
    match shown {
        Shown::Null => text.push_str("null"),
        Shown::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Shown::Number(value) => text.push_str(&value.to_string()),
        Shown::String(value) => string(value, text),
        Shown::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                line(at > 0, depth + 1, text);
                write(item, depth + 1, text)?;
            }
            close(!items.is_empty(), depth, ']', text);
        }
        Shown::Object(members) => {
            let mut names = HashSet::with_capacity(members.len());
            text.push('{');
            for (at, (name, value)) in members.iter().enumerate() {
                if !names.insert(name) {
                    return Err(NotShown::Repeated);
                }
                line(at > 0, depth + 1, text);
                string(name, text);
                text.push_str(": ");
                write(value, depth + 1, text)?;
            }
            close(!members.is_empty(), depth, '}', text);
        }
    }
    Ok(())
}

fn line(comma: bool, depth: usize, text: &mut String) {
    if comma {
        text.push(',');
    }
    // What is beyond the bound is not shown, so its depth need not be either: it would make much of little.
    if text.len() <= LONGEST {
        text.push('\n');
        text.extend(std::iter::repeat_n("  ", depth));
    }
}

fn close(filled: bool, depth: usize, bracket: char, text: &mut String) {
    if filled {
        line(false, depth, text);
    }
    text.push(bracket);
}

fn string(value: &str, text: &mut String) {
    text.push('"');
    for c in value.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            c if is_seen(c) => text.push(c),
            c => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    let _ = write!(text, "\\u{unit:04x}");
                }
            }
        }
    }
    text.push('"');
}

/// Whether a character shows itself, and leaves the others as they are.
fn is_seen(c: char) -> bool {
    !(c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shoal_protocol::RawJson;

    use super::{LONGEST, NotShown, pretty};

    fn of(text: &str) -> Result<String, NotShown> {
        pretty(Some(&RawJson::from_valid(text.to_owned().into())))
    }

    #[test]
    fn arguments_are_shown_in_their_order() {
        let shown = of(r#"{"z":{"list":[1,-2.5,null,{}],"none":[]},"a":"x\"y"}"#).unwrap();
        assert_eq!(
            shown,
            "Arguments:\n{\n  \"z\": {\n    \"list\": [\n      1,\n      -2.5,\n      null,\n      {}\n    ],\n    \"none\": []\n  },\n  \"a\": \"x\\\"y\"\n}"
        );
        assert_eq!(pretty(None).unwrap(), "Without arguments.");
    }

    #[test]
    fn nothing_is_hidden_by_its_spelling() {
        let shown = of(r#"{"\u0070ath":"\u002fetc","b":"a\u202egpj.exe\u0000\r\n\udb40\udc41"}"#);
        let shown = shown.unwrap();
        assert!(shown.contains(r#""path": "/etc""#), "{shown}");
        assert!(
            shown.contains(r#""a\u202egpj.exe\u0000\u000d\n\udb40\udc41""#),
            "{shown}"
        );
    }

    #[test]
    fn a_member_that_comes_twice_is_refused_wherever_it_is() {
        assert_eq!(of(r#"{"a":1,"\u0061":2}"#), Err(NotShown::Repeated));
        assert_eq!(of(r#"{"x":[{"a":1,"a":1}]}"#), Err(NotShown::Repeated));
        assert!(of(r#"{"a":{"a":1}}"#).is_ok());
    }

    #[test]
    fn long_arguments_are_cut_and_it_is_said() {
        let text = json!({ "text": "ä".repeat(LONGEST) }).to_string();
        let shown = of(&text).unwrap();
        assert!(shown.len() < LONGEST + 200 && shown.ends_with('…'));
        assert!(shown.contains("more bytes are not shown; SHA-256 of all "));
        let nested = format!("{}{}", "[".repeat(100), "]".repeat(100));
        let many = format!(
            r#"{{"a":[{}]}}"#,
            std::iter::repeat_n(nested, 100)
                .collect::<Vec<_>>()
                .join(",")
        );
        assert!(of(&many).unwrap().len() < LONGEST + 200);
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(5000), "]".repeat(5000));
        assert_eq!(of(&deep), Err(NotShown::TooDeep));
    }
}
