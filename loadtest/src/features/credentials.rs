use http::HeaderValue;
use serde_json::json;
use shoal_auth::fixture::{AuthorizationServer, SigningKey, now};

use super::case::Authentication;
use crate::mcp::{bearer, token_entry};
use crate::servers::spawned::Environment;

const RESOURCE: &str = "https://mcp.example.com/mcp";

pub(super) const TENANT: &str = "loadtest";

const LIFETIME: u64 = 86_400;

pub(super) struct Credentials {
    token: String,
    settings: Environment,
    _issuer: Option<AuthorizationServer>,
}

impl Credentials {
    pub(super) async fn of(authentication: Authentication) -> Option<Self> {
        match authentication {
            Authentication::Off => None,
            Authentication::Tokens(count) => Some(Self::fixed(count)),
            Authentication::Jwt => Some(Self::jwt().await),
        }
    }

    fn fixed(count: usize) -> Self {
        let token = random();
        let others = (1..count).map(|_| random());
        let entries: Vec<String> = others
            .chain([token.clone()])
            .map(|it| token_entry("loadtest", &it))
            .collect();
        Self {
            token,
            settings: vec![
                ("SHOAL_AUTH__MODE", "tokens".to_owned()),
                ("SHOAL_AUTH__TOKENS", format!("[{}]", entries.join(","))),
            ],
            _issuer: None,
        }
    }

    async fn jwt() -> Self {
        let key = SigningKey::es256("loadtest");
        let issuer = AuthorizationServer::start(&[&key]).await;
        let mut claims = issuer.claims(RESOURCE);
        claims["exp"] = json!(now() + LIFETIME);
        claims["tenant"] = json!(TENANT);
        let trusted = format!(r#"[{{issuer="{}",allow_http=true}}]"#, issuer.issuer);
        Self {
            token: key.token(&claims),
            settings: vec![
                ("SHOAL_AUTH__MODE", "oauth".to_owned()),
                ("SHOAL_AUTH__RESOURCE", RESOURCE.to_owned()),
                ("SHOAL_AUTH__ISSUERS", trusted),
            ],
            _issuer: Some(issuer),
        }
    }

    pub(super) fn header(&self) -> HeaderValue {
        bearer(&self.token)
    }

    pub(super) fn of_a_stranger() -> HeaderValue {
        bearer(&random())
    }

    pub(super) fn settings(&self) -> Environment {
        self.settings.clone()
    }
}

fn random() -> String {
    let (first, second): (u128, u128) = rand::random();
    format!("{first:032x}{second:032x}")
}

#[cfg(test)]
mod tests {
    use super::Credentials;
    use crate::mcp::token_entry;

    #[test]
    fn a_server_is_told_hashes_and_never_the_token() {
        let credentials = Credentials::fixed(3);
        let settings = credentials.settings();
        let [(_, mode), (_, entries)] = &settings[..] else {
            panic!("{settings:?}");
        };
        assert_eq!(mode, "tokens");
        assert_eq!(entries.matches("sha256=").count(), 3);
        assert!(entries.contains(&token_entry("loadtest", &credentials.token)));
        assert!(!entries.contains(&credentials.token));
    }
}
