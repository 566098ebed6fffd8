//! The tokens of a case with authentication.

use http::HeaderValue;
use sha2::{Digest, Sha256};

use crate::servers::spawned::Environment;

/// A bearer token that nobody else knows.
pub(super) struct Token(String);

impl Token {
    /// A new one: 256 random bits.
    pub(super) fn new() -> Self {
        let (first, second): (u128, u128) = rand::random();
        Self(format!("{first:032x}{second:032x}"))
    }

    /// What a request says to show it.
    pub(super) fn header(&self) -> HeaderValue {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.0))
            .expect("hexadecimal digits may stand in a header");
        value.set_sensitive(true);
        value
    }

    /// Settings of a server that knows `tokens` tokens, this one being the last.
    pub(super) fn settings(&self, tokens: usize) -> Environment {
        let others = (1..tokens).map(|_| Self::new());
        let entries = others.map(|other| other.entry()).chain([self.entry()]);
        let entries: Vec<String> = entries.collect();
        vec![
            ("SHOAL_AUTH__MODE", "tokens".to_owned()),
            ("SHOAL_AUTH__TOKENS", format!("[{}]", entries.join(","))),
        ]
    }

    /// An entry of the configuration, which has tokens as their hashes only.
    fn entry(&self) -> String {
        let hash = Sha256::digest(&self.0);
        format!(r#"{{name="loadtest",sha256="{hash:x}"}}"#)
    }
}

#[cfg(test)]
mod tests {
    use super::Token;

    #[test]
    fn a_server_is_told_hashes_and_never_the_token() {
        let token = Token::new();
        let settings = token.settings(3);
        let [(_, mode), (_, entries)] = &settings[..] else {
            panic!("{settings:?}");
        };
        assert_eq!(mode, "tokens");
        assert_eq!(entries.matches("sha256=").count(), 3);
        assert!(entries.contains(&token.entry()) && !entries.contains(&token.0));
    }
}
