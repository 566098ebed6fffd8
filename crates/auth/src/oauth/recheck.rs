//! Checks an open stream's token again, as often as requests would.
//!
//! All streams and requests with a token share one answer of its issuer.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::stream;
use shoal_ports::{
    AuthError, Authenticated, Grant, GrantNews, GrantWatch, Principal, TokenDigest, TokenFault,
    digest_of,
};
use tokio::time::{Instant, sleep, sleep_until};

use super::AccessTokens;
use super::claims::{TokenBinding, Verified};

/// Minimum time between two checks.
const SELDOM: Duration = Duration::from_secs(1);
/// Maximum pause before a retry while the issuer cannot be reached.
const RETRY: Duration = Duration::from_secs(5);

struct WatchedToken {
    tokens: Weak<AccessTokens>,
    token: Box<[u8]>,
    digest: TokenDigest,
    principal: Principal,
    grant: Arc<Grant>,
    binding: Option<Option<TokenBinding>>,
    until: Instant,
}

pub(super) fn watch(tokens: &Arc<AccessTokens>, token: &[u8], known: &Authenticated) -> GrantWatch {
    let Some(grant) = &known.grant else {
        return GrantWatch::never();
    };
    let (digest, now) = (digest_of(token), Instant::now());
    let verified = tokens.verified.get(&digest, now);
    let watched = WatchedToken {
        tokens: Arc::downgrade(tokens),
        token: token.into(),
        digest,
        principal: known.principal.clone(),
        grant: Arc::clone(grant),
        until: verified.as_ref().map_or(now, |known| known.until),
        binding: verified.map(|known| known.binding),
    };
    GrantWatch::new(stream::unfold(Some(watched), async |watched| {
        let mut watched = watched?;
        match watched.next().await? {
            Ok(grant) => Some((GrantNews::Renewed(grant), Some(watched))),
            Err(why) => Some((GrantNews::Over(why), None)),
        }
    }))
}

impl WatchedToken {
    /// Waits until a check finds another grant or fails. `None` once the authenticator is dropped.
    async fn next(&mut self) -> Option<Result<Arc<Grant>, AuthError>> {
        loop {
            sleep_until(self.until).await;
            match self.look().await? {
                Ok(grant) if grant == self.grant => {}
                Ok(grant) => {
                    self.grant = Arc::clone(&grant);
                    return Some(Ok(grant));
                }
                Err(why) => return Some(Err(why)),
            }
        }
    }

    async fn look(&mut self) -> Option<Result<Arc<Grant>, AuthError>> {
        // While the issuer is unreachable, the stream continues for one cache period.
        let patience = Instant::now() + self.tokens.upgrade()?.believed_for;
        loop {
            let now = Instant::now();
            if self.grant.until.is_some_and(|end| end <= now) {
                return Some(Err(AuthError::Token(TokenFault::Expired)));
            }
            let tokens = self.tokens.upgrade()?;
            let read = tokens.read(&self.token, self.digest, now).await;
            match read.and_then(|verified| self.expect_same(&tokens, verified)) {
                Err(AuthError::Unavailable { .. }) if now < patience => {}
                read => return Some(read),
            }
            drop(tokens);
            // Random, so that streams do not retry together.
            sleep(RETRY.mul_f64(rand::random_range(0.2..=1.0))).await;
        }
    }

    fn expect_same(
        &mut self,
        tokens: &AccessTokens,
        verified: Verified,
    ) -> Result<Arc<Grant>, AuthError> {
        tokens.scopes.expect_required(&verified.grant)?;
        if verified.principal != self.principal {
            return Err(AuthError::Invalid);
        }
        // The binding must not change, because the caller proved only the first one.
        let binding = self.binding.get_or_insert(verified.binding.clone());
        if *binding != verified.binding {
            return Err(AuthError::Token(TokenFault::Binding));
        }
        self.until = verified.until.max(Instant::now() + SELDOM);
        if let Some(end) = verified.grant.until {
            self.until = self.until.min(end);
        }
        Ok(verified.grant)
    }
}
