use serde_json::{Value, json};
use shoal_auth::config::Dpop;
use shoal_auth::fixture::{SigningKey, now};
use shoal_ports::{
    AuthError, Authenticated, Authenticator as _, Credentials, ProofFault, Scheme, TokenFault,
};

use crate::setting::{RESOURCE, Setting};

struct Bound {
    setting: Setting,
    client: SigningKey,
    token: String,
}

async fn bound(mode: Dpop) -> Bound {
    let setting = Setting::with(|auth| auth.dpop = mode).await;
    let (client, token) = bound_token(&setting, "alice");
    Bound {
        setting,
        client,
        token,
    }
}

fn bound_token(setting: &Setting, principal: &str) -> (SigningKey, String) {
    let client = SigningKey::es256("client");
    let mut claims = setting.claims();
    claims["sub"] = json!(principal);
    claims["cnf"] = json!({ "jkt": client.thumbprint() });
    let token = setting.key.token(&claims);
    (client, token)
}

impl Bound {
    async fn show(&self, scheme: Scheme, proof: Option<&str>) -> Result<Authenticated, AuthError> {
        let shown = Credentials {
            token: Some((scheme, self.token.as_bytes())),
            proof,
            ..Credentials::none()
        };
        self.setting.oauth.authenticate(shown).await
    }

    fn claims(&self) -> Value {
        SigningKey::proof_claims("POST", RESOURCE, &self.token)
    }
}

#[tokio::test]
async fn a_bound_token_needs_a_proof_which_is_good_once() {
    let bound = bound(Dpop::Accepted).await;
    let proof = bound.client.proof(&bound.claims());
    let known = bound.show(Scheme::Dpop, Some(&proof)).await.unwrap();
    assert_eq!(known.principal.as_str(), "alice");
    let again = bound.show(Scheme::Dpop, Some(&proof)).await;
    assert_eq!(again, Err(AuthError::Proof(ProofFault::Replayed)));
    let none = bound.show(Scheme::Dpop, None).await;
    assert_eq!(none, Err(AuthError::Proof(ProofFault::Missing)));
    let other = bound.client.proof(&bound.claims());
    let as_bearer = bound.show(Scheme::Bearer, Some(&other)).await;
    assert_eq!(as_bearer, Err(AuthError::Token(TokenFault::Bound)));
}

#[tokio::test]
async fn a_proof_is_for_one_request_one_token_one_key_and_now() {
    let bound = bound(Dpop::Required).await;
    for (claim, value, due) in [
        ("htm", json!("GET"), ProofFault::Request),
        (
            "htu",
            json!("https://mcp.example.com/other"),
            ProofFault::Request,
        ),
        (
            "htu",
            json!("https://evil.example.com/mcp"),
            ProofFault::Request,
        ),
        (
            "htu",
            json!("http://mcp.example.com/mcp"),
            ProofFault::Request,
        ),
        ("htu", json!("mcp"), ProofFault::Request),
        ("ath", json!("abc"), ProofFault::Token),
        ("ath", Value::Null, ProofFault::Token),
        ("iat", json!(now() - 300), ProofFault::Time),
        ("iat", json!(now() + 300), ProofFault::Time),
        ("iat", json!("now"), ProofFault::Malformed),
        ("jti", json!(""), ProofFault::Malformed),
        ("jti", json!("x".repeat(300)), ProofFault::Malformed),
    ] {
        let mut claims = bound.claims();
        claims[claim] = value.clone();
        let proof = bound.client.proof(&claims);
        let refused = bound.show(Scheme::Dpop, Some(&proof)).await;
        assert_eq!(refused, Err(AuthError::Proof(due)), "{claim}: {value}");
    }
    let other = SigningKey::es256("client").proof(&bound.claims());
    let refused = bound.show(Scheme::Dpop, Some(&other)).await;
    assert_eq!(refused, Err(AuthError::Proof(ProofFault::Key)));
    let plain = bound.client.token(&bound.claims());
    let refused = bound.show(Scheme::Dpop, Some(&plain)).await;
    assert_eq!(refused, Err(AuthError::Proof(ProofFault::Malformed)));
    let symmetric =
        json!({ "alg": "HS256", "typ": "dpop+jwt", "jwk": { "kty": "oct", "k": "YQ" } });
    let symmetric = bound.client.sign(&symmetric, &bound.claims());
    let refused = bound.show(Scheme::Dpop, Some(&symmetric)).await;
    assert_eq!(refused, Err(AuthError::Proof(ProofFault::Algorithm)));
    let mut claims = bound.claims();
    claims["htu"] = json!("HTTPS://MCP.example.com:443/mcp?a=b#c");
    let proof = bound.client.proof(&claims);
    bound.show(Scheme::Dpop, Some(&proof)).await.unwrap();
}

#[tokio::test]
async fn the_mode_says_which_tokens_are_taken() {
    let off = bound(Dpop::Off).await;
    let proof = off.client.proof(&off.claims());
    let refused = off.show(Scheme::Dpop, Some(&proof)).await;
    assert_eq!(refused, Err(AuthError::Token(TokenFault::Binding)));

    let required = bound(Dpop::Required).await.setting;
    let plain = required.key.token(&required.claims());
    let refused = required.show(&plain).await;
    assert_eq!(refused, Err(AuthError::Token(TokenFault::Unbound)));

    let accepted = bound(Dpop::Accepted).await.setting;
    let plain = accepted.key.token(&accepted.claims());
    accepted.show(&plain).await.unwrap();
}

#[tokio::test]
async fn whoever_shows_too_many_proofs_leaves_room_for_others() {
    let setting = Setting::with(|auth| {
        auth.dpop = Dpop::Required;
        auth.dpop_bytes = 8 << 10;
    })
    .await;
    let show = async |(client, token): &(SigningKey, String)| {
        let proof = client.proof(&SigningKey::proof_claims("POST", RESOURCE, token));
        let shown = Credentials {
            token: Some((Scheme::Dpop, token.as_bytes())),
            proof: Some(&proof),
            ..Credentials::none()
        };
        setting.oauth.authenticate(shown).await
    };
    let (hostile, honest) = (
        bound_token(&setting, "mallory"),
        bound_token(&setting, "alice"),
    );
    let mut refused = 0;
    for _ in 0..200 {
        match show(&hostile).await {
            Ok(_) => assert_eq!(refused, 0),
            Err(AuthError::TooManyProofs { .. }) => refused += 1,
            Err(why) => panic!("{why}"),
        }
    }
    assert!((1..200).contains(&refused), "{refused}");
    for _ in 0..20 {
        show(&honest).await.unwrap();
    }
}
