use std::time::Duration;

use serde_json::Value;
use shoal_auth::OAuth;
use shoal_auth::config::{Auth, AuthMode, Issuer, SigningAlgorithm};
use shoal_auth::fixture::{AuthorizationServer, SigningKey};
use shoal_outbound::Outbound;
use shoal_ports::{AuthError, Authenticated, Authenticator as _, Credentials};

pub(crate) const SOON: Duration = Duration::from_secs(20);
pub(crate) const RESOURCE: &str = "https://mcp.example.com/mcp";

pub(crate) struct Setting {
    pub(crate) server: AuthorizationServer,
    pub(crate) key: SigningKey,
    pub(crate) oauth: OAuth,
}

pub(crate) fn trusting(server: &AuthorizationServer) -> Auth {
    Auth {
        mode: AuthMode::OAuth,
        resource: RESOURCE.to_owned(),
        issuers: vec![Issuer {
            issuer: server.issuer.clone(),
            algorithms: vec![
                SigningAlgorithm::RS256,
                SigningAlgorithm::ES256,
                SigningAlgorithm::EdDSA,
            ],
            ..Issuer::default()
        }],
        ..Auth::default()
    }
}

impl Setting {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(set: impl FnOnce(&mut Auth)) -> Self {
        let key = SigningKey::es256("first");
        let server = AuthorizationServer::start(&[&key]).await;
        let mut auth = trusting(&server);
        set(&mut auth);
        let oauth = OAuth::start(&auth, "/mcp", &Outbound::default()).unwrap();
        until(|| oauth.waits_for().is_none()).await;
        Self { server, key, oauth }
    }

    pub(crate) fn claims(&self) -> Value {
        self.server.claims(RESOURCE)
    }

    pub(crate) async fn show(&self, token: &str) -> Result<Authenticated, AuthError> {
        self.oauth.authenticate(Credentials::bearer(token)).await
    }
}

pub(crate) async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, waiting).await.unwrap();
}
