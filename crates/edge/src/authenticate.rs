//! Authenticators for small set-ups: nobody asks, or static bearer tokens.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use shoal_ports::{AuthError, Authenticator, Principal};
use subtle::ConstantTimeEq;

/// Everybody is the anonymous principal. For loopback listeners.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoAuthentication;

#[async_trait]
impl Authenticator for NoAuthentication {
    async fn authenticate(&self, _bearer: Option<&str>) -> Result<Principal, AuthError> {
        Ok(Principal::anonymous())
    }
}

/// A token and whose it is, as configuration holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct StaticToken {
    /// Who calls with it.
    pub principal: String,
    /// SHA-256 of the token, as 64 hexadecimal digits: the configuration gives nobody access.
    pub sha256: String,
}

/// An entry that is no SHA-256.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the token of {principal:?} must be given as its SHA-256, 64 hexadecimal digits: \
     printf %s TOKEN | sha256sum"
)]
pub struct InvalidToken {
    /// Whose entry it is.
    pub principal: String,
}

/// SHA-256 of a token. Two are compared in constant time.
struct TokenDigest([u8; 32]);

impl PartialEq for TokenDigest {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for TokenDigest {}

impl Hash for TokenDigest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

/// Knows callers by fixed bearer tokens. However many there are, a request costs the same.
pub struct StaticTokens {
    /// The keys of its hashes are random, so which entry a digest is compared with, and the time that takes, says
    /// nothing about how close it came to one.
    principals: HashMap<TokenDigest, Principal>,
}

impl StaticTokens {
    /// Reads the entries. Of those with the same token, the last counts.
    ///
    /// # Errors
    /// [`InvalidToken`] names the first entry that is no SHA-256.
    pub fn new(tokens: impl IntoIterator<Item = StaticToken>) -> Result<Self, InvalidToken> {
        let entries = tokens.into_iter().map(|token| {
            let digest = from_hex(&token.sha256).ok_or_else(|| InvalidToken {
                principal: token.principal.clone(),
            })?;
            Ok((TokenDigest(digest), Principal::new(token.principal)))
        });
        Ok(Self {
            principals: entries.collect::<Result<_, _>>()?,
        })
    }
}

#[async_trait]
impl Authenticator for StaticTokens {
    async fn authenticate(&self, bearer: Option<&str>) -> Result<Principal, AuthError> {
        let bearer = bearer.ok_or(AuthError::Missing)?;
        let digest = TokenDigest(Sha256::digest(bearer).into());
        let principal = self.principals.get(&digest);
        principal.cloned().ok_or(AuthError::Invalid)
    }
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let digits = text.trim().as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let value = |digit: u8| char::from(digit).to_digit(16);
    let mut digest = [0; 32];
    for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::try_from(value(pair[0])? * 16 + value(pair[1])?).ok()?;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};
    use shoal_ports::{AuthError, Authenticator};

    use super::{StaticToken, StaticTokens};

    fn token(principal: &str, sha256: &str) -> StaticToken {
        StaticToken {
            principal: principal.into(),
            sha256: sha256.into(),
        }
    }

    #[tokio::test]
    async fn a_token_names_its_principal() {
        // SHA-256 of "secret", in either case.
        let digest = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
        let other = "0".repeat(64);
        let upper = digest.to_uppercase();
        let tokens = StaticTokens::new([token("other", &other), token("alice", &upper)]).unwrap();
        let alice = tokens.authenticate(Some("secret")).await.unwrap();
        assert_eq!(alice.as_str(), "alice");
        let refused = tokens.authenticate(Some("Secret")).await;
        assert_eq!(refused, Err(AuthError::Invalid));
        assert_eq!(tokens.authenticate(None).await, Err(AuthError::Missing));
    }

    #[tokio::test]
    async fn of_many_tokens_each_names_its_own_principal() {
        let hash = |text: &str| format!("{:x}", Sha256::digest(text));
        let many =
            (0..200).map(|number| token(&format!("p{number}"), &hash(&format!("t{number}"))));
        // A token may change its principal, and a principal may have two.
        let more = [token("other", &hash("t7")), token("p8", &hash("new"))];
        let tokens = StaticTokens::new(many.chain(more)).unwrap();
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

    #[test]
    fn a_plain_token_in_the_configuration_is_refused() {
        let refused = StaticTokens::new([token("alice", "secret")]).err().unwrap();
        assert!(refused.to_string().contains("alice"));
        assert!(!refused.to_string().contains("secret"));
    }
}
