use std::net::IpAddr;

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use crate::Principal;

/// A token's SHA-256.
pub type TokenDigest = [u8; 32];

/// A connection's last token and its digest, because comparing tokens is much cheaper than hashing.
/// The limit on headers bounds the token's size.
#[derive(Default)]
pub struct LastToken(Mutex<Option<ShownToken>>);

struct ShownToken {
    token: Box<[u8]>,
    digest: TokenDigest,
    let_in: Option<(Principal, Option<IpAddr>)>,
}

impl LastToken {
    /// Returns a token's digest, and remembers it.
    pub fn digest(&self, token: &[u8]) -> TokenDigest {
        let mut last = self.0.lock();
        if let Some(shown) = last.as_ref().filter(|shown| is_same(&shown.token, token)) {
            return shown.digest;
        }
        let digest = digest_of(token);
        *last = Some(ShownToken {
            token: token.into(),
            digest,
            let_in: None,
        });
        digest
    }

    /// Returns whether the last admission had another caller, address or token.
    pub fn lets_in(
        &self,
        token: &TokenDigest,
        principal: &Principal,
        from: Option<IpAddr>,
    ) -> bool {
        let mut last = self.0.lock();
        let Some(shown) = last.as_mut().filter(|shown| shown.digest == *token) else {
            return true;
        };
        let known = shown.let_in.as_ref();
        let is_known = known.is_some_and(|(known, place)| known == principal && *place == from);
        if !is_known {
            shown.let_in = Some((principal.clone(), from));
        }
        !is_known
    }

    /// Forgets a refused token.
    pub fn is_refused(&self) {
        *self.0.lock() = None;
    }
}

/// Compares in constant time, because clients behind a proxy may share a connection.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let pairs = one.iter().zip(other);
    one.len() == other.len() && pairs.fold(0, |differ, (one, other)| differ | (one ^ other)) == 0
}

/// Hashes a token.
pub fn digest_of(token: &[u8]) -> TokenDigest {
    Sha256::digest(token).into()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::{LastToken, digest_of};
    use crate::Principal;

    #[test]
    fn each_token_has_its_own_digest_whichever_was_shown_before() {
        let last = LastToken::default();
        for token in [&b"one"[..], b"one", b"two", b"one", b"", b"ones", b"two"] {
            assert_eq!(last.digest(token), digest_of(token), "{token:?}");
        }
    }

    #[test]
    fn it_is_news_once_who_is_let_in_from_where() {
        let last = LastToken::default();
        let [alice, bob] = ["alice", "bob"].map(Principal::new);
        let [here, there] = [1, 2].map(|host| Some(Ipv4Addr::new(192, 0, 2, host).into()));
        for (token, principal, from, is_news) in [
            ("a", &alice, here, true),
            ("a", &alice, here, false),
            ("a", &alice, there, true),
            ("a", &bob, there, true),
            ("a", &bob, there, false),
            ("b", &bob, there, true),
        ] {
            assert_eq!(
                last.lets_in(&last.digest(token.as_bytes()), principal, from),
                is_news,
                "{token} {principal}"
            );
        }
        last.is_refused();
        assert!(last.lets_in(&last.digest(b"b"), &bob, there));
        let other = digest_of(b"a");
        assert!(last.lets_in(&other, &alice, here) && last.lets_in(&other, &alice, here));
    }
}
