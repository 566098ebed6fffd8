//! Identifies an unreadable message by the two ends of its line.

use crate::{RawJson, RequestId};

const KEPT: usize = 512;

const VERSION_FIRST: &[u8] = br#""jsonrpc":"2.0","#;
const VERSION_LAST: &[u8] = br#","jsonrpc":"2.0""#;

/// The first and last bytes of an overlong or invalid line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    head: Vec<u8>,
    tail: Vec<u8>,
}

/// A line's kind of message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spotted {
    /// A request and its id.
    Request(RequestId),
    /// A response and its request's id.
    Response(RequestId),
}

impl Ends {
    /// Takes the ends of a whole line.
    pub fn of(line: &[u8]) -> Self {
        let mut ends = Self::default();
        ends.pass(line);
        ends
    }

    /// Adds the next part of the line.
    pub fn pass(&mut self, part: &[u8]) {
        let room = KEPT - self.head.len();
        self.head.extend_from_slice(&part[..part.len().min(room)]);
        self.tail
            .extend_from_slice(&part[part.len().saturating_sub(KEPT)..]);
        let surplus = self.tail.len().saturating_sub(KEPT);
        self.tail.drain(..surplus);
    }

    /// Returns the line's first bytes.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns the message's kind and id, if its spelling leaves no doubt.
    ///
    /// The envelope must be at the start (`{"jsonrpc":"2.0","id":7,"result":`) or the end
    /// (`,"jsonrpc":"2.0","id":7}`), where it cannot be a part of parameters or a result.
    pub fn spot(&self) -> Option<Spotted> {
        let head = without_spaces(&self.head);
        let tail = without_spaces(&self.tail);
        let rest = head.strip_prefix(b"{")?;
        let rest = rest.strip_prefix(VERSION_FIRST).unwrap_or(rest);
        if let Some((id, rest)) = leading_id(rest) {
            let rest = rest.strip_prefix(VERSION_FIRST).unwrap_or(rest);
            return Some(kind(rest)?(read(id, &self.head)?));
        }
        let kind = kind(rest)?;
        if let Some((id, _)) = after_method(rest).and_then(leading_id) {
            return Some(kind(read(id, &self.head)?));
        }
        Some(kind(read(trailing_id(&tail)?, &self.tail)?))
    }
}

fn without_spaces(text: &[u8]) -> Vec<u8> {
    let kept = text.iter().filter(|byte| !byte.is_ascii_whitespace());
    kept.copied().collect()
}

fn kind(rest: &[u8]) -> Option<fn(RequestId) -> Spotted> {
    let begins = |members: [&[u8]; 2]| members.iter().any(|member| rest.starts_with(member));
    if begins([br#""method":"#, br#""params":"#]) {
        Some(Spotted::Request)
    } else if begins([br#""result":"#, br#""error":"#]) {
        Some(Spotted::Response)
    } else {
        None
    }
}

fn after_method(rest: &[u8]) -> Option<&[u8]> {
    let rest = rest.strip_prefix(br#""method":""#)?;
    let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    let rest = rest[end..].strip_prefix(br#"","#)?;
    Some(rest.strip_prefix(VERSION_FIRST).unwrap_or(rest))
}

fn leading_id(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = rest.strip_prefix(br#""id":"#)?;
    let (end, after) = match rest.strip_prefix(b"\"") {
        Some(text) => {
            let end = text.iter().position(|byte| *byte == b'"')? + 2;
            (end, rest[end..].strip_prefix(b",")?)
        }
        None => {
            let end = rest.iter().position(|byte| *byte == b',')?;
            (end, &rest[end + 1..])
        }
    };
    Some((&rest[..end], after))
}

fn trailing_id(tail: &[u8]) -> Option<&[u8]> {
    const NAME: &[u8] = br#","id":"#;
    let rest = tail.strip_suffix(b"}")?;
    let rest = rest.strip_suffix(VERSION_LAST).unwrap_or(rest);
    let at = memchr::memmem::rfind(rest, NAME)?;
    Some(&rest[at + NAME.len()..])
}

/// `spot` removes spaces, so the id must also occur in `line` itself.
fn read(id: &[u8], line: &[u8]) -> Option<RequestId> {
    let plain = match id {
        [b'"', inner @ .., b'"'] => !inner.iter().any(|byte| matches!(byte, b'"' | b'\\')),
        digits => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
    };
    memchr::memmem::find(line, id).filter(|_| plain)?;
    let value: serde_json::Value = serde_json::from_slice(id).ok()?;
    RequestId::from_json(&RawJson::of(&value)).ok()
}

#[cfg(test)]
mod tests {
    use super::{Ends, KEPT, Spotted};
    use crate::RequestId;

    fn spot(line: &str) -> Option<Spotted> {
        let mut ends = Ends::default();
        for part in line.as_bytes().chunks(7) {
            ends.pass(part);
        }
        assert_eq!(ends, Ends::of(line.as_bytes()));
        ends.spot()
    }

    #[test]
    fn a_response_is_told_at_either_end() {
        let long = "long ".repeat(300);
        for line in [
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"content":"{long}"}}}}"#),
            format!(r#"{{"jsonrpc": "2.0", "id": 7, "result": {{"content": "{long}"}}}}"#),
            format!(r#"{{"result":{{"content":"{long}"}},"jsonrpc":"2.0","id":7}}"#),
            format!(r#"{{"error":{{"message":"{long}"}},"id":7,"jsonrpc":"2.0"}}"#),
            r#"{"id":7,"jsonrpc":"2.0","error":{"code":1}}"#.to_owned(),
        ] {
            let seven = RequestId::from_number(7);
            assert_eq!(spot(&line), Some(Spotted::Response(seven)), "{line}");
        }
    }

    #[test]
    fn a_request_is_told_at_either_end() {
        let long = "long ".repeat(300);
        for line in [
            format!(r#"{{"jsonrpc":"2.0","id":"a-1","method":"x","params":{{"y":"{long}"}}}}"#),
            format!(r#"{{"jsonrpc":"2.0","method":"x","id":"a-1","params":{{"y":"{long}"}}}}"#),
            format!(r#"{{"method":"x","jsonrpc":"2.0","id":"a-1","params":{{"y":"{long}"}}}}"#),
            format!(r#"{{"method":"x","params":{{"y":"{long}"}},"jsonrpc":"2.0","id":"a-1"}}"#),
            format!(r#"{{"method":"x","params":{{"y":"{long}"}},"id":"a-1","jsonrpc":"2.0"}}"#),
        ] {
            let id = RequestId::from_string("a-1");
            assert_eq!(spot(&line), Some(Spotted::Request(id)), "{line}");
        }
    }

    #[test]
    fn an_id_that_is_in_doubt_is_not_taken() {
        for line in [
            r#"{"jsonrpc":"2.0","result":{"x":"long long long long","id":7},"id":1.5}"#,
            r#"{"jsonrpc":"2.0","result":{"x":"long long long long long long","id":7}}"#,
            r#"{"jsonrpc":"2.0","result":{"x":"long long long long","y":",\"id\":7"}}"#,
            r#"{"method":"x","params":{"y":",\"id\":\"a"},"id":"a\"b"}"#,
            r#"{"method":"x","params":{"id":"a"}}"#,
            r#"{"id":"a b","method":"x","params":{}}"#,
            r#"{"id":null,"method":"x","params":{}}"#,
            r#"[{"jsonrpc":"2.0","id":7,"result":{}}]"#,
            "garbage",
            "",
        ] {
            assert_eq!(spot(line), None, "{line}");
        }
        let ends = Ends::of(&[b'x'; 3 * KEPT]);
        assert_eq!((ends.head().len(), ends.tail.len()), (KEPT, KEPT));
    }
}
