//! Authentication by static bearer tokens, and no authentication.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream;
use shoal_ports::{
    AuthError, Authenticated, Authenticator, Credentials, GrantNews, GrantWatch, Principal, Scheme,
};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::config::{Auth, Token};
use crate::refused;
use crate::token_hash::TokenHash;
use crate::tokens_file::{Principals, TokensFile};

/// Treats every caller as the anonymous principal.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoAuthentication;

#[async_trait]
impl Authenticator for NoAuthentication {
    async fn authenticate(&self, _: Credentials<'_>) -> Result<Authenticated, AuthError> {
        Ok(Principal::anonymous().into())
    }

    fn method(&self) -> &'static str {
        "anonymous"
    }
}

/// Authenticates callers by static bearer tokens, in constant time for any number of tokens.
pub struct StaticTokens {
    principals: watch::Sender<Arc<Principals>>,
    _watch: Option<AbortOnDropHandle<()>>,
}

impl StaticTokens {
    /// Loads the tokens of a configuration and of its file, and watches the file.
    ///
    /// # Errors
    /// The file is invalid.
    pub fn start(auth: &Auth) -> Result<Self, String> {
        let entry = |token: &Token| (token.sha256, Principal::new(token.name.as_str()));
        let fixed: Principals = auth.tokens.iter().map(entry).collect();
        let mut tokens = Self::new(fixed.clone());
        if let Some(file) = &auth.tokens_file {
            let file = TokensFile::new(file.clone(), fixed, tokens.principals.clone());
            tokens._watch = Some(file.watch()?);
        }
        Ok(tokens)
    }

    /// Makes the table. If a token occurs twice, its last principal counts.
    pub fn new(tokens: impl IntoIterator<Item = (TokenHash, Principal)>) -> Self {
        Self {
            principals: watch::Sender::new(Arc::new(tokens.into_iter().collect())),
            _watch: None,
        }
    }

    #[cfg(test)]
    pub(crate) fn handle(&self) -> watch::Sender<Arc<Principals>> {
        self.principals.clone()
    }
}

#[async_trait]
impl Authenticator for StaticTokens {
    async fn authenticate(&self, shown: Credentials<'_>) -> Result<Authenticated, AuthError> {
        let Some((Scheme::Bearer, token)) = shown.token else {
            return Err(AuthError::Missing);
        };
        let known = self.principals.borrow();
        let principal = known
            .get(&TokenHash::from_digest(shown.digest(token)))
            .cloned();
        let known = principal.map(Authenticated::from);
        known.ok_or(AuthError::Invalid).inspect_err(refused::caller)
    }

    fn watch(&self, token: &[u8], known: &Authenticated) -> GrantWatch {
        let token = TokenHash::of(token);
        let principal = known.principal.clone();
        let changes = self.principals.subscribe();
        let news = stream::unfold(Some((changes, token, principal)), async |watched| {
            let (mut changes, token, principal) = watched?;
            while changes.borrow_and_update().get(&token) == Some(&principal) {
                changes.changed().await.ok()?;
            }
            Some((GrantNews::Over(AuthError::Invalid), None))
        });
        GrantWatch::new(news)
    }
}

#[cfg(test)]
mod tests {
    use shoal_ports::{AuthError, Authenticator, Credentials, Principal};

    use super::{StaticTokens, TokenHash};

    fn entry(token: &str, principal: &str) -> (TokenHash, Principal) {
        (TokenHash::of(token), Principal::new(principal))
    }

    async fn shown(tokens: &StaticTokens, token: &str) -> Result<String, AuthError> {
        let known = tokens.authenticate(Credentials::bearer(token)).await?;
        Ok(known.principal.to_string())
    }

    #[tokio::test]
    async fn a_token_names_its_principal() {
        let tokens = StaticTokens::new([entry("0", "other"), entry("secret", "alice")]);
        assert_eq!(shown(&tokens, "secret").await.unwrap(), "alice");
        assert_eq!(shown(&tokens, "Secret").await, Err(AuthError::Invalid));
        let nothing = tokens.authenticate(Credentials::none()).await;
        assert_eq!(nothing, Err(AuthError::Missing));
    }

    #[tokio::test]
    async fn a_watch_ends_once_the_token_is_gone_or_somebody_elses() {
        let tokens =
            StaticTokens::new([entry("a", "alice"), entry("b", "bob"), entry("c", "carol")]);
        let mut watches = Vec::new();
        for token in ["a", "b", "c"] {
            let known = tokens
                .authenticate(Credentials::bearer(token))
                .await
                .unwrap();
            watches.push(tokio::spawn(tokens.watch(token.as_bytes(), &known).over()));
        }
        let change = |entries: Vec<_>| {
            let changed = entries.into_iter().collect();
            tokens.handle().send_replace(std::sync::Arc::new(changed));
        };
        change(vec![entry("a", "alice"), entry("c", "mallory")]);
        let [a, b, c] = watches.try_into().unwrap();
        assert_eq!(b.await.unwrap(), AuthError::Invalid);
        assert_eq!(c.await.unwrap(), AuthError::Invalid);
        assert!(!a.is_finished(), "alice still has her token");
        change(Vec::new());
        assert_eq!(a.await.unwrap(), AuthError::Invalid);
    }

    #[tokio::test]
    async fn of_many_tokens_each_names_its_own_principal() {
        let many = (0..200).map(|number| entry(&format!("t{number}"), &format!("p{number}")));
        let more = [entry("t7", "other"), entry("new", "p8")];
        let tokens = StaticTokens::new(many.chain(more));
        for (token, due) in [
            ("t0", "p0"),
            ("t199", "p199"),
            ("t7", "other"),
            ("t8", "p8"),
            ("new", "p8"),
        ] {
            assert_eq!(shown(&tokens, token).await.unwrap(), due, "{token}");
        }
        assert_eq!(shown(&tokens, "t200").await, Err(AuthError::Invalid));
    }
}
