use std::collections::HashMap;
use std::sync::Arc;

use http::HeaderValue;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use shoal_ports::Principal;
use tokio::time::Instant;

use super::cached_token::CachedToken;
use super::token_endpoint::{NoToken, Token};

const ALL: usize = 1024;
const OF_PRINCIPAL: usize = 8;

/// Tokens by principal and a hash of the caller's token, which is not stored.
#[derive(Default)]
pub(super) struct Tokens(Mutex<HashMap<TokenKey, Arc<TokenEntry>>>);

type TokenKey = (Principal, [u8; 32]);

struct TokenEntry {
    used: Mutex<Instant>,
    token: CachedToken,
}

impl Tokens {
    /// Returns the exchanged token, and calls `trade` if it is unknown or expired. If the future is dropped,
    /// the next waiting caller trades.
    ///
    /// # Errors
    /// The error of `trade`, cached briefly.
    pub(super) async fn of(
        &self,
        principal: &Principal,
        subject: &str,
        trade: impl AsyncFnOnce() -> Result<Token, NoToken>,
    ) -> Result<HeaderValue, NoToken> {
        let entry = self.entry(key(principal, subject));
        entry.token.get(trade).await
    }

    pub(super) fn forget(&self, principal: &Principal, subject: &str) {
        self.0.lock().remove(&key(principal, subject));
    }

    fn entry(&self, key: TokenKey) -> Arc<TokenEntry> {
        let mut entries = self.0.lock();
        let now = Instant::now();
        if let Some(entry) = entries.get(&key) {
            *entry.used.lock() = now;
            return entry.clone();
        }
        let own = |other: &TokenKey| other.0 == key.0;
        let spare = match entries.keys().filter(|other| own(other)).count() >= OF_PRINCIPAL {
            true => oldest(&entries, own),
            false if entries.len() >= ALL => oldest(&entries, |_| true),
            false => None,
        };
        if let Some(spare) = spare {
            entries.remove(&spare);
        }
        let entry = Arc::new(TokenEntry {
            used: Mutex::new(now),
            token: CachedToken::default(),
        });
        entries.insert(key, entry.clone());
        entry
    }
}

fn oldest(
    entries: &HashMap<TokenKey, Arc<TokenEntry>>,
    among: impl Fn(&TokenKey) -> bool,
) -> Option<TokenKey> {
    let among = entries.iter().filter(|(key, _)| among(key));
    let oldest = among.min_by_key(|(_, entry)| *entry.used.lock());
    oldest.map(|(key, _)| key.clone())
}

fn key(principal: &Principal, subject: &str) -> TokenKey {
    (principal.clone(), Sha256::digest(subject).into())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::HeaderValue;
    use shoal_ports::Principal;

    use super::{ALL, OF_PRINCIPAL, Tokens};
    use crate::http_client::token_endpoint::{NoToken, Token};

    async fn traded(tokens: &Tokens, principal: &str, subject: &str, life: u64) -> bool {
        let mut trades = false;
        let trade = async || {
            trades = true;
            Ok(Token {
                header: HeaderValue::from_static("Bearer x"),
                life: Duration::from_secs(life),
            })
        };
        let principal = Principal::new(principal);
        tokens.of(&principal, subject, trade).await.unwrap();
        trades
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_traded_once_until_it_expires() {
        let tokens = Tokens::default();
        assert!(traded(&tokens, "a", "1", 60).await);
        assert!(!traded(&tokens, "a", "1", 60).await);
        assert!(traded(&tokens, "a", "2", 60).await);
        assert!(traded(&tokens, "b", "1", 60).await);
        tokio::time::advance(Duration::from_secs(61)).await;
        assert!(traded(&tokens, "a", "1", 60).await);
        tokens.forget(&Principal::new("a"), "1");
        assert!(traded(&tokens, "a", "1", 60).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_believed_for_a_moment() {
        let tokens = Tokens::default();
        let a = Principal::new("a");
        let refused = NoToken::Refused("no".to_owned());
        for _ in 0..2 {
            let told = tokens.of(&a, "1", async || Err(refused.clone())).await;
            assert_eq!(told.unwrap_err(), refused);
        }
        let told = tokens.of(&a, "1", async || panic!("it is not asked again"));
        assert_eq!(told.await.unwrap_err(), refused);
        tokio::time::advance(refused.life()).await;
        assert!(traded(&tokens, "a", "1", 60).await);
    }

    #[tokio::test(start_paused = true)]
    async fn there_are_so_many_at_most_and_one_principal_pushes_out_its_own() {
        let tokens = Tokens::default();
        assert!(traded(&tokens, "b", "1", 60).await);
        for subject in 0..100 {
            traded(&tokens, "a", &subject.to_string(), 60).await;
        }
        assert_eq!(tokens.0.lock().len(), OF_PRINCIPAL + 1);
        assert!(!traded(&tokens, "b", "1", 60).await);
        for principal in 0..2 * ALL {
            traded(&tokens, &format!("p{principal}"), "1", 60).await;
        }
        assert_eq!(tokens.0.lock().len(), ALL);
    }
}
