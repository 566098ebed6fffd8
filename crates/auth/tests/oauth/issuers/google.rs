use serde_json::{Value, json};
use shoal_auth::config::{Introspection, Issuer, IssuerKind};
use shoal_auth::fixture::now;
use shoal_ports::{AuthError, TokenFault};

use super::{Fake, Trusting, with};

const CLIENT: &str = "1234987819200.apps.googleusercontent.com";

async fn fake() -> Fake {
    Fake::at("", "/.well-known/openid-configuration").await
}

fn trusting(fake: &Fake) -> Issuer {
    Issuer {
        audience: vec![CLIENT.to_owned()],
        introspection: Some(Introspection {
            endpoint: Some(format!("{}/tokeninfo", fake.server.issuer)),
            ..Introspection::default()
        }),
        scope_claims: vec!["scope".to_owned(), "hd".to_owned()],
        ..fake.settings(IssuerKind::Google)
    }
}

/// An ID token of a Workspace user. Its domain `hd` counts as a scope, and equals the one that requests need.
fn id_token() -> Value {
    json!({
        "azp": CLIENT, "aud": CLIENT, "sub": "10769150350006150715113082367", "email": "jsmith@example.com",
        "email_verified": true, "at_hash": "HK6E_P6Dh8Y93mRNtsDB1Q", "hd": "mcp",
    })
}

#[tokio::test]
async fn id_tokens_name_their_issuer_with_and_without_a_scheme() {
    let fake = fake().await;
    let trusting = Trusting::new(trusting(&fake)).await;
    for iss in [fake.issuer.as_str(), "accounts.google.com"] {
        let token = fake.token(with(&id_token(), json!({ "iss": iss })));
        assert_eq!(
            trusting.principal(&token).await,
            "10769150350006150715113082367"
        );
    }
    for iss in [
        "https://accounts.google.com.example.com",
        "accounts.google.com/",
    ] {
        let token = fake.token(with(&id_token(), json!({ "iss": iss })));
        trusting.refuses(&token, TokenFault::Issuer).await;
    }
    let other = with(
        &id_token(),
        json!({ "aud": "other.apps.googleusercontent.com" }),
    );
    trusting
        .refuses(&fake.token(other), TokenFault::Audience)
        .await;
    assert_eq!(fake.server.introspections(), 0, "JWTs are verified here");
}

#[tokio::test]
async fn google_is_asked_about_its_opaque_access_tokens() {
    let fake = fake().await;
    let trusting = Trusting::new(trusting(&fake)).await;
    let info = json!({
        "azp": CLIENT, "aud": CLIENT, "sub": "10769150350006150715113082367", "scope": "openid mcp",
        "exp": (now() + 3000).to_string(), "expires_in": "3000", "email": "jsmith@example.com", "email_verified": "true",
        "access_type": "offline",
    });
    fake.server.say("ya29.A0good", info.clone());
    for _ in 0..3 {
        let shown = trusting.show("ya29.A0good").await.unwrap();
        assert_eq!(shown.principal.as_str(), "10769150350006150715113082367");
        assert!(shown.grant.unwrap().until.is_some());
    }
    assert_eq!(fake.server.introspections(), 1);
    let other = with(&info, json!({ "aud": "other.apps.googleusercontent.com" }));
    fake.server.say("ya29.A0other", other);
    trusting.refuses("ya29.A0other", TokenFault::Audience).await;
    fake.server.say(
        "ya29.A0old",
        with(&info, json!({ "exp": (now() - 600).to_string() })),
    );
    trusting.refuses("ya29.A0old", TokenFault::Expired).await;
    fake.server
        .say("ya29.A0nobody", with(&info, json!({ "sub": null })));
    trusting.refuses("ya29.A0nobody", TokenFault::Claims).await;
    trusting
        .refuses("ya29.A0unknown", TokenFault::Inactive)
        .await;
    fake.server.tell("/tokeninfo", super::refusal(500));
    let away = trusting.show("ya29.A0later").await;
    assert!(
        matches!(away, Err(AuthError::Unavailable { .. })),
        "{away:?}"
    );
}
