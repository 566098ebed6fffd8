use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::tokens::{Token, Tokens, utf16_of};
use crate::{Method, RawJson, RawObject, nesting_within};

const DEEPEST: usize = 128;

/// A digest of a request's method and parameters, by which a faithful retry is recognised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestDigest(String);

impl RequestDigest {
    /// Digests a request without `_meta`, `inputResponses` and `requestState`. Order, white space and escapes do not
    /// matter. Numbers count as written, because readers round differently.
    pub fn of(method: &Method, params: Option<&RawJson>) -> Self {
        let mut hash = Sha256::new();
        hash.update(method.as_str());
        if let Some(mut params) = params.and_then(RawObject::of) {
            for own in ["_meta", "inputResponses", "requestState"] {
                params.remove(own);
            }
            let text = params.to_json();
            match nesting_within(text.as_bytes(), DEEPEST) {
                true => Node::of(text.as_bytes()).digest(&mut hash),
                false => hash.update(text.as_bytes()),
            }
        }
        Self(URL_SAFE_NO_PAD.encode(hash.finalize()))
    }
}

enum Node<'a> {
    Scalar(Cow<'a, [u8]>),
    Array(Vec<Self>),
    Object(Vec<(Cow<'a, [u8]>, Self)>),
}

impl<'a> Node<'a> {
    fn of(text: &'a [u8]) -> Self {
        let mut tokens = Tokens::of(text);
        tokens.next().map_or(Self::Array(Vec::new()), |first| {
            Self::from(first, &mut tokens)
        })
    }

    fn from(first: Token<'a>, tokens: &mut Tokens<'a>) -> Self {
        match first {
            Token::ObjectBegins => {
                let mut members = Vec::new();
                while let Some(Token::Name(name)) = tokens.next() {
                    let Some(value) = tokens.next() else { break };
                    members.push((canonical(name), Self::from(value, tokens)));
                }
                // Names are compared without the closing quote, which would count as a letter.
                let end = |name: &Cow<'_, [u8]>| name.len().saturating_sub(1);
                members.sort_by(|(one, _), (other, _)| one[..end(one)].cmp(&other[..end(other)]));
                Self::Object(members)
            }
            Token::ArrayBegins => {
                let mut items = Vec::new();
                while let Some(item) = tokens.next().filter(|it| *it != Token::ArrayEnds) {
                    items.push(Self::from(item, tokens));
                }
                Self::Array(items)
            }
            Token::String(written) => Self::Scalar(canonical(written)),
            Token::Number(written) | Token::Literal(written) => Self::Scalar(written.into()),
            Token::Name(_) | Token::ObjectEnds | Token::ArrayEnds => Self::Array(Vec::new()),
        }
    }

    fn digest(&self, hash: &mut Sha256) {
        let scalar = |hash: &mut Sha256, text: &[u8]| {
            hash.update(text);
            hash.update(b",");
        };
        match self {
            Self::Object(members) => {
                hash.update(b"{");
                for (name, value) in members {
                    scalar(hash, name);
                    value.digest(hash);
                }
                hash.update(b"}");
            }
            Self::Array(items) => {
                hash.update(b"[");
                items.iter().for_each(|item| item.digest(hash));
                hash.update(b"]");
            }
            Self::Scalar(text) => scalar(hash, text),
        }
    }
}

fn canonical(written: &[u8]) -> Cow<'_, [u8]> {
    if !written.contains(&b'\\') {
        return written.into();
    }
    match String::from_utf16(&utf16_of(written)) {
        Ok(text) => RawJson::of(&text).as_bytes().to_vec().into(),
        Err(_) => written.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::RequestDigest;
    use crate::{Method, RawJson};

    fn of(arguments: &str) -> RequestDigest {
        let params = format!(r#"{{"name":"pay","arguments":{arguments}}}"#);
        let params = RawJson::parse_text(params.into()).unwrap();
        RequestDigest::of(&Method::ToolsCall, Some(&params))
    }

    #[test]
    fn a_faithful_retry_may_be_written_in_another_way() {
        for (one, other) in [
            (
                r#"{"a":1,"b":[true,null]}"#,
                r#"{ "b" : [true, null], "a" : 1 }"#,
            ),
            (
                r#"{"a":"\u0061\/\u00e4\ud83d\ude00"}"#,
                r#"{"\u0061":"a/ä😀"}"#,
            ),
            (r#"{"a":"\u000a\u0008"}"#, r#"{"a":"\n\b"}"#),
            ("{}", " { } "),
        ] {
            assert_eq!(of(one), of(other), "{one} {other}");
        }
    }

    #[test]
    fn what_any_reader_may_take_for_something_else_is_something_else() {
        let texts = [
            r#"{"a":9007199254740993}"#,
            r#"{"a":9007199254740992}"#,
            r#"{"a":18446744073709551617}"#,
            r#"{"a":18446744073709551616}"#,
            r#"{"a":1e400}"#,
            r#"{"a":1e500}"#,
            r#"{"a":0}"#,
            r#"{"a":-0}"#,
            r#"{"a":0.1000000000000000055511151231257827}"#,
            r#"{"a":0.1000000000000000055511151231257828}"#,
            r#"{"a":"1"}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"a":2}"#,
            r#"{"a":"\ud800"}"#,
            r#"{"a":"\ud801"}"#,
            r#"{"a":["b","c"]}"#,
            r#"{"a":["b",["c"]]}"#,
            r#"{"a":["b\",\"c"]}"#,
            r#"{"a":[]}"#,
            r#"{"a":{}}"#,
            r#"{"a":null}"#,
        ];
        for (at, one) in texts.iter().enumerate() {
            for other in &texts[..at] {
                assert_ne!(of(one), of(other), "{one} {other}");
            }
        }
        let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(1000), "]".repeat(1000));
        assert_ne!(of(&deep("1")), of(&deep("2")));
    }

    /// Nodes of different releases must compute equal digests during a rollout.
    #[test]
    fn ordinary_requests_have_the_digest_that_they_had() {
        let digest = of(r#"{"to":"b\u00f6b","amount":100,"rate":0.5,"tags":["x",null,true]}"#);
        let written = serde_json::to_string(&digest).unwrap();
        assert_eq!(written, "\"YXCz_7vLsLhSnVff-P6ZAlEPnYY2Uj2fFjjIH9FWqcM\"");
    }
}
