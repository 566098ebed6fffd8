//! Finds a server's token endpoint from its 401, its metadata (RFC 9728), and its authorization server's
//! metadata (RFC 8414).
//!
//! The server chooses these URLs, so requests follow the rules for untrusted targets.

use http::{HeaderMap, Method, StatusCode, header};
use reqwest::Url;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use shoal_outbound::{Client, collect, whole_story};
use shoal_ports::shown;

use super::super::token_endpoint::NoToken;
use super::ClientAuthentication;

const DOCUMENT: usize = 256 * 1024;
const SHOWN: usize = 200;
const LONGEST_SCOPE: usize = 4096;

#[derive(Debug, PartialEq)]
pub(super) struct TokenSource {
    pub(super) endpoint: Url,
    pub(super) issuer: Option<String>,
    pub(super) resource: Option<String>,
    pub(super) scope: Option<String>,
    methods: Option<Vec<String>>,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Challenge {
    metadata: Option<String>,
    scope: Option<String>,
}

#[derive(Deserialize)]
struct ServerResourceMetadata {
    resource: Option<String>,
    #[serde(default)]
    authorization_servers: Vec<String>,
    scopes_supported: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct ServerMetadata {
    issuer: String,
    token_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

impl TokenSource {
    pub(super) fn fixed(endpoint: Url) -> Self {
        Self {
            endpoint,
            issuer: None,
            resource: None,
            scope: None,
            methods: None,
        }
    }

    pub(super) fn secret_goes(
        &self,
        chosen: ClientAuthentication,
    ) -> Result<ClientAuthentication, String> {
        let (ClientAuthentication::Auto, Some(methods)) = (chosen, &self.methods) else {
            return Ok(chosen);
        };
        let has = |method: &str| methods.iter().any(|supported| supported == method);
        if has("client_secret_basic") {
            Ok(ClientAuthentication::Basic)
        } else if has("client_secret_post") {
            Ok(ClientAuthentication::Post)
        } else {
            let methods = shown(&methods.join(", "), SHOWN);
            Err(format!(
                "the authorization server takes no client secret, but {methods}"
            ))
        }
    }
}

impl Challenge {
    /// Each parameter comes from the first challenge that has it.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut challenge = Self::default();
        for value in headers.get_all(header::WWW_AUTHENTICATE) {
            let text = String::from_utf8_lossy(value.as_bytes());
            challenge.metadata =
                (challenge.metadata).or_else(|| parameter(&text, "resource_metadata"));
            challenge.scope = challenge.scope.or_else(|| parameter(&text, "scope"));
        }
        challenge.scope = challenge.scope.filter(|scope| scope.len() <= LONGEST_SCOPE);
        challenge
    }
}

fn parameter(challenge: &str, name: &str) -> Option<String> {
    let mut rest = challenge;
    loop {
        let at = rest.to_ascii_lowercase().find(name)?;
        let before = rest[..at].chars().next_back();
        let (begins, after) = (
            before.is_none_or(|before| " ,\t".contains(before)),
            &rest[at + name.len()..],
        );
        let value = after.trim_start().strip_prefix('=').map(str::trim_start);
        match value.filter(|_| begins) {
            Some(value) => return Some(unquoted(value)).filter(|value| !value.is_empty()),
            None => rest = after,
        }
    }
}

fn unquoted(value: &str) -> String {
    let Some(quoted) = value.strip_prefix('"') else {
        let end = value.find([',', ' ', '\t']).unwrap_or(value.len());
        return value[..end].to_owned();
    };
    let mut text = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            '\\' => text.extend(characters.next()),
            other => text.push(other),
        }
    }
    text
}

pub(super) async fn find(
    client: &Client,
    server: &Url,
    issuer: &str,
    challenge: Option<&Challenge>,
) -> Result<TokenSource, NoToken> {
    let reader = MetadataReader { client, server };
    let asked_scope = challenge.and_then(|challenge| challenge.scope.clone());
    if !issuer.is_empty() {
        let mut source = reader.authorization_server(issuer).await?;
        source.scope = asked_scope;
        return Ok(source);
    }
    let named = challenge.and_then(|challenge| challenge.metadata.as_deref());
    let resource = reader.resource(named).await?;
    let origin = server.origin().ascii_serialization();
    let (issuer, name, scopes) = match resource {
        Some(found) => {
            let issuer = found.authorization_servers.into_iter().next();
            let issuer = issuer.ok_or_else(|| {
                refused("the server's metadata name no authorization server; set token_endpoint")
            })?;
            (issuer, found.resource, found.scopes_supported)
        }
        // Servers of 2025-03-26 are their own authorization servers.
        None => (origin, None, None),
    };
    let mut source = reader.authorization_server(&issuer).await?;
    source.resource = name;
    let all = scopes.filter(|scopes| !scopes.is_empty());
    let all = all.map(|scopes| scopes.join(" "));
    source.scope = asked_scope
        .or(all)
        .filter(|scope| scope.len() <= LONGEST_SCOPE);
    Ok(source)
}

struct MetadataReader<'a> {
    client: &'a Client,
    server: &'a Url,
}

impl MetadataReader<'_> {
    async fn resource(
        &self,
        named: Option<&str>,
    ) -> Result<Option<ServerResourceMetadata>, NoToken> {
        let name = "oauth-protected-resource";
        let places = match named {
            Some(named) => vec![self.checked(named)?],
            None => vec![
                inserted(self.server, name),
                at(self.server, &format!("/.well-known/{name}")),
            ],
        };
        for place in places {
            let Some(found) = self.read::<ServerResourceMetadata>(&place).await? else {
                continue;
            };
            if let Some(resource) = &found.resource
                && !covers(resource, self.server)
            {
                let resource = shown(resource, SHOWN);
                return Err(refused(&format!(
                    "the metadata at {place} are of another server, {resource}; set token_endpoint if that is right"
                )));
            }
            return Ok(Some(found));
        }
        match named {
            Some(named) => Err(refused(&format!(
                "there is nothing at {}",
                shown(named, SHOWN)
            ))),
            None => Ok(None),
        }
    }

    async fn authorization_server(&self, issuer: &str) -> Result<TokenSource, NoToken> {
        let url = self.checked(issuer)?;
        let path = url.path().trim_end_matches('/');
        let mut places = vec![
            inserted(&url, "oauth-authorization-server"),
            inserted(&url, "openid-configuration"),
        ];
        if !path.is_empty() {
            places.push(at(
                &url,
                &format!("{path}/.well-known/openid-configuration"),
            ));
        }
        for place in places {
            let Some(found) = self.read::<ServerMetadata>(&place).await? else {
                continue;
            };
            // The owner of one path of a host must not speak for another path (RFC 8414, 3.3).
            if found.issuer.trim_end_matches('/') != issuer.trim_end_matches('/') {
                let other = shown(&found.issuer, SHOWN);
                return Err(refused(&format!(
                    "the metadata at {place} are of another issuer, {other}"
                )));
            }
            let endpoint = found.token_endpoint.ok_or_else(|| {
                refused(&format!("the metadata at {place} name no token endpoint"))
            })?;
            return Ok(TokenSource {
                endpoint: self.checked(&endpoint)?,
                issuer: Some(found.issuer),
                resource: None,
                scope: None,
                methods: found.token_endpoint_auth_methods_supported,
            });
        }
        let issuer = shown(issuer, SHOWN);
        Err(refused(&format!(
            "the authorization server {issuer} has no metadata; set token_endpoint"
        )))
    }

    /// Checks a URL that the server names. A server on `https` must not lead Shoal's secrets to plain `http`.
    fn checked(&self, url: &str) -> Result<Url, NoToken> {
        let parsed: Option<Url> = url.parse().ok();
        let parsed = parsed.filter(|url: &Url| match url.scheme() {
            "https" => url.has_host(),
            "http" => url.has_host() && self.server.scheme() == "http",
            _ => false,
        });
        parsed.ok_or_else(|| {
            let url = shown(url, SHOWN);
            refused(&format!(
                "the server names {url}, which Shoal does not ask: it is no https URL"
            ))
        })
    }

    /// `None` if the place has no metadata, so that the next place is tried.
    async fn read<T: DeserializeOwned>(&self, place: &Url) -> Result<Option<T>, NoToken> {
        let request = self
            .client
            .request(Method::GET, place)
            .map_err(|why| refused(&why))?;
        let request = request.header(header::ACCEPT, "application/json");
        let answer = request.send().await.map_err(|error| {
            NoToken::Away(format!("cannot read {place}: {}", whole_story(&error)))
        })?;
        let status = answer.status();
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Err(NoToken::Away(format!(
                "cannot read {place}: it answered {status}"
            )));
        }
        if !status.is_success() {
            return Ok(None);
        }
        let Ok(body) = collect(answer, DOCUMENT).await else {
            return Err(NoToken::Away(format!(
                "cannot read {place}: it broke off, or is too long"
            )));
        };
        Ok(serde_json::from_slice(&body).ok())
    }
}

fn refused(why: &str) -> NoToken {
    NoToken::Refused(format!(
        "Shoal cannot find who grants tokens for the server: {why}"
    ))
}

/// Whether metadata for `resource` apply to the server: the origin is the same, and the resource's path is
/// the server's or above it.
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = resource.parse::<Url>() else {
        return false;
    };
    let path = |url: &Url| format!("{}/", url.path().trim_end_matches('/'));
    resource.origin() == server.origin() && path(server).starts_with(&path(&resource))
}

fn inserted(url: &Url, name: &str) -> Url {
    let path = url.path().trim_end_matches('/');
    at(url, &format!("/.well-known/{name}{path}"))
}

fn at(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::{Challenge, covers};

    #[test]
    fn challenges_are_read_quoted_or_not() {
        for (text, metadata, scope) in [
            (
                r#"Bearer resource_metadata="https://a/b", scope="x y""#,
                Some("https://a/b"),
                Some("x y"),
            ),
            (
                r#"Bearer error="invalid_token", Scope=x, resource_metadata=https://a/b"#,
                Some("https://a/b"),
                Some("x"),
            ),
            (r#"Bearer realm="a\"scope", xscope="n""#, None, None),
            ("Basic", None, None),
        ] {
            let headers: HeaderMap = [(http::header::WWW_AUTHENTICATE, text.parse().unwrap())]
                .into_iter()
                .collect();
            let expected = Challenge {
                metadata: metadata.map(str::to_owned),
                scope: scope.map(str::to_owned),
            };
            assert_eq!(Challenge::of(&headers), expected, "{text}");
        }
    }

    #[test]
    fn metadata_speak_for_their_own_path_and_below() {
        let server = "https://h/a/mcp".parse().unwrap();
        for resource in [
            "https://h/a/mcp",
            "https://h/a/",
            "https://h",
            "https://H:443/a/mcp/",
        ] {
            assert!(covers(resource, &server), "{resource}");
        }
        for resource in [
            "https://h/b",
            "https://h/a/m",
            "http://h/a/mcp",
            "https://x/a/mcp",
            "mcp",
        ] {
            assert!(!covers(resource, &server), "{resource}");
        }
    }
}
