//! Checks that member names are unique, because parsers disagree on which of two equal names counts.

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::json::has_backslash;
use crate::tokens::{Token, Tokens, utf16_of};
use crate::{InvalidMessage, Message, Outcome, RawJson, RpcError, shown};

/// Maximum names that are cheaper to compare pairwise than to sort.
const FEW: usize = 16;
const INLINE: usize = 32;
/// Marks an object's beginning in the list of names. Names include their quotes, so they are not empty.
const OBJECT: &[u8] = b"";
const QUOTED: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Ambiguous {
    #[error("an object must not repeat a member: {0:?} is there twice; send it once")]
    Repeated(String),
    /// A name is not valid Unicode. Replacing its invalid characters could make two names equal.
    #[error("the name of a member must be Unicode text: {0:?} has half of a surrogate pair")]
    NotText(String),
}

impl Message {
    /// Refuses repeated members. Unknown envelope members are ignored.
    ///
    /// # Errors
    /// -32602 for a repeated member of parameters, -32600 for one of a response. The error has the message's id.
    pub(crate) fn check_unique(&self) -> Result<(), InvalidMessage> {
        let (id, read) = match self {
            Self::Request(request) => (Some(&request.id), request.params.as_ref()),
            Self::Notification(said) => (None, said.params.as_ref()),
            Self::Response(response) => {
                let read = match &response.outcome {
                    Outcome::Result(result) => Some(result),
                    Outcome::Error(error) => error.data.as_ref(),
                };
                (Some(&response.id), read)
            }
        };
        read.map_or(Ok(()), |read| check(read.as_bytes()))
            .map_err(|why| InvalidMessage {
                id: id.cloned(),
                error: match self {
                    Self::Response(_) => RpcError::invalid_request(why.to_string()),
                    _ => RpcError::invalid_params(why.to_string()),
                },
            })
    }
}

impl RawJson {
    /// Whether names are unique in each object and valid Unicode.
    pub fn names_members_once(&self) -> bool {
        check(self.as_bytes()).is_ok()
    }
}

pub(crate) fn check(text: &[u8]) -> Result<(), Ambiguous> {
    let mut names = SmallVec::<[&[u8]; INLINE]>::new();
    // Most messages have no escapes, so their names are compared as written.
    let has_escapes = memchr::memchr(b'\\', text).is_some();
    for token in Tokens::of(text) {
        match token {
            Token::ObjectBegins => names.push(OBJECT),
            Token::Name(name) => {
                // Compares with the last names only. A longer object is checked at its end.
                let before = names.iter().rev().take(FEW);
                if before.take_while(|it| !it.is_empty()).any(|it| *it == name) {
                    return Err(repeated(name));
                }
                names.push(name);
            }
            Token::ObjectEnds => {
                let begin = names.iter().rposition(|it| it.is_empty());
                let begin = begin.unwrap_or_default();
                let own = names.get_mut(begin + 1..).unwrap_or_default();
                if has_escapes && own.iter().any(|name| has_backslash(name)) {
                    check_read(own)?;
                } else if own.len() > FEW {
                    own.sort_unstable();
                    if let Some(twice) = own.windows(2).find(|pair| pair[0] == pair[1]) {
                        return Err(repeated(twice[0]));
                    }
                }
                names.truncate(begin);
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_read(names: &[&[u8]]) -> Result<(), Ambiguous> {
    let mut read = Vec::with_capacity(names.len());
    for name in names {
        read.push(match has_backslash(name) {
            false => Cow::Borrowed(inner(name)),
            true => match String::from_utf16(&utf16_of(name)) {
                Ok(text) => Cow::Owned(text.into_bytes()),
                Err(_) => return Err(Ambiguous::NotText(quoted(inner(name)))),
            },
        });
    }
    read.sort_unstable();
    match read.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(twice) => Err(Ambiguous::Repeated(quoted(&twice[0]))),
        None => Ok(()),
    }
}

fn inner(name: &[u8]) -> &[u8] {
    name.get(1..name.len().saturating_sub(1))
        .unwrap_or_default()
}

fn repeated(name: &[u8]) -> Ambiguous {
    Ambiguous::Repeated(quoted(inner(name)))
}

fn quoted(name: &[u8]) -> String {
    shown(&String::from_utf8_lossy(name), QUOTED)
}

#[cfg(test)]
mod tests {
    use super::{Ambiguous, FEW, INLINE, check};

    fn is_twice(text: &str) -> bool {
        serde_json::from_str::<serde_json::Value>(text).unwrap();
        match check(text.as_bytes()) {
            Ok(()) => false,
            Err(Ambiguous::Repeated(_)) => true,
            Err(other) => panic!("{text}: {other}"),
        }
    }

    #[test]
    fn a_name_is_there_once_in_its_own_object() {
        for text in [
            "{}",
            "[1]",
            "5",
            r#"{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}],"c":"a"}"#,
            r#"{"a":1,"A":2,"a ":3,"":4}"#,
            r#"{"\u0061":1,"b":2,"\\u0061":3}"#,
            r#"[{"a":1},{"a":2}]"#,
        ] {
            assert!(!is_twice(text), "{text}");
        }
        for text in [
            r#"{"a":1,"b":{},"a":2}"#,
            r#"{"a":{"b":1,"c":[{}],"b":2}}"#,
            r#"{"x":[[{"a":1},{"a":1,"a":1}]]}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"\u0061":1,"a":2}"#,
            r#"{"\u00e4":1,"ä":2}"#,
            r#"{"\ud83d\ude00":1,"😀":2}"#,
            r#"{"\/":1,"/":2}"#,
            r#"{"":1,"":2}"#,
            r#"{"\u0061":{"b":1},"c":{"d":1,"d":1}}"#,
        ] {
            assert!(is_twice(text), "{text}");
        }
    }

    #[test]
    fn objects_of_any_size_are_checked() {
        for size in [FEW - 1, FEW, FEW + 1, INLINE, INLINE + 1, 1000] {
            for escape in ["", r#""\u0065":0,"#] {
                let member = |at: usize| format!(r#""m{at}":{{"m{at}":0}}"#);
                let members: Vec<_> = (0..size).map(member).collect();
                let object = |more: &str| format!("{{{escape}{}{more}}}", members.join(","));
                assert!(!is_twice(&object("")), "{size}");
                for at in [0, size / 2, size - 1] {
                    assert!(is_twice(&object(&format!(r#","m{at}":1"#))), "{size} {at}");
                }
            }
        }
    }

    #[test]
    fn a_name_that_is_no_text_is_refused() {
        for text in [r#"{"\ud800":1}"#, r#"{"a":[{"b":1,"\udc00x":1}]}"#] {
            assert!(
                matches!(check(text.as_bytes()), Err(Ambiguous::NotText(_))),
                "{text}"
            );
        }
        assert_eq!(check(br#"{"a":"\ud800"}"#), Ok(()));
    }

    #[test]
    fn a_long_name_is_shortened_and_hidden_characters_of_it_are_left_out() {
        let text = format!(r#"{{"x{0}":1,"x{0}":1}}"#, "\u{202e}".repeat(1000));
        let said = check(text.as_bytes()).unwrap_err().to_string();
        assert!(said.contains("\"x\" is there twice"), "{said}");
    }
}
