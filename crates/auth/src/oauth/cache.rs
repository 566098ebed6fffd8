//! Caches verified tokens, so that each signature is checked once.

use foldhash::fast::RandomState;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};
use shoal_ports::TokenDigest;
use tokio::time::Instant;

use super::claims::Verified;

/// Approximate bytes of an entry besides its claims, and of an average entry.
const ENTRY: usize = 512;
const AVERAGE: usize = 2 << 10;

/// If room is short, tokens in use stay longest.
pub(crate) struct VerifiedTokens(Cache<TokenDigest, Verified, Bytes, RandomState>);

#[derive(Clone)]
struct Bytes;

impl Weighter<TokenDigest, Verified> for Bytes {
    fn weight(&self, _: &TokenDigest, verified: &Verified) -> u64 {
        let claims = verified.grant.claims.as_bytes().len();
        u64::try_from(2 * claims + ENTRY).unwrap_or(u64::MAX)
    }
}

impl VerifiedTokens {
    pub(crate) fn new(bytes: usize) -> Self {
        let most = u64::try_from(bytes).unwrap_or(u64::MAX);
        Self(Cache::with(
            bytes / AVERAGE + 1,
            most,
            Bytes,
            RandomState::default(),
            DefaultLifecycle::default(),
        ))
    }

    pub(crate) fn get(&self, token: &TokenDigest, now: Instant) -> Option<Verified> {
        let known = self.0.get(token)?;
        if now < known.until {
            return Some(known);
        }
        self.0.remove_if(token, |known| known.until <= now);
        None
    }

    pub(crate) fn keep(&self, token: TokenDigest, verified: Verified) {
        self.0.insert(token, verified);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use shoal_ports::{Grant, Memo, Principal, TokenDigest};
    use shoal_protocol::RawJson;
    use tokio::time::Instant;

    use super::{Verified, VerifiedTokens};

    fn verified() -> Verified {
        let claims = format!("{{\"a\":\"{}\"}}", "x".repeat(1000));
        let grant = Grant {
            scopes: [].into(),
            claims: RawJson::parse_text(claims.into()).unwrap(),
            until: None,
            read: Memo::default(),
        };
        Verified {
            principal: Principal::new("alice"),
            grant: Arc::new(grant),
            binding: None,
            until: Instant::now() + Duration::from_secs(60),
        }
    }

    fn digest(number: u32) -> TokenDigest {
        let mut digest = [0; 32];
        digest[..4].copy_from_slice(&number.to_be_bytes());
        digest
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_are_known_for_their_time_and_take_so_much_at_most() {
        let tokens = VerifiedTokens::new(64 << 10);
        tokens.keep(digest(0), verified());
        assert!(tokens.get(&digest(0), Instant::now()).is_some());
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(tokens.get(&digest(0), Instant::now()).is_none());
        for number in 0..1000 {
            tokens.keep(digest(number), verified());
        }
        let kept =
            (0..1000).filter(|number| tokens.get(&digest(*number), Instant::now()).is_some());
        let kept = kept.count();
        assert!((1..=32).contains(&kept), "{kept}");
    }
}
