//! A caller's token, traded for one that the server takes (RFC 8693).

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use reqwest::{RequestBuilder, Url};
use serde::Deserialize;
use shoal_outbound::{Client, collect};
use shoal_ports::{CallFailure, CallOutcome, Caller, shown};
use shoal_protocol::RpcError;

use super::tokens::{Token, Tokens};
use super::{TokenExchangeConfig, check_url, read_secret};
use crate::upstream::RequestOutcome;

/// What a token endpoint is called.
const WHAT: &str = "a token endpoint";
const GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
/// Bytes of an answer that are read.
const ANSWER: usize = 64 * 1024;
/// Characters of it that are shown.
const SHOWN: usize = 300;
/// How long a token is used whose answer does not tell.
const UNTOLD: Duration = Duration::from_secs(60);
/// How long one is used at most.
const LONGEST: Duration = Duration::from_secs(3600);
/// How long before its end a token is traded anew: what is on its way must arrive before.
const BEFORE_ITS_END: Duration = Duration::from_secs(10);
/// How long it is believed that the endpoint refuses a token.
const REFUSED: Duration = Duration::from_secs(10);
/// How long it is believed that the endpoint cannot be reached, and when to come back.
const AWAY: Duration = Duration::from_secs(1);

/// Why there is no token for a caller. Tokens are no part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoToken {
    /// It would be the same the next time.
    Refused(String),
    /// It may pass.
    Away(String),
}

/// Trades tokens of callers.
pub(super) struct TokenExchange {
    config: TokenExchangeConfig,
    endpoint: Url,
    within: Duration,
    tokens: Tokens,
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    token_type: String,
    expires_in: Option<u64>,
}

#[derive(Deserialize)]
struct Error {
    error: String,
    error_description: Option<String>,
}

/// Checks what an operator says of it.
pub(super) fn check(config: &TokenExchangeConfig) -> Result<(), String> {
    check_url(&config.endpoint, WHAT)?;
    match config.client_id.is_empty() && config.client_secret_file.is_some() {
        true => Err("client_secret_file needs a client_id".to_owned()),
        false => Ok(()),
    }
}

impl TokenExchange {
    /// Nothing is asked yet. An answer may take as long as `within`.
    pub(super) fn new(config: TokenExchangeConfig, within: Duration) -> Result<Self, String> {
        check(&config)?;
        Ok(Self {
            endpoint: check_url(&config.endpoint, WHAT)?,
            config,
            within,
            tokens: Tokens::default(),
        })
    }

    /// Where tokens are traded.
    pub(super) fn endpoint(&self) -> &Url {
        &self.endpoint
    }

    /// The `Authorization` of a caller's requests to the server.
    ///
    /// # Errors
    /// When the caller brought no token, or there is none for it.
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

    /// The server does not take a caller's token any more.
    pub(super) fn forget(&self, caller: &Caller) {
        if let Some(subject) = bearer(caller) {
            self.tokens.forget(&caller.principal, subject);
        }
    }

    async fn trade(&self, client: &Client, subject: &str) -> Result<Token, NoToken> {
        let sent = self.request(client, subject).await?.send().await;
        // The error may name the URL, whose query is nobody's business.
        let answer = sent.map_err(|error| {
            let why = error.without_url();
            NoToken::Away(format!("the token endpoint cannot be reached: {why}"))
        })?;
        let status = answer.status();
        let body = collect(answer, ANSWER)
            .await
            .map_err(|_| NoToken::Away("the answer of the token endpoint broke off".to_owned()))?;
        if !status.is_success() {
            return Err(refused(status, &body, subject));
        }
        let granted: Granted = serde_json::from_slice(&body).map_err(|_| {
            NoToken::Refused("the token endpoint answered with what is no token".to_owned())
        })?;
        granted.into_token()
    }

    async fn request(&self, client: &Client, subject: &str) -> Result<RequestBuilder, NoToken> {
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
        let request = client.request(Method::POST, &self.endpoint);
        let mut request = request
            .map_err(NoToken::Away)?
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        match &config.client_secret_file {
            // Read each time: it may have been changed.
            Some(file) => {
                let secret = read_secret(file).await.map_err(NoToken::Away)?;
                let (id, secret) = (encoded(&config.client_id), encoded(secret.trim()));
                request = request.basic_auth(id, Some(secret));
            }
            None if !config.client_id.is_empty() => members.push(("client_id", &config.client_id)),
            None => {}
        }
        Ok(request.body(form(&members)))
    }
}

impl Granted {
    fn into_token(self) -> Result<Token, NoToken> {
        if !self.token_type.eq_ignore_ascii_case("bearer") {
            let kind = shown(&self.token_type, SHOWN);
            let why = format!(
                "the token endpoint granted a token of the type {kind}, which is not Bearer"
            );
            return Err(NoToken::Refused(why));
        }
        if self.access_token.is_empty() {
            let why = "the token endpoint granted an empty token".to_owned();
            return Err(NoToken::Refused(why));
        }
        let header = HeaderValue::try_from(format!("Bearer {}", self.access_token));
        let mut header = header.map_err(|_| {
            NoToken::Refused("the token endpoint granted what no header can carry".to_owned())
        })?;
        header.set_sensitive(true);
        let life = self.expires_in.map_or(UNTOLD, Duration::from_secs);
        Ok(Token {
            header,
            life: life
                .min(LONGEST)
                .saturating_sub(BEFORE_ITS_END.min(life / 2)),
        })
    }
}

impl From<NoToken> for CallOutcome {
    fn from(none: NoToken) -> Self {
        match none {
            NoToken::Refused(why) => Self::Error(RpcError::internal(why)),
            // Not that the worker has failed: other callers' tokens may be known.
            NoToken::Away(why) => Self::Failed(CallFailure::overloaded(why, AWAY)),
        }
    }
}

impl From<NoToken> for RequestOutcome {
    fn from(none: NoToken) -> Self {
        match none {
            NoToken::Refused(why) => Self::Rejected(RpcError::internal(why)),
            NoToken::Away(why) => Self::Refused(CallFailure::overloaded(why, AWAY)),
        }
    }
}

impl NoToken {
    /// For how long it is believed.
    pub(super) fn life(&self) -> Duration {
        match self {
            Self::Refused(_) => REFUSED,
            Self::Away(_) => AWAY,
        }
    }
}

/// What the endpoint says instead of a token.
fn refused(status: StatusCode, body: &Bytes, subject: &str) -> NoToken {
    let told: Option<Error> = serde_json::from_slice(body).ok();
    let told = told.map(|told| match told.error_description {
        Some(more) => format!("{}: {more}", told.error),
        None => told.error,
    });
    // It may repeat what it was sent.
    let told = told.map(|told| shown(&told.replace(subject, "(the token)"), SHOWN));
    let told = told.map_or_else(|| status.to_string(), |told| format!("{status}, {told}"));
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        return NoToken::Away(format!("the token endpoint answered {told}"));
    }
    NoToken::Refused(format!(
        "the token endpoint does not trade the caller's token: {told}"
    ))
}

/// The token that a caller has brought.
fn bearer(caller: &Caller) -> Option<&str> {
    let header = std::str::from_utf8(caller.headers.get("authorization")?).ok()?;
    let (scheme, token) = header.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn form(members: &[(&str, &str)]) -> String {
    let mut form = Url::parse("http://form/").expect("it is a URL");
    form.query_pairs_mut().extend_pairs(members);
    form.query().unwrap_or_default().to_owned()
}

/// A client's name or secret as it stands in `Authorization: Basic` (RFC 6749, 2.3.1).
fn encoded(text: &str) -> String {
    form(&[("", text)]).trim_start_matches('=').to_owned()
}
