//! Reads an authorization server's metadata (RFC 8414, OpenID Connect Discovery).

use serde_json::{Map, Value};
use shoal_ports::shown;
use shoal_telemetry::metrics::{AuthServerOutcome, AuthServerRequest, metrics};
use url::Url;

use super::http::{HttpAsker, NoAnswer};
use crate::config::same;

const SHOWN: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IssuerEndpoint {
    Keys,
    Introspection,
}

impl IssuerEndpoint {
    fn member(self) -> &'static str {
        match self {
            Self::Keys => "jwks_uri",
            Self::Introspection => "introspection_endpoint",
        }
    }
}

/// Ignores a document that names another issuer than `described_as`.
pub(crate) async fn discover(
    http: &HttpAsker,
    issuer: &str,
    described_as: &str,
    endpoint: IssuerEndpoint,
) -> Result<String, NoAnswer> {
    let found = search(http, issuer, described_as, endpoint).await;
    let outcome = match &found {
        Ok(_) => AuthServerOutcome::Answered,
        Err(_) => AuthServerOutcome::Failed,
    };
    let security = &metrics().security;
    security.asked_server(AuthServerRequest::Metadata, outcome);
    found
}

async fn search(
    http: &HttpAsker,
    issuer: &str,
    described_as: &str,
    endpoint: IssuerEndpoint,
) -> Result<String, NoAnswer> {
    let url = http.url(issuer)?;
    let mut said = Vec::new();
    for place in places(&url) {
        let why = match http.get(place.clone()).await {
            Ok(text) => match endpoint_of(&text, described_as, endpoint) {
                Ok(found) => return Ok(found),
                Err(why) => why,
            },
            Err(NoAnswer::Unreachable(why)) => {
                said.push(format!("{place}: {why}"));
                break;
            }
            Err(why) => why.to_string(),
        };
        said.push(format!("{place}: {why}"));
    }
    let said = said.join("; ");
    Err(NoAnswer::Failed(format!("cannot find metadata: {said}")))
}

fn endpoint_of(text: &[u8], issuer: &str, endpoint: IssuerEndpoint) -> Result<String, String> {
    let read: Result<Map<String, Value>, _> = serde_json::from_slice(text);
    let metadata = read.map_err(|_| match text.trim_ascii_start().first() {
        Some(b'<') => "it answered with HTML".to_owned(),
        Some(b'{' | b'[') => "it answered with JSON that is not metadata".to_owned(),
        _ => "its answer is not JSON".to_owned(),
    })?;
    let text = |member: &str| metadata.get(member).and_then(Value::as_str);
    match text("issuer") {
        Some(named) if same(named, issuer) => {}
        // A document at one path of a host must not describe the issuer of another path (RFC 8414, 3.3).
        Some(other) => {
            let other = shown(other, SHOWN);
            return Err(format!("it has the metadata of another issuer, {other:?}"));
        }
        None => return Err("it answered with JSON without `issuer`".to_owned()),
    }
    let member = endpoint.member();
    let found = text(member).map(str::to_owned);
    found.ok_or_else(|| format!("it has metadata without `{member}`"))
}

/// In the order of MCP's specification.
fn places(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut paths = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        paths.push(format!("{path}/.well-known/openid-configuration"));
    }
    let at = |path: String| {
        let mut url = issuer.clone();
        url.set_path(&path);
        url
    };
    paths.into_iter().map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::places;

    #[test]
    fn an_issuer_with_a_path_has_three_places() {
        let places = |issuer: &str| -> Vec<String> {
            let places = places(&issuer.parse().unwrap());
            places.into_iter().map(String::from).collect()
        };
        let root = [
            "https://id.example.com/.well-known/oauth-authorization-server",
            "https://id.example.com/.well-known/openid-configuration",
        ];
        assert_eq!(places("https://id.example.com"), root);
        let tenant = [
            "https://id.example.com/.well-known/oauth-authorization-server/a",
            "https://id.example.com/.well-known/openid-configuration/a",
            "https://id.example.com/a/.well-known/openid-configuration",
        ];
        assert_eq!(places("https://id.example.com/a"), tenant);
    }
}
