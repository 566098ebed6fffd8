//! What an authorization server says of itself (RFC 8414, OpenID Connect Discovery).

use serde::Deserialize;
use shoal_telemetry::metrics::{AuthServerOutcome, AuthServerRequest, metrics};
use url::Url;

use super::http::{HttpAsker, NoAnswer};

/// The members that matter here.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ServerMetadata {
    issuer: String,
    #[serde(default)]
    pub(crate) jwks_uri: Option<String>,
    #[serde(default)]
    pub(crate) introspection_endpoint: Option<String>,
}

/// Reads the metadata of an issuer, from the places where it can be.
///
/// # Errors
/// Why it cannot be had, or not be believed.
pub(crate) async fn discover(http: &HttpAsker, issuer: &str) -> Result<ServerMetadata, NoAnswer> {
    let found = ask(http, issuer).await;
    let outcome = match &found {
        Ok(_) => AuthServerOutcome::Answered,
        Err(_) => AuthServerOutcome::Failed,
    };
    let security = &metrics().security;
    security.asked_server(AuthServerRequest::Metadata, outcome);
    found
}

async fn ask(http: &HttpAsker, issuer: &str) -> Result<ServerMetadata, NoAnswer> {
    let url = http.url(issuer)?;
    for place in places(&url) {
        let text = match http.get(place).await {
            Err(NoAnswer::NotFound) => continue,
            other => other?,
        };
        let read: Result<ServerMetadata, _> = serde_json::from_slice(&text);
        let read = read.map_err(|_| NoAnswer::Failed("its metadata cannot be read".to_owned()))?;
        // Whoever can answer for one path of a host must not speak for another (RFC 8414, 3.3).
        if read.issuer != issuer {
            let other = "its metadata is of another issuer";
            return Err(NoAnswer::Failed(other.to_owned()));
        }
        return Ok(read);
    }
    Err(NoAnswer::Failed("it has no metadata".to_owned()))
}

/// Where the metadata of an issuer can be, in the order of the specification.
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
