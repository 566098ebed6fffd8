use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::openapi::config::DeepLists;

/// Characters to encode in a value, so that the value cannot leave its place.
pub(super) const VALUE: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// Characters to encode in a value that may have reserved characters: also those that would end the
/// value.
const RESERVED: &AsciiSet = &VALUE
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b';');

/// Like `RESERVED`, but for paths. Some servers drop the text after `;`, so it is encoded.
pub(super) const RESERVED_IN_PATH: &AsciiSet = &VALUE
    .remove(b':')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b'=');

pub(in crate::openapi) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub(in crate::openapi) fn percent_encoded(text: &str) -> String {
    encoded(text, VALUE)
}

pub(super) fn encoded(text: &str, set: &'static AsciiSet) -> String {
    utf8_percent_encode(text, set).to_string()
}

/// Keeps percent-encoded triples (RFC 6570, 3.2.3).
pub(super) fn keeping_triples(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let (before, from) = rest.split_at(at);
        written.push_str(&encoded(before, RESERVED));
        let is_triple = from.len() > 2 && from.as_bytes()[1..3].iter().all(u8::is_ascii_hexdigit);
        let (one, after) = from.split_at(if is_triple { 3 } else { 1 });
        written.push_str(if is_triple { one } else { "%25" });
        rest = after;
    }
    written.push_str(&encoded(rest, RESERVED));
    written
}

pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => defined(items).next().is_none(),
        Value::Object(members) => members.values().all(Value::is_null),
        _ => false,
    }
}

/// `null` has no form in a URL (RFC 6570, 2.3).
pub(super) fn defined(items: &[Value]) -> impl Iterator<Item = &Value> {
    items.iter().filter(|item| !item.is_null())
}

pub(super) fn pairs(
    value: &Value,
    encode: impl Fn(&str) -> String,
) -> impl Iterator<Item = (String, String)> {
    let members = value.as_object().into_iter().flatten();
    let members = members.filter(|(_, value)| !value.is_null());
    members.map(move |(key, value)| (encode(key), encode(&plain(value))))
}

pub(super) fn joined(
    value: &Value,
    between: &str,
    encode: impl Fn(&str) -> String,
    with_equals: bool,
) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = defined(items).map(|item| encode(&plain(item))).collect();
            items.join(between)
        }
        Value::Object(_) => {
            let inner = if with_equals { "=" } else { between };
            let pairs = pairs(value, encode).map(|(key, value)| format!("{key}{inner}{value}"));
            pairs.collect::<Vec<_>>().join(between)
        }
        other => encode(&plain(other)),
    }
}

/// Nested values: `name[key]=value`.
pub(super) fn deep(
    name: &str,
    value: &Value,
    lists: DeepLists,
    encode: &impl Fn(&str) -> String,
    found: &mut Vec<(String, String)>,
) {
    match value {
        Value::Null => {}
        Value::Object(members) => {
            for (key, value) in members {
                let name = format!("{name}%5B{}%5D", encoded(key, VALUE));
                deep(&name, value, lists, encode, found);
            }
        }
        Value::Array(items) => {
            let nested = items.iter().any(|item| item.is_object() || item.is_array());
            for (at, item) in defined(items).enumerate() {
                let name = match lists {
                    DeepLists::Indices => format!("{name}%5B{at}%5D"),
                    DeepLists::Mixed if nested => format!("{name}%5B{at}%5D"),
                    DeepLists::Mixed | DeepLists::Brackets => format!("{name}%5B%5D"),
                    DeepLists::Repeat => name.to_owned(),
                };
                deep(&name, item, lists, encode, found);
            }
        }
        other => found.push((name.to_owned(), encode(&plain(other)))),
    }
}
