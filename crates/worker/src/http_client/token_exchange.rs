use std::time::Duration;

use http::HeaderValue;
use reqwest::{RequestBuilder, Url};
use shoal_outbound::Client;
use shoal_ports::Caller;

use super::token_endpoint::{Asked, NoToken, Token, WHAT, ask, basic_auth, form, post};
use super::tokens::Tokens;
use super::{TokenExchangeConfig, check_url, read_secret};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

pub(super) struct TokenExchange {
    config: TokenExchangeConfig,
    endpoint: Url,
    within: Duration,
    tokens: Tokens,
}

pub(super) fn check(config: &TokenExchangeConfig) -> Result<(), String> {
    check_url(&config.endpoint, WHAT)?;
    match config.client_id.is_empty() && config.client_secret_file.is_some() {
        true => Err("client_secret_file needs a client_id".to_owned()),
        false => Ok(()),
    }
}

impl TokenExchange {
    /// `within` limits a request to the endpoint.
    pub(super) fn new(config: TokenExchangeConfig, within: Duration) -> Result<Self, String> {
        check(&config)?;
        Ok(Self {
            endpoint: check_url(&config.endpoint, WHAT)?,
            config,
            within,
            tokens: Tokens::default(),
        })
    }

    pub(super) fn endpoint(&self) -> &Url {
        &self.endpoint
    }

    /// Returns the `Authorization` header for a caller's requests.
    ///
    /// # Errors
    /// The caller sent no token, or the exchange failed.
    pub(super) async fn authorization(
        &self,
        client: &Client,
        caller: &Caller,
    ) -> Result<HeaderValue, NoToken> {
        let Some(subject) = bearer(caller) else {
            let why = "the server is called with a token that is traded for the caller's own, and this request brought none; send Authorization: Bearer";
            return Err(NoToken::Refused(why.to_owned()));
        };
        let traded = self.tokens.of(
            &caller.principal,
            subject,
            async || match tokio::time::timeout(self.within, self.trade(client, subject)).await {
                Ok(traded) => traded,
                Err(_) => Err(NoToken::Away(
                    "the token endpoint did not answer in time".to_owned(),
                )),
            },
        );
        traded.await
    }

    pub(super) fn forget(&self, caller: &Caller) {
        if let Some(subject) = bearer(caller) {
            self.tokens.forget(&caller.principal, subject);
        }
    }

    async fn trade(&self, client: &Client, subject: &str) -> Result<Token, NoToken> {
        let secret = match &self.config.client_secret_file {
            Some(file) => Some(read_secret(file).await.map_err(NoToken::Away)?),
            None => None,
        };
        let secret = secret.as_deref().map(str::trim);
        let asked = Asked {
            hidden: &[
                (subject, "(the token)"),
                (secret.unwrap_or_default(), "(the secret)"),
            ],
            refusal: "does not trade the caller's token",
        };
        ask(self.request(client, subject, secret)?, asked).await
    }

    fn request(
        &self,
        client: &Client,
        subject: &str,
        secret: Option<&str>,
    ) -> Result<RequestBuilder, NoToken> {
        let config = &self.config;
        let mut members = vec![
            ("grant_type", GRANT),
            ("subject_token", subject),
            ("subject_token_type", config.subject_token_type.as_str()),
        ];
        let optional = [
            ("requested_token_type", &config.requested_token_type),
            ("audience", &config.audience),
            ("resource", &config.resource),
            ("scope", &config.scope),
        ];
        for (name, value) in optional {
            if !value.is_empty() {
                members.push((name, value));
            }
        }
        let mut request = post(client, &self.endpoint)?;
        match secret {
            Some(secret) => request = basic_auth(request, &config.client_id, secret),
            None if !config.client_id.is_empty() => members.push(("client_id", &config.client_id)),
            None => {}
        }
        Ok(request.body(form(&members)))
    }
}

fn bearer(caller: &Caller) -> Option<&str> {
    let header = std::str::from_utf8(caller.headers.get("authorization")?).ok()?;
    let (scheme, token) = header.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
