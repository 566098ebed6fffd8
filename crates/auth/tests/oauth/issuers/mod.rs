//! The products of `issuer_kind`, with tokens from their documentation.

mod auth0;
mod claims;
mod cognito;
mod entra;
mod google;
mod keycloak;
mod okta;

use std::sync::LazyLock;

use serde_json::{Value, json};
use shoal_auth::OAuth;
use shoal_auth::config::{Auth, AuthMode, Issuer, IssuerKind};
use shoal_auth::fixture::{AuthorizationServer, SigningKey, Told, now};
use shoal_outbound::Outbound;
use shoal_ports::{AuthError, Authenticated, Authenticator as _, Credentials, TokenFault};

use crate::setting::{RESOURCE, until};

/// Shared, because generating RSA keys is slow.
static FIRST: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::rs256("first"));
pub(crate) static SECOND: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::rs256("second"));

pub(crate) struct Fake {
    pub(crate) server: AuthorizationServer,
    pub(crate) key: &'static SigningKey,
    pub(crate) issuer: String,
}

pub(crate) struct Trusting(OAuth);

impl Fake {
    pub(crate) async fn at(path: &str, metadata: &str) -> Self {
        let key: &SigningKey = &FIRST;
        let server = AuthorizationServer::start(&[key]).await;
        let issuer = format!("{}{path}", server.issuer);
        server.describe(metadata, &issuer);
        Self {
            server,
            key,
            issuer,
        }
    }

    pub(crate) fn settings(&self, kind: IssuerKind) -> Issuer {
        Issuer {
            issuer_kind: Some(kind),
            issuer: self.issuer.clone(),
            ..Issuer::default()
        }
    }

    pub(crate) fn token(&self, claims: Value) -> String {
        self.signed(
            &json!({ "typ": "JWT", "alg": "RS256", "kid": "first" }),
            claims,
        )
    }

    pub(crate) fn signed(&self, header: &Value, mut claims: Value) -> String {
        if claims.get("iss").is_none() {
            claims["iss"] = json!(self.issuer);
        }
        if claims.get("exp").is_none() {
            claims["iat"] = json!(now());
            claims["exp"] = json!(now() + 600);
        }
        self.key.sign(header, &claims)
    }
}

impl Trusting {
    pub(crate) async fn new(issuer: Issuer) -> Self {
        let auth = Auth {
            mode: AuthMode::OAuth,
            resource: RESOURCE.to_owned(),
            issuers: vec![issuer],
            required_scopes: vec!["mcp".to_owned()],
            ..Auth::default()
        };
        let oauth = OAuth::start(&auth, "/mcp", &Outbound::default()).unwrap();
        until(|| oauth.waits_for().is_none() || oauth.trouble().is_some()).await;
        assert_eq!(oauth.report()[0].trouble, None);
        Self(oauth)
    }

    pub(crate) async fn show(&self, token: &str) -> Result<Authenticated, AuthError> {
        self.0.authenticate(Credentials::bearer(token)).await
    }

    pub(crate) async fn principal(&self, token: &str) -> String {
        self.show(token).await.unwrap().principal.to_string()
    }

    pub(crate) async fn refuses(&self, token: &str, due: TokenFault) {
        let refused = self.show(token).await;
        assert_eq!(refused, Err(AuthError::Token(due)));
    }

    pub(crate) fn servers(&self) -> Value {
        let document = self.0.resource_metadata().unwrap().document;
        let document: Value = serde_json::from_slice(&document).unwrap();
        document["authorization_servers"].clone()
    }
}

/// Changes claims; `null` removes one.
pub(crate) fn with(claims: &Value, changes: Value) -> Value {
    let mut claims = claims.clone();
    for (claim, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(claim)),
            value => claims[claim] = value.clone(),
        }
    }
    claims
}

pub(crate) fn refusal(status: u16) -> Told {
    Told::new(status, r#"{"message":"there is nothing here"}"#)
}
