//! Shoal's own token for a server: OAuth client credentials (RFC 6749, 4.4), as in MCP's extension
//! `oauth-client-credentials`.
//!
//! | file | part |
//! |---|---|
//! | `discovery` | the server's token endpoint (RFC 9728, RFC 8414) |
//! | `assertion` | `private_key_jwt` (RFC 7523) |

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;
use reqwest::Url;
use shoal_outbound::Client;
use tokio::time::{Instant, timeout};

use self::config::{CLIENT_ASSERTION, GRANT};
use self::discovery::{Challenge, TokenSource};
use super::cached_token::CachedToken;
use super::token_endpoint::{Asked, NoToken, Token, WHAT, ask, basic_auth, form, post};
use super::{check_url, read_secret};

mod assertion;
mod config;
mod discovery;

pub use self::config::{ClientAuthentication, ClientCredentialsConfig};

const FUTILE: Duration = Duration::from_secs(10);

pub(super) struct ClientCredentials {
    config: ClientCredentialsConfig,
    server: Url,
    within: Duration,
    source: Mutex<Option<Arc<TokenSource>>>,
    token: CachedToken,
    futile_until: Mutex<Option<Instant>>,
}

impl ClientCredentials {
    pub(super) fn new(
        config: ClientCredentialsConfig,
        server: Url,
        within: Duration,
    ) -> Result<Self, String> {
        config.check()?;
        Ok(Self {
            config,
            server,
            within,
            source: Mutex::default(),
            token: CachedToken::default(),
            futile_until: Mutex::default(),
        })
    }

    /// `None` until a 401 names the authorization server.
    pub(super) async fn authorization(
        &self,
        client: &Client,
    ) -> Result<Option<HeaderValue>, NoToken> {
        if self.config.is_discovered() && self.source.lock().is_none() {
            return Ok(None);
        }
        let token = self.token.get(async || self.fetch(client, None).await);
        token.await.map(Some)
    }

    /// Returns whether there is another token to try.
    pub(super) async fn renew(
        &self,
        client: &Client,
        refused: Option<&HeaderValue>,
        answer: &HeaderMap,
    ) -> Result<bool, NoToken> {
        if self
            .futile_until
            .lock()
            .is_some_and(|until| Instant::now() < until)
        {
            return Ok(false);
        }
        let challenge = Challenge::of(answer);
        let fetch = async || self.fetch(client, Some(&challenge)).await;
        self.token.renew(refused, fetch).await.map(|_| true)
    }

    /// After a 401 for a new token, Shoal requests no further one for a while.
    pub(super) fn was_futile(&self) {
        *self.futile_until.lock() = Some(Instant::now() + FUTILE);
    }

    async fn fetch(
        &self,
        client: &Client,
        challenge: Option<&Challenge>,
    ) -> Result<Token, NoToken> {
        let fetching = async {
            let source = self.source(client, challenge).await?;
            self.request(client, &source).await
        };
        timeout(self.within, fetching).await.unwrap_or_else(|_| {
            Err(NoToken::Away(
                "the authorization server did not answer in time".to_owned(),
            ))
        })
    }

    /// Finds the source anew after a 401, because servers change their authorization servers.
    async fn source(
        &self,
        client: &Client,
        challenge: Option<&Challenge>,
    ) -> Result<Arc<TokenSource>, NoToken> {
        let known = self.source.lock().clone();
        if let Some(known) = known
            && (challenge.is_none() || self.config.is_fixed())
        {
            return Ok(known);
        }
        let found = match self.config.is_fixed() {
            true => TokenSource::fixed(
                check_url(&self.config.token_endpoint, WHAT).map_err(NoToken::Refused)?,
            ),
            false => discovery::find(client, &self.server, &self.config.issuer, challenge).await?,
        };
        let found = Arc::new(found);
        *self.source.lock() = Some(found.clone());
        Ok(found)
    }

    async fn request(&self, client: &Client, source: &TokenSource) -> Result<Token, NoToken> {
        let config = &self.config;
        let resource = match config.resource.as_str() {
            "" => source.resource.as_deref().unwrap_or(self.server.as_str()),
            configured => configured,
        };
        let scope = match config.scope.as_str() {
            "" => source.scope.as_deref().unwrap_or_default(),
            configured => configured,
        };
        let mut members = vec![("grant_type", GRANT), ("resource", resource)];
        let optional = [("scope", scope), ("audience", config.audience.as_str())];
        members.extend(optional.into_iter().filter(|(_, value)| !value.is_empty()));
        let request = post(client, &source.endpoint)?;
        let refusal = "grants Shoal no token";
        if let Some(key) = &config.private_key_file {
            let key = read_secret(key).await.map_err(NoToken::Away)?;
            let audience = self.audience(source);
            let assertion = assertion::sign(&key, &config.key_id, &config.client_id, audience);
            let assertion = assertion.map_err(NoToken::Refused)?;
            members.push(("client_assertion_type", CLIENT_ASSERTION));
            members.push(("client_assertion", &assertion));
            let hidden = &[(&*assertion, "(the assertion)")];
            return ask(request.body(form(&members)), Asked { hidden, refusal }).await;
        }
        let secret = match &config.client_secret_file {
            Some(file) => read_secret(file).await.map_err(NoToken::Away)?,
            None => config
                .client_secret
                .as_ref()
                .map_or("", |secret| secret.expose())
                .to_owned(),
        };
        let secret = secret.trim();
        let request = match source
            .secret_goes(config.authentication)
            .map_err(NoToken::Refused)?
        {
            ClientAuthentication::Post => {
                members.extend([
                    ("client_id", config.client_id.as_str()),
                    ("client_secret", secret),
                ]);
                request
            }
            _ => basic_auth(request, &config.client_id, secret),
        };
        let hidden = &[(secret, "(the secret)")];
        ask(request.body(form(&members)), Asked { hidden, refusal }).await
    }

    /// The audience of an assertion: the issuer if known, as newer authorization servers require.
    fn audience<'a>(&'a self, source: &'a TokenSource) -> &'a str {
        match (&source.issuer, self.config.issuer.as_str()) {
            (Some(issuer), _) => issuer,
            (None, "") => source.endpoint.as_str(),
            (None, configured) => configured,
        }
    }
}
