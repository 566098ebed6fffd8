use std::path::PathBuf;
use std::sync::Arc;

use reqwest::RequestBuilder;
use serde_json::json;
use shoal_auth::fixture::{AuthorizationServer, CLIENT, SigningKey, now};

const RESOURCE: &str = "https://mcp.example.com/mcp";
/// The prefix of tokens about which the issuer never answers.
pub(crate) const INVENTED: &str = "invented";
/// The limit is so low that the hostile principal reaches its share.
const PROOF_BYTES: usize = 64 << 10;
const PROOF_BYTES_LONG: usize = 4 << 20;

/// SHA-256 of the fixed tokens.
const TOKENS: &str = r#"[
    { name = "honest", sha256 = "a5e9803ff47b6b4bdf62b5c5534d05d026833ef75d090cd28d1dffe7338525e3" },
    { name = "hostile", sha256 = "140d37c31c77e8f4501ac079ea28f5d1d7b29dcad0871f4809b88f0934ffc4e7" },
]"#;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Auth {
    Tokens,
    Dpop,
    Introspection,
}

#[derive(Clone)]
pub(crate) enum Caller {
    Bearer(String),
    Prover(Arc<Prover>),
}

pub(crate) struct Prover {
    key: SigningKey,
    token: String,
}

pub(crate) struct Callers {
    pub(crate) honest: Caller,
    pub(crate) hostile: Caller,
    pub(crate) settings: Vec<(&'static str, String)>,
    secret: Option<PathBuf>,
    _issuer: Option<AuthorizationServer>,
}

impl Caller {
    pub(crate) fn show(&self, method: &str, request: RequestBuilder) -> RequestBuilder {
        match self {
            Self::Bearer(token) => request.bearer_auth(token),
            Self::Prover(prover) => {
                let claims = SigningKey::proof_claims(method, RESOURCE, &prover.token);
                request
                    .header("authorization", format!("DPoP {}", prover.token))
                    .header("dpop", prover.key.proof(&claims))
            }
        }
    }
}

impl Callers {
    pub(crate) async fn of(auth: Auth) -> Self {
        match auth {
            Auth::Tokens => Self::with_tokens(),
            Auth::Dpop => Self::with_proofs().await,
            Auth::Introspection => Self::asked_about().await,
        }
    }

    fn with_tokens() -> Self {
        let bearer = |name: &str| Caller::Bearer(format!("{name}-token-of-the-test"));
        Self {
            honest: bearer("honest"),
            hostile: bearer("hostile"),
            settings: vec![
                ("auth.mode", "\"tokens\"".to_owned()),
                ("auth.tokens", TOKENS.replace('\n', " ")),
            ],
            secret: None,
            _issuer: None,
        }
    }

    async fn with_proofs() -> Self {
        let key = SigningKey::es256("first");
        let issuer = AuthorizationServer::start(&[&key]).await;
        let prover = |name: &str| {
            let own = SigningKey::es256(name);
            let mut claims = issuer.claims(RESOURCE);
            claims["sub"] = json!(name);
            claims["exp"] = json!(now() + 3600);
            claims["cnf"] = json!({ "jkt": own.thumbprint() });
            let token = key.token(&claims);
            Caller::Prover(Arc::new(Prover { key: own, token }))
        };
        let bytes = crate::long().map_or(PROOF_BYTES, |_| PROOF_BYTES_LONG);
        let mut settings = oauth(&format!("[{{ issuer = \"{}\" }}]", issuer.issuer));
        settings.extend([
            ("auth.dpop", "\"required\"".to_owned()),
            ("auth.dpop_bytes", bytes.to_string()),
        ]);
        Self {
            honest: prover("honest"),
            hostile: prover("hostile"),
            settings,
            secret: None,
            _issuer: Some(issuer),
        }
    }

    async fn asked_about() -> Self {
        let issuer = AuthorizationServer::start(&[]).await;
        issuer.hang_on(INVENTED);
        let caller = |name: &str| {
            let active = json!({ "active": true, "sub": name, "aud": RESOURCE });
            issuer.say(name, active);
            Caller::Bearer(name.to_owned())
        };
        let name = format!("shoal-exhaustion-{:x}", rand::random::<u64>());
        let secret = std::env::temp_dir().join(name);
        std::fs::write(&secret, CLIENT.1).unwrap();
        let issuers = format!(
            "[{{ issuer = \"{}\", introspection = {{ client_id = \"{}\", client_secret_file = {secret:?} }} }}]",
            issuer.issuer, CLIENT.0
        );
        let mut settings = oauth(&issuers);
        settings.push(("auth.cached_for", "\"200ms\"".to_owned()));
        Self {
            honest: caller("honest"),
            hostile: caller("hostile"),
            settings,
            secret: Some(secret),
            _issuer: Some(issuer),
        }
    }
}

impl Drop for Callers {
    fn drop(&mut self) {
        if let Some(secret) = &self.secret {
            let _ = std::fs::remove_file(secret);
        }
    }
}

fn oauth(issuers: &str) -> Vec<(&'static str, String)> {
    vec![
        ("auth.mode", "\"oauth\"".to_owned()),
        ("auth.resource", format!("{RESOURCE:?}")),
        ("auth.issuers", issuers.to_owned()),
    ]
}
