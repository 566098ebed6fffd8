//! Reads and edits JSON objects without touching other text.

use std::borrow::Cow;
use std::ops::Range;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::RawJson;
use crate::depth::end_of_string;
use crate::json::{content, has_backslash};

/// Splits a valid JSON object into raw keys, with quotes, and raw values. Empty for other values.
pub fn members(text: &Bytes) -> impl Iterator<Item = (Bytes, Bytes)> + '_ {
    spans(text).map(|(key, value)| (text.slice(key), text.slice(value)))
}

pub(crate) fn spans(text: &[u8]) -> impl Iterator<Item = (Range<usize>, Range<usize>)> + '_ {
    let mut walk = Walk::of(text);
    std::iter::from_fn(move || {
        let (key, start) = walk.key()?;
        Some((key, start..walk.pass(start)))
    })
}

struct Walk<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Walk<'a> {
    fn of(text: &'a [u8]) -> Self {
        let at = skip_space(text, 0);
        let is_object = text.get(at) == Some(&b'{');
        Self {
            text,
            at: if is_object { at + 1 } else { text.len() },
        }
    }

    fn key(&mut self) -> Option<(Range<usize>, usize)> {
        let text = self.text;
        let mut at = skip_space(text, self.at);
        if text.get(at) == Some(&b',') {
            at = skip_space(text, at + 1);
        }
        if text.get(at) != Some(&b'"') {
            return None;
        }
        let key = at..(end_of_string(text, at) + 1).min(text.len());
        let colon = skip_space(text, key.end);
        Some((key, skip_space(text, colon + 1).min(text.len())))
    }

    fn pass(&mut self, start: usize) -> usize {
        self.at = end_of_value(self.text, start).min(self.text.len());
        self.at
    }
}

pub(crate) fn named_spans(text: &[u8]) -> impl Iterator<Item = (Cow<'_, str>, Range<usize>)> + '_ {
    spans(text).map(|(key, value)| {
        let key = &text[key];
        let inner = key.get(1..key.len().saturating_sub(1)).unwrap_or_default();
        let name = if has_backslash(inner) {
            serde_json::from_slice(key).map(Cow::Owned).ok()
        } else {
            std::str::from_utf8(inner).map(Cow::Borrowed).ok()
        };
        (name.unwrap_or_default(), value)
    })
}

impl RawJson {
    /// Returns a member's value, without copying. For more than two members, use [`index`](Self::index).
    pub fn member(&self, name: &str) -> Option<Self> {
        let text = self.as_bytes();
        let mut spans = spans(text);
        let (_, value) = spans.find(|(key, _)| key_is(&text[key.clone()], name))?;
        Some(self.part(value))
    }

    /// Returns a list request's cursor. Some clients send `""` if they have none.
    pub fn cursor(&self) -> Option<Self> {
        let cursor = self.member("cursor")?;
        (!matches!(cursor.as_str(), "null" | "\"\"")).then_some(cursor)
    }

    /// Returns a string member's content.
    pub fn member_text(&self, name: &str) -> Option<Cow<'_, str>> {
        let [text] = self.member_texts([name]);
        text
    }

    /// Returns the contents of several string members.
    pub fn member_texts<const N: usize>(&self, names: [&str; N]) -> [Option<Cow<'_, str>>; N] {
        let text = self.as_bytes();
        let mut values = [const { None }; N];
        let mut missing = N;
        let mut spans = spans(text);
        while missing > 0
            && let Some((key, value)) = spans.next()
        {
            let key = &text[key];
            for (name, found) in names.iter().zip(&mut values) {
                // The first of equal names counts.
                if found.is_none() && key_is(key, name) {
                    *found = Some(value.clone());
                    missing -= 1;
                }
            }
        }
        values.map(|value| content(&text[value?]))
    }
}

impl RawJson {
    /// Returns the first byte of a member's value.
    pub fn member_begins(&self, name: &str) -> Option<u8> {
        let text = self.as_bytes();
        let mut walk = Walk::of(text);
        loop {
            let (key, start) = walk.key()?;
            if key_is(&text[key], name) {
                return text.get(start).copied();
            }
            walk.pass(start);
        }
    }
}

impl RawJson {
    /// Removes a member. Copies the text only if shared.
    #[must_use]
    pub fn without(self, name: &str) -> Self {
        let Some(cut) = with_comma(self.as_bytes(), name) else {
            return self;
        };
        let text = match self.into_bytes().try_into_mut() {
            Ok(mut text) => {
                close(&mut text, cut);
                text
            }
            Err(shared) => {
                let mut text = BytesMut::with_capacity(shared.len() - cut.len());
                text.put_slice(&shared[..cut.start]);
                text.put_slice(&shared[cut.end..]);
                text
            }
        };
        Self::from_valid(text.freeze())
    }
}

fn with_comma(text: &[u8], name: &str) -> Option<Range<usize>> {
    let mut before = None;
    let mut spans = spans(text);
    while let Some((key, value)) = spans.next() {
        if key_is(&text[key.clone()], name) {
            return Some(match (before, spans.next()) {
                (Some(before), _) => before..value.end,
                (None, Some((next, _))) => key.start..next.start,
                (None, None) => key.start..value.end,
            });
        }
        before = Some(value.end);
    }
    None
}

fn close(text: &mut BytesMut, cut: Range<usize>) {
    let left = text.len() - cut.len();
    if cut.start < left - cut.start {
        text.copy_within(..cut.start, cut.len());
        text.advance(cut.len());
    } else {
        text.copy_within(cut.end.., cut.start);
        text.truncate(left);
    }
}

pub(crate) fn skip_space(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

fn end_of_value(text: &[u8], start: usize) -> usize {
    match text.get(start) {
        Some(b'"') => end_of_string(text, start) + 1,
        Some(b'{' | b'[') => {
            let mut depth = 0usize;
            let mut at = start;
            while let Some(&byte) = text.get(at) {
                match byte {
                    b'"' => at = end_of_string(text, at),
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => {
                        depth -= 1;
                        if depth == 0 {
                            return at + 1;
                        }
                    }
                    _ => {}
                }
                at += 1;
            }
            text.len()
        }
        _ => {
            let mut at = start;
            while let Some(byte) = text.get(at) {
                if matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r') {
                    break;
                }
                at += 1;
            }
            at
        }
    }
}

/// An object split into members for editing. Unedited members keep their bytes; white space between members
/// is dropped.
#[derive(Clone, Debug, Default)]
pub struct RawObject {
    members: Vec<(Bytes, Bytes)>,
}

impl RawObject {
    /// Splits an object; `None` for other values.
    pub fn of(json: &RawJson) -> Option<Self> {
        let text = json.to_bytes();
        json.is_object().then(|| Self {
            members: members(&text).collect(),
        })
    }

    /// Returns a member's value.
    pub fn get(&self, name: &str) -> Option<RawJson> {
        self.position(name)
            .map(|at| RawJson::from_valid(self.members[at].1.clone()))
    }

    /// Whether the member exists.
    pub fn has(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    /// Replaces or adds a member.
    pub fn set(&mut self, name: &str, value: RawJson) {
        match self.position(name) {
            Some(at) => self.members[at].1 = value.into_bytes(),
            None => self.members.push((quoted(name), value.into_bytes())),
        }
    }

    /// Removes a member and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<RawJson> {
        let at = self.position(name)?;
        Some(RawJson::from_valid(self.members.remove(at).1))
    }

    /// Returns the decoded keys with the raw values.
    pub fn iter(&self) -> impl Iterator<Item = (String, RawJson)> + '_ {
        self.members.iter().map(|(key, value)| {
            let name = serde_json::from_slice(key).unwrap_or_default();
            (name, RawJson::from_valid(value.clone()))
        })
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Writes the members as an object.
    pub fn to_json(&self) -> RawJson {
        let length: usize = self
            .members
            .iter()
            .map(|(k, v)| k.len() + v.len() + 2)
            .sum();
        let mut text = BytesMut::with_capacity(length + 2);
        text.put_u8(b'{');
        for (at, (key, value)) in self.members.iter().enumerate() {
            if at > 0 {
                text.put_u8(b',');
            }
            text.put_slice(key);
            text.put_u8(b':');
            text.put_slice(value);
        }
        text.put_u8(b'}');
        RawJson::from_valid(text.freeze())
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|(key, _)| key_is(key, name))
    }
}

pub(crate) fn key_is(raw: &[u8], name: &str) -> bool {
    let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
    if inner == name.as_bytes() {
        return true;
    }
    // A key that differs from the name can only stand for it with escapes, which make it longer.
    inner.len() > name.len()
        && has_backslash(inner)
        && serde_json::from_slice::<String>(raw).is_ok_and(|decoded| decoded == name)
}

fn quoted(name: &str) -> Bytes {
    RawJson::of(name).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::RawObject;
    use crate::RawJson;

    #[test]
    fn a_member_is_taken_out_wherever_it_is() {
        for (text, left) in [
            (r#"{"a":1}"#, "{}"),
            (r#"{ "a" : 1 }"#, "{  }"),
            (r#"{"a":1,"b":[2],"c":{"a":3}}"#, r#"{"b":[2],"c":{"a":3}}"#),
            (r#"{"b":[2] , "a":1 ,"c":3}"#, r#"{"b":[2] ,"c":3}"#),
            (r#"{"b":[2],"c":3, "\u0061":"}"}"#, r#"{"b":[2],"c":3}"#),
            (r#"{"b":{"a":1}}"#, r#"{"b":{"a":1}}"#),
            (r#"["a"]"#, r#"["a"]"#),
        ] {
            let shared = RawJson::from_static(text);
            assert_eq!(shared.without("a").as_str(), left);
            let alone = RawJson::from_valid(text.as_bytes().to_vec().into());
            assert_eq!(alone.without("a").as_str(), left);
        }
    }

    #[test]
    fn texts_of_members_are_read_whatever_stands_between_them() {
        for (text, name, version) in [
            (r#"{"name":"a","version":"b"}"#, Some("a"), Some("b")),
            (
                r#"{"version" : "b\u0041", "x":{"name":"no"}, "name":"a"}"#,
                Some("a"),
                Some("bA"),
            ),
            (r#"{"name":"a","name":"c"}"#, Some("a"), None),
            (r#"{"name":1,"name":"c","version":"\""}"#, None, Some("\"")),
            (r#"{"n\u0061me":""}"#, Some(""), None),
            (r#"["name"]"#, None, None),
        ] {
            let json = RawJson::from_static(text);
            let found = json.member_texts(["name", "version"]);
            assert_eq!(
                found.each_ref().map(Option::as_deref),
                [name, version],
                "{text}"
            );
            assert_eq!(json.member_text("name").as_deref(), name, "{text}");
        }
    }

    #[test]
    fn a_text_that_nobody_else_holds_stays_where_it_is() {
        let text = |at_front: bool| match at_front {
            true => format!(r#"{{"a":1,"b":"{}"}}"#, "x".repeat(1000)),
            false => format!(r#"{{"b":"{}","a":1}}"#, "x".repeat(1000)),
        };
        for at_front in [true, false] {
            let json = RawJson::from_valid(text(at_front).into_bytes().into());
            let from = json.as_bytes().as_ptr_range();
            let left = json.without("a");
            assert!(from.contains(&left.as_bytes().as_ptr()), "{at_front}");
        }
    }

    #[test]
    fn untouched_members_keep_their_bytes() {
        let json =
            RawJson::from_static(r#"{ "a" : 1.0 , "b":{"x":[1, 2]},"c":12345678901234567890123 }"#);
        let mut object = RawObject::of(&json).unwrap();
        object.set("resultType", RawJson::from_static("\"complete\""));
        object.remove("b");
        assert_eq!(
            object.to_json().as_str(),
            r#"{"a":1.0,"c":12345678901234567890123,"resultType":"complete"}"#
        );
    }

    #[test]
    fn an_escaped_key_is_found() {
        let json = RawJson::from_static(r#"{"\u005fmeta":{"k":"}"}}"#);
        let object = RawObject::of(&json).unwrap();
        assert_eq!(object.get("_meta").unwrap().as_str(), r#"{"k":"}"}"#);
        assert_eq!(json.member("_meta"), object.get("_meta"));
    }

    #[test]
    fn a_member_is_read_without_the_others() {
        let json = RawJson::from_static(r#" {"a" : 1.0 ,"b":{"c":[1, 2]},"c":"\"","c":0}"#);
        let found = |name| json.member(name).map(|it| it.as_str().to_owned());
        assert_eq!(found("a").as_deref(), Some("1.0"));
        assert_eq!(found("c").as_deref(), Some(r#""\"""#));
        assert_eq!(found("d"), None);
        let begins = |name| json.member_begins(name).map(char::from);
        assert_eq!([begins("a"), begins("b")], [Some('1'), Some('{')]);
        assert_eq!([begins("c"), begins("d")], [Some('"'), None]);
        let inner = json.member("b").and_then(|it| it.member("c"));
        assert_eq!(inner.unwrap().as_str(), "[1, 2]");
        for other in ["[\"a\"]", "\"a\"", "1", "{}", "null"] {
            let other = RawJson::parse_text(other.to_owned().into()).unwrap();
            assert_eq!(other.member("a"), None);
            assert_eq!(other.member_begins("a"), None);
        }
    }

    #[test]
    fn an_array_is_not_an_object() {
        assert!(RawObject::of(&RawJson::from_static("[1]")).is_none());
        assert!(
            RawObject::of(&RawJson::from_static("{}"))
                .unwrap()
                .is_empty()
        );
    }
}
