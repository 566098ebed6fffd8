use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use http::uri::Authority;
use http::{HeaderMap, StatusCode, header};
use reqwest::Url;
use serde::Serialize;

use super::super::answer;
use crate::client_config::{ClientSetup, Credential, setups};
use crate::config::{AuthMode, Settings};

const PLACEHOLDER: &str = "https://mcp.example.com/mcp";

/// The clients' endpoint and its credential.
pub struct ClientEndpoint {
    url: Option<String>,
    mode: AuthMode,
}

#[derive(Serialize)]
struct ConnectPage {
    url: Option<String>,
    credential: Credential,
    clients: Vec<ClientSetup>,
}

impl ClientEndpoint {
    /// Uses `auth.resource` as the endpoint, or else `listener`.
    pub fn new(settings: &Settings, listener: Option<String>) -> Self {
        let named = Some(settings.auth.resource.clone()).filter(|named| !named.is_empty());
        Self {
            url: named.or(listener),
            mode: settings.auth.mode,
        }
    }

    /// For a browser that reached this process under the name `host`.
    fn shown(&self, host: Option<&str>) -> ConnectPage {
        let url = self.url.as_deref().map(|url| reachable(url, host));
        let credential = match self.mode {
            AuthMode::None => Credential::None,
            AuthMode::Tokens => Credential::Token,
            AuthMode::OAuth => Credential::Login,
        };
        let clients = setups(url.as_deref().unwrap_or(PLACEHOLDER), credential);
        ConnectPage {
            url,
            credential,
            clients,
        }
    }
}

pub(super) fn router(endpoint: ClientEndpoint) -> Router {
    Router::new()
        .route("/connect", get(connect))
        .with_state(Arc::new(endpoint))
}

async fn connect(State(endpoint): State<Arc<ClientEndpoint>>, headers: HeaderMap) -> Response {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    answer(StatusCode::OK, &endpoint.shown(host))
}

/// Replaces an unspecified address (`0.0.0.0`) by the host of the operator's request.
fn reachable(url: &str, host: Option<&str>) -> String {
    let named = || {
        let mut named = Url::parse(url).ok()?;
        let has_address = !matches!(named.host_str(), Some("0.0.0.0" | "[::]"));
        let host: Authority = host.filter(|_| !has_address)?.parse().ok()?;
        named.set_host(Some(host.host())).ok()?;
        Some(named.into())
    };
    named().unwrap_or_else(|| url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: Option<&str>, mode: AuthMode) -> ClientEndpoint {
        ClientEndpoint {
            url: url.map(str::to_owned),
            mode,
        }
    }

    #[test]
    fn a_listener_on_every_address_is_shown_by_the_name_that_the_operator_uses() {
        for (url, host, shown) in [
            (
                "http://0.0.0.0:8080/mcp",
                Some("node.internal:8081"),
                "http://node.internal:8080/mcp",
            ),
            (
                "https://[::]:8443/mcp",
                Some("[fd00::7]:8081"),
                "https://[fd00::7]:8443/mcp",
            ),
            (
                "http://0.0.0.0:8080/mcp",
                Some("[fd00::7]"),
                "http://[fd00::7]:8080/mcp",
            ),
            ("http://0.0.0.0:8080/mcp", None, "http://0.0.0.0:8080/mcp"),
            (
                "http://127.0.0.1:8080/mcp",
                Some("node.internal"),
                "http://127.0.0.1:8080/mcp",
            ),
        ] {
            let found = endpoint(Some(url), AuthMode::None).shown(host);
            assert_eq!(found.url.as_deref(), Some(shown), "{url} {host:?}");
        }
    }

    #[test]
    fn every_client_gets_the_endpoint_and_a_place_for_its_token() {
        let all = [
            "Claude Code",
            "Claude Desktop",
            "Cursor",
            "Visual Studio Code",
            "MCP Inspector",
        ];
        for (mode, with_token) in [
            (AuthMode::None, &[][..]),
            (AuthMode::Tokens, &all[..]),
            // Claude Desktop starts `shoal stdio`, which cannot log in.
            (AuthMode::OAuth, &["Claude Desktop"][..]),
        ] {
            let found = endpoint(Some("http://10.0.0.1:8080/mcp"), mode).shown(None);
            assert_eq!(found.clients.len(), 5);
            for client in found.clients {
                assert!(
                    client.text.contains("http://10.0.0.1:8080/mcp"),
                    "{}",
                    client.text
                );
                let has_token = with_token.contains(&client.name);
                for shown in [&client.text, &client.command] {
                    assert_eq!(shown.contains("YOUR_TOKEN"), has_token, "{mode:?} {shown}");
                }
                let is_noted = has_token && matches!(mode, AuthMode::OAuth);
                assert_eq!(client.note.is_some(), is_noted, "{mode:?} {}", client.name);
            }
        }
    }

    #[test]
    fn a_process_without_clients_says_that_it_does_not_know_the_endpoint() {
        let found = endpoint(None, AuthMode::None).shown(Some("node:8081"));
        assert_eq!(found.url, None);
        assert!(
            found
                .clients
                .iter()
                .all(|one| one.text.contains(PLACEHOLDER))
        );
    }
}
