use std::time::Duration;

use http::HeaderValue;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::token_endpoint::{NoToken, Token};

const LONGEST: Duration = Duration::from_secs(3600);
/// How long before its expiry a token is replaced, so that requests under way still arrive in time.
const BEFORE_ITS_END: Duration = Duration::from_secs(10);

/// A token, or why there is none. The task that fetches it holds the lock. Times use the monotonic clock and
/// start before the request for the token.
#[derive(Default)]
pub(super) struct CachedToken(Mutex<Option<HeldToken>>);

struct HeldToken {
    result: Result<HeaderValue, NoToken>,
    refresh: Instant,
    end: Instant,
}

impl CachedToken {
    /// Returns the token, and calls `fetch` if it is unknown or about to expire. If the endpoint is
    /// unreachable, the former token serves until it expires. If the future is dropped, the next
    /// waiting caller fetches.
    ///
    /// # Errors
    /// The error of `fetch`, cached briefly.
    pub(super) async fn get(
        &self,
        fetch: impl AsyncFnOnce() -> Result<Token, NoToken>,
    ) -> Result<HeaderValue, NoToken> {
        let mut held = self.0.lock().await;
        match &*held {
            Some(known) if Instant::now() < known.refresh => return known.result.clone(),
            _ => {}
        }
        let fetched = HeldToken::of(fetch).await;
        let is_away = matches!(fetched.result, Err(NoToken::Away(_)));
        match &mut *held {
            Some(known) if is_away && known.result.is_ok() && Instant::now() < known.end => {
                known.refresh = fetched.refresh;
            }
            known => *known = Some(fetched),
        }
        held.as_ref().expect("it was just set").result.clone()
    }

    /// Returns a token other than `refused`, from the cache or `fetch`.
    ///
    /// # Errors
    /// The error of `fetch`, cached briefly.
    pub(super) async fn renew(
        &self,
        refused: Option<&HeaderValue>,
        fetch: impl AsyncFnOnce() -> Result<Token, NoToken>,
    ) -> Result<HeaderValue, NoToken> {
        let mut held = self.0.lock().await;
        if let Some(known) = &*held
            && Instant::now() < known.refresh
            && known
                .result
                .as_ref()
                .map_or(true, |token| Some(token) != refused)
        {
            return known.result.clone();
        }
        let fetched = HeldToken::of(fetch).await;
        held.insert(fetched).result.clone()
    }
}

impl HeldToken {
    async fn of(fetch: impl AsyncFnOnce() -> Result<Token, NoToken>) -> Self {
        let asked = Instant::now();
        match fetch().await {
            Ok(Token { header, life }) => {
                let early = BEFORE_ITS_END.min(life / 2);
                Self {
                    result: Ok(header),
                    refresh: asked + life.saturating_sub(early).min(LONGEST),
                    end: asked + life.min(2 * LONGEST),
                }
            }
            Err(none) => {
                let end = Instant::now() + none.life();
                Self {
                    result: Err(none),
                    refresh: end,
                    end,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::HeaderValue;
    use tokio::time::advance;

    use super::{CachedToken, NoToken, Token};

    fn token(text: &'static str, life: u64) -> Result<Token, NoToken> {
        Ok(Token {
            header: HeaderValue::from_static(text),
            life: Duration::from_secs(life),
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_replaced_before_its_end_and_serves_to_it_where_that_cannot_be() {
        let cached = CachedToken::default();
        assert_eq!(cached.get(async || token("a", 60)).await.unwrap(), "a");
        advance(Duration::from_secs(49)).await;
        assert_eq!(cached.get(async || token("b", 60)).await.unwrap(), "a");
        advance(Duration::from_secs(2)).await;
        let away = || Err(NoToken::Away("away".to_owned()));
        assert_eq!(cached.get(async || away()).await.unwrap(), "a");
        assert_eq!(cached.get(async || panic!("at once")).await.unwrap(), "a");
        advance(Duration::from_secs(2)).await;
        assert_eq!(cached.get(async || token("c", 60)).await.unwrap(), "c");
        advance(Duration::from_secs(61)).await;
        assert!(cached.get(async || away()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_token_is_replaced_once() {
        let cached = CachedToken::default();
        let first = cached.renew(None, async || token("a", 60)).await.unwrap();
        let second = cached.renew(Some(&first), async || token("b", 60)).await;
        assert_eq!(second.unwrap(), "b");
        let other = cached.renew(Some(&first), async || panic!("it was replaced"));
        assert_eq!(other.await.unwrap(), "b");
    }
}
