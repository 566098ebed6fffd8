//! Authenticators for small set-ups: nobody asks, or static bearer tokens.

use std::collections::HashMap;

use async_trait::async_trait;
use http::{HeaderMap, header};
use shoal_ports::{AuthError, Authenticator, Principal};

use crate::token_hash::TokenHash;

/// Everybody is the anonymous principal. For loopback listeners.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoAuthentication;

#[async_trait]
impl Authenticator for NoAuthentication {
    async fn authenticate(&self, _bearer: Option<&str>) -> Result<Principal, AuthError> {
        Ok(Principal::anonymous())
    }
}

/// Knows callers by fixed bearer tokens. However many there are, a request costs the same.
pub struct StaticTokens {
    /// The keys of its hashes are random, so which entry a digest is compared with, and the time that takes, says
    /// nothing about how close it came to one.
    principals: HashMap<TokenHash, Principal>,
}

impl StaticTokens {
    /// Whose each token is. Of entries with the same token, the last counts.
    pub fn new(tokens: impl IntoIterator<Item = (TokenHash, Principal)>) -> Self {
        Self {
            principals: tokens.into_iter().collect(),
        }
    }
}

#[async_trait]
impl Authenticator for StaticTokens {
    async fn authenticate(&self, bearer: Option<&str>) -> Result<Principal, AuthError> {
        let bearer = bearer.ok_or(AuthError::Missing)?;
        let principal = self.principals.get(&TokenHash::of(bearer));
        principal.cloned().ok_or(AuthError::Invalid)
    }
}

/// The token of `Authorization: Bearer …`.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(token.trim())
        .filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use shoal_ports::{AuthError, Authenticator, Principal};

    use super::{StaticTokens, TokenHash};

    fn entry(token: &str, principal: &str) -> (TokenHash, Principal) {
        (TokenHash::of(token), Principal::new(principal))
    }

    #[tokio::test]
    async fn a_token_names_its_principal() {
        let tokens = StaticTokens::new([entry("0", "other"), entry("secret", "alice")]);
        let alice = tokens.authenticate(Some("secret")).await.unwrap();
        assert_eq!(alice.as_str(), "alice");
        let refused = tokens.authenticate(Some("Secret")).await;
        assert_eq!(refused, Err(AuthError::Invalid));
        assert_eq!(tokens.authenticate(None).await, Err(AuthError::Missing));
    }

    #[tokio::test]
    async fn of_many_tokens_each_names_its_own_principal() {
        let many = (0..200).map(|number| entry(&format!("t{number}"), &format!("p{number}")));
        // A token may change its principal, and a principal may have two.
        let more = [entry("t7", "other"), entry("new", "p8")];
        let tokens = StaticTokens::new(many.chain(more));
        for (shown, due) in [
            ("t0", "p0"),
            ("t199", "p199"),
            ("t7", "other"),
            ("t8", "p8"),
            ("new", "p8"),
        ] {
            let principal = tokens.authenticate(Some(shown)).await.unwrap();
            assert_eq!(principal.as_str(), due, "{shown}");
        }
        let refused = tokens.authenticate(Some("t200")).await;
        assert_eq!(refused, Err(AuthError::Invalid));
    }
}
