//! Requests tokens (RFC 6749).

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use reqwest::{RequestBuilder, Url};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use shoal_outbound::{Client, collect, whole_story};
use shoal_ports::{CallFailure, CallOutcome, shown};
use shoal_protocol::RpcError;

use crate::upstream::RequestOutcome;

pub(super) const WHAT: &str = "a token endpoint";
const ANSWER: usize = 64 * 1024;
const SHOWN: usize = 300;
const UNTOLD: Duration = Duration::from_secs(60);
const REFUSED: Duration = Duration::from_secs(10);
const AWAY: Duration = Duration::from_secs(1);

/// The reasons contain no tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoToken {
    Refused(String),
    Away(String),
}

#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) header: HeaderValue,
    pub(super) life: Duration,
}

pub(super) struct Asked<'a> {
    /// Secrets and their replacements in messages, because an answer may repeat the request.
    pub(super) hidden: &'a [(&'a str, &'static str)],
    pub(super) refusal: &'static str,
}

#[derive(Deserialize)]
struct TokenReply {
    access_token: String,
    /// Some endpoints omit it; Shoal then assumes `Bearer`.
    token_type: Option<String>,
    #[serde(default, deserialize_with = "seconds")]
    expires_in: Option<Duration>,
}

#[derive(Deserialize)]
struct OAuthError {
    error: String,
    error_description: Option<String>,
}

pub(super) fn post(client: &Client, endpoint: &Url) -> Result<RequestBuilder, NoToken> {
    let request = client.request(Method::POST, endpoint);
    Ok(request
        .map_err(NoToken::Away)?
        .header(header::ACCEPT, "application/json")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded"))
}

/// Adds `Authorization: Basic` (RFC 6749, 2.3.1).
pub(super) fn basic_auth(request: RequestBuilder, client: &str, secret: &str) -> RequestBuilder {
    request.basic_auth(encoded(client), Some(encoded(secret)))
}

pub(super) fn form(members: &[(&str, &str)]) -> String {
    let mut form = Url::parse("http://form/").expect("it is a URL");
    form.query_pairs_mut().extend_pairs(members);
    form.query().unwrap_or_default().to_owned()
}

fn encoded(text: &str) -> String {
    form(&[("", text)]).trim_start_matches('=').to_owned()
}

pub(super) async fn ask(request: RequestBuilder, asked: Asked<'_>) -> Result<Token, NoToken> {
    // `whole_story` leaves out the URL, whose query may be secret.
    let answer = request.send().await.map_err(|error| {
        let why = whole_story(&error);
        NoToken::Away(format!("the token endpoint cannot be reached: {why}"))
    })?;
    let status = answer.status();
    let body = collect(answer, ANSWER)
        .await
        .map_err(|_| NoToken::Away("the answer of the token endpoint broke off".to_owned()))?;
    if !status.is_success() {
        return Err(refused(status, &body, &asked));
    }
    let granted: TokenReply = serde_json::from_slice(&body).map_err(|_| {
        NoToken::Refused("the token endpoint answered with what is no token".to_owned())
    })?;
    granted.into_token()
}

impl TokenReply {
    fn into_token(self) -> Result<Token, NoToken> {
        if let Some(other) = &self.token_type
            && !other.eq_ignore_ascii_case("bearer")
        {
            let kind = shown(other, SHOWN);
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
        Ok(Token {
            header,
            life: self.expires_in.unwrap_or(UNTOLD),
        })
    }
}

/// Accepts strings and fractions; other values count as missing.
fn seconds<'de, D: Deserializer<'de>>(written: D) -> Result<Option<Duration>, D::Error> {
    let seconds = match Value::deserialize(written)? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    Ok(seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()))
}

impl From<NoToken> for CallOutcome {
    fn from(none: NoToken) -> Self {
        match none {
            NoToken::Refused(why) => Self::Error(RpcError::internal(why)),
            // Callers with cached tokens can use the worker, so this failure must not count against
            // the worker.
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
    pub(super) fn life(&self) -> Duration {
        match self {
            Self::Refused(_) => REFUSED,
            Self::Away(_) => AWAY,
        }
    }
}

fn refused(status: StatusCode, body: &Bytes, asked: &Asked<'_>) -> NoToken {
    let told: Option<OAuthError> = serde_json::from_slice(body).ok();
    let told = told.map(|told| match told.error_description {
        Some(more) => format!("{}: {more}", told.error),
        None => told.error,
    });
    let hide = |told: String| {
        let hidden = asked.hidden.iter().filter(|(secret, _)| !secret.is_empty());
        hidden.fold(told, |told, (secret, instead)| {
            told.replace(secret, instead)
        })
    };
    let told = told.map(|told| shown(&hide(told), SHOWN));
    let told = told.map_or_else(|| status.to_string(), |told| format!("{status}, {told}"));
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        return NoToken::Away(format!("the token endpoint answered {told}"));
    }
    NoToken::Refused(format!("the token endpoint {}: {told}", asked.refusal))
}

#[cfg(test)]
mod tests {
    use super::TokenReply;

    #[test]
    fn a_token_is_a_bearer_token_unless_the_endpoint_says_otherwise() {
        for (granted, is_taken) in [
            (r#"{"access_token":"x"}"#, true),
            (r#"{"access_token":"x","token_type":null}"#, true),
            (r#"{"access_token":"x","token_type":"bearer"}"#, true),
            (r#"{"access_token":"x","token_type":"DPoP"}"#, false),
            (r#"{"access_token":"","token_type":"Bearer"}"#, false),
        ] {
            let read: TokenReply = serde_json::from_str(granted).unwrap();
            assert_eq!(read.into_token().is_ok(), is_taken, "{granted}");
        }
    }
}
