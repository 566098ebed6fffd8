use futures::future::join_all;
use serde_json::{Value, json};
use shoal_auth::config::{Auth, Introspection};
use shoal_auth::fixture::{CLIENT, now};
use shoal_ports::{AuthError, Period, TokenFault};

use crate::setting::{RESOURCE, Setting, until};

async fn setting(name: &str) -> Setting {
    setting_with(name, |_| {}).await
}

pub(crate) async fn setting_with(name: &str, set: impl FnOnce(&mut Auth)) -> Setting {
    let file = std::env::temp_dir().join(format!("shoal-{name}-{}", std::process::id()));
    std::fs::write(&file, format!("{}\n", CLIENT.1)).unwrap();
    Setting::with(|auth| {
        auth.issuers[0].introspection = Some(Introspection {
            client_id: CLIENT.0.to_owned(),
            client_secret_file: Some(file),
            ..Introspection::default()
        });
        set(auth);
    })
    .await
}

pub(crate) fn active() -> Value {
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
    let token = setting.key.token(&setting.claims());
    let unknown = setting.show(&token).await;
    assert_eq!(unknown, Err(AuthError::Token(TokenFault::Inactive)));
    assert_eq!(setting.server.introspections(), 2);
}

#[tokio::test]
async fn what_the_issuer_says_is_checked() {
    let setting = setting("checked").await;
    for (at, (claim, value, due)) in [
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
    ]
    .into_iter()
    .enumerate()
    {
        let mut answer = active();
        answer[claim] = value.clone();
        let token = format!("token-{at}");
        setting.server.say(&token, answer);
        let asked = setting.server.introspections();
        for _ in 0..3 {
            let refused = setting.show(&token).await;
            assert_eq!(refused, Err(AuthError::Token(due)), "{claim}");
        }
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

fn is_away<T>(answer: &Result<T, AuthError>) -> bool {
    matches!(answer, Err(AuthError::Unavailable { .. }))
}

#[tokio::test]
async fn all_who_show_a_token_share_one_question_that_is_not_answered() {
    let second = Period::seconds(1);
    let setting = setting_with("hangs", |auth| auth.request_timeout = second).await;
    setting.server.hang_on("opaque");
    let answers = join_all((0..20).map(|_| setting.show("opaque"))).await;
    assert!(answers.iter().all(is_away), "{answers:?}");
    assert_eq!(setting.server.introspections(), 1);
    assert!(is_away(&setting.show("opaque").await));
    assert_eq!(setting.server.introspections(), 2);
}

#[tokio::test]
async fn what_nobody_issued_takes_no_place_of_tokens_that_were_good() {
    let setting = setting_with("strangers", |auth| auth.cached_for = Period::seconds(0)).await;
    setting.server.say("opaque", active());
    setting.show("opaque").await.unwrap();
    setting.server.hang_on("garbage");
    let tokens: Vec<String> = (0..200).map(|number| format!("garbage{number}")).collect();
    let flood = join_all(tokens.iter().map(|token| setting.show(token)));
    let honest = async {
        until(|| setting.server.introspections() > 32).await;
        for _ in 0..20 {
            setting.show("opaque").await.unwrap();
        }
    };
    tokio::select! {
        _ = flood => panic!("the flood is over"),
        () = honest => {}
    }
    assert_eq!(setting.server.introspections(), 1 + 32 + 20);
}

#[tokio::test]
async fn what_cannot_be_a_token_is_not_asked_about() {
    let setting = setting("shape").await;
    let mut claims = setting.claims();
    claims["exp"] = json!(now() - 600);
    let expired = setting.key.token(&claims);
    for (token, due) in [
        ("a token", TokenFault::Malformed),
        ("t\u{f6}ken", TokenFault::Malformed),
        ("token\"", TokenFault::Malformed),
        ("=", TokenFault::Malformed),
        (&expired, TokenFault::Expired),
    ] {
        let refused = setting.show(token).await;
        assert_eq!(refused, Err(AuthError::Token(due)), "{token}");
    }
    assert_eq!(setting.server.introspections(), 0);
}
