//! Asking the issuer about tokens.

use futures::future::join_all;
use serde_json::{Value, json};
use shoal_auth::config::Introspection;
use shoal_auth::fixture::{CLIENT, now};
use shoal_ports::{AuthError, TokenFault};

use crate::setting::{RESOURCE, Setting};

async fn setting(name: &str) -> Setting {
    let file = std::env::temp_dir().join(format!("shoal-{name}-{}", std::process::id()));
    std::fs::write(&file, format!("{}\n", CLIENT.1)).unwrap();
    Setting::with(|auth| {
        auth.issuers[0].introspection = Some(Introspection {
            client_id: CLIENT.0.to_owned(),
            client_secret_file: Some(file),
            endpoint: None,
        });
    })
    .await
}

fn active() -> Value {
    json!({ "active": true, "sub": "alice", "aud": RESOURCE, "exp": now() + 600, "scope": "mcp" })
}

#[tokio::test]
async fn a_token_is_asked_about_once() {
    let setting = setting("active").await;
    setting.server.say("opaque", active());
    for answer in join_all((0..50).map(|_| setting.show("opaque"))).await {
        assert_eq!(answer.unwrap().principal.as_str(), "alice");
    }
    assert_eq!(setting.server.introspections(), 1);
    // A JWT of that issuer too.
    let token = setting.key.token(&setting.claims());
    let unknown = setting.show(&token).await;
    assert_eq!(unknown, Err(AuthError::Token(TokenFault::Inactive)));
    assert_eq!(setting.server.introspections(), 2);
}

#[tokio::test]
async fn what_the_issuer_says_is_checked() {
    let setting = setting("checked").await;
    for (claim, value, due) in [
        ("active", json!(false), TokenFault::Inactive),
        (
            "aud",
            json!("https://other.example.com"),
            TokenFault::Audience,
        ),
        ("aud", Value::Null, TokenFault::Audience),
        ("exp", json!(now() - 120), TokenFault::Expired),
        (
            "iss",
            json!("https://other.example.com"),
            TokenFault::Issuer,
        ),
        ("sub", Value::Null, TokenFault::Claims),
    ] {
        let mut answer = active();
        answer[claim] = value.clone();
        let token = format!("{claim}-{value}").replace('.', "_");
        setting.server.say(&token, answer);
        let asked = setting.server.introspections();
        for _ in 0..3 {
            let refused = setting.show(&token).await;
            assert_eq!(refused, Err(AuthError::Token(due)), "{claim}");
        }
        // A refusal is believed for a moment too.
        assert_eq!(setting.server.introspections(), asked + 1);
    }
}

#[tokio::test]
async fn an_issuer_that_is_away_is_no_refusal() {
    let setting = setting("away").await;
    setting.server.say("opaque", active());
    setting.server.set_down(true);
    let later = setting.show("opaque").await;
    assert!(
        matches!(later, Err(AuthError::Unavailable { .. })),
        "{later:?}"
    );
    setting.server.set_down(false);
    setting.show("opaque").await.unwrap();
}
