use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use shoal_auth::OAuth;
use shoal_auth::fixture::{AuthorizationServer, SigningKey};
use shoal_outbound::Outbound;
use shoal_ports::{AuthError, Authenticator as _, Credentials, Period, TokenFault};

use crate::setting::{RESOURCE, Setting, trusting, until};

const NEVER: Period = Period::seconds(3600);
const SHORTEST: Duration = Duration::from_nanos(1);

#[tokio::test]
async fn a_rotated_key_is_fetched_when_a_token_names_it() {
    let setting = Setting::with(|auth| {
        auth.keys_refresh = NEVER;
        auth.keys_interval = SHORTEST.into();
        auth.cached_for = Period::ZERO;
    })
    .await;
    let old = setting.key.token(&setting.claims());
    setting.show(&old).await.unwrap();
    let next = SigningKey::es256("second");
    setting.server.publish(&[&next]);
    let new = next.token(&setting.claims());
    setting.show(&new).await.unwrap();
    let gone = setting.show(&old).await;
    assert_eq!(gone, Err(AuthError::Token(TokenFault::Key)));
}

#[tokio::test]
async fn a_storm_of_unknown_keys_causes_one_fetch_at_most() {
    let setting = Setting::with(|auth| auth.keys_interval = NEVER).await;
    let before = setting.server.fetches();
    let tokens: Vec<String> = (0..200)
        .map(|number| SigningKey::es256(&format!("unknown {number}")).token(&setting.claims()))
        .collect();
    for answer in join_all(tokens.iter().map(|token| setting.show(token))).await {
        assert_eq!(answer, Err(AuthError::Token(TokenFault::Key)));
    }
    assert_eq!(setting.server.fetches(), before, "within the interval");

    let setting = Setting::with(|auth| auth.keys_interval = Period::seconds(2)).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = setting.server.fetches();
    let token = SigningKey::es256("unknown").token(&setting.claims());
    for answer in join_all((0..200).map(|_| setting.show(&token))).await {
        assert_eq!(answer, Err(AuthError::Token(TokenFault::Key)));
    }
    assert_eq!(setting.server.fetches(), before + 1, "after it");
}

#[tokio::test]
async fn without_its_server_the_authenticator_starts_and_says_later() {
    let key = SigningKey::es256("first");
    let server = AuthorizationServer::start(&[&key]).await;
    server.set_down(true);
    let oauth = OAuth::start(&trusting(&server), "/mcp", &Outbound::default()).unwrap();
    until(|| oauth.trouble().is_some()).await;
    assert!(oauth.waits_for().is_some());
    let token = key.token(&server.claims(RESOURCE));
    let later = oauth.authenticate(Credentials::bearer(&token)).await;
    assert!(
        matches!(later, Err(AuthError::Unavailable { .. })),
        "{later:?}"
    );

    server.set_down(false);
    until(|| oauth.waits_for().is_none()).await;
    oauth
        .authenticate(Credentials::bearer(&token))
        .await
        .unwrap();
    assert_eq!(oauth.trouble(), None);
}

#[tokio::test]
async fn who_comes_before_the_first_keys_waits_for_them() {
    let key = SigningKey::es256("first");
    let server = AuthorizationServer::start(&[&key]).await;
    let oauth = OAuth::start(&trusting(&server), "/mcp", &Outbound::default()).unwrap();
    assert!(oauth.waits_for().is_some());
    let token = key.token(&server.claims(RESOURCE));
    let asked = (0..100).map(|_| oauth.authenticate(Credentials::bearer(&token)));
    for answer in join_all(asked).await {
        answer.unwrap();
    }
    assert_eq!(server.fetches(), 1);
}

#[tokio::test]
async fn known_keys_are_used_while_their_server_is_away_but_not_for_ever() {
    let setting = Setting::with(|auth| {
        auth.keys_refresh = Period::millis(10);
        auth.keys_stale = Period::seconds(4);
        auth.cached_for = Period::ZERO;
    })
    .await;
    setting.server.set_down(true);
    until(|| setting.oauth.trouble().is_some()).await;
    let token = setting.key.token(&setting.claims());
    setting.show(&token).await.unwrap();
    let unknown = SigningKey::es256("unknown").token(&setting.claims());
    let later = setting.show(&unknown).await;
    assert!(
        matches!(later, Err(AuthError::Unavailable { .. })),
        "{later:?}"
    );
    let stale = async {
        while setting.show(&token).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::setting::SOON, stale)
        .await
        .unwrap();
    let later = setting.show(&token).await;
    assert!(
        matches!(later, Err(AuthError::Unavailable { .. })),
        "{later:?}"
    );
}

#[tokio::test]
async fn two_keys_of_one_name_both_count() {
    let twins = [SigningKey::es256("same"), SigningKey::es256("same")];
    let server = AuthorizationServer::start(&[&twins[0], &twins[1]]).await;
    let oauth = OAuth::start(&trusting(&server), "/mcp", &Outbound::default()).unwrap();
    until(|| oauth.waits_for().is_none()).await;
    for key in &twins {
        let token = key.token(&server.claims(RESOURCE));
        oauth
            .authenticate(Credentials::bearer(&token))
            .await
            .unwrap();
    }
    let claims = server.claims(RESOURCE);
    let third = SigningKey::es256("same").token(&claims);
    let refused = oauth.authenticate(Credentials::bearer(&third)).await;
    assert_eq!(refused, Err(AuthError::Token(TokenFault::Signature)));
}

#[tokio::test]
async fn documents_that_cannot_be_keys_are_refused() {
    let key = SigningKey::es256("first");
    let symmetric = r#"{"keys":[{"kty":"oct","kid":"first","k":"c2VjcmV0"}]}"#.to_owned();
    let sealing = serde_json::json!({ "keys": [{ "use": "enc" }] });
    let mut wrong_use = key.jwk();
    wrong_use["use"] = "enc".into();
    let mut many: Vec<_> = (0..257).map(|_| key.jwk()).collect();
    for (text, why) in [
        ("{}".to_owned(), "JSON Web Key Set"),
        ("nonsense".to_owned(), "JSON Web Key Set"),
        (symmetric, "no key"),
        (sealing.to_string(), "no key"),
        (
            serde_json::json!({ "keys": [wrong_use] }).to_string(),
            "no key",
        ),
        (
            serde_json::json!({ "keys": many.clone() }).to_string(),
            "more than 256 keys",
        ),
        (" ".repeat(1100 << 10), "longer than"),
    ] {
        let server = AuthorizationServer::start(&[]).await;
        server.publish_text(text);
        let oauth = OAuth::start(&trusting(&server), "/mcp", &Outbound::default()).unwrap();
        until(|| oauth.report()[0].trouble.is_some()).await;
        let trouble = oauth.report().remove(0).trouble.unwrap();
        assert!(trouble.contains(why), "{trouble}");
    }
    many.truncate(1);
    many.push(serde_json::json!({ "kty": "unheard of", "kid": 7 }));
    many.push(serde_json::json!("no key"));
    let server = AuthorizationServer::start(&[]).await;
    server.publish_text(serde_json::json!({ "keys": many }).to_string());
    let oauth = OAuth::start(&trusting(&server), "/mcp", &Outbound::default()).unwrap();
    until(|| oauth.waits_for().is_none()).await;
    assert_eq!(oauth.report()[0].keys, Some(1));
}

fn nameless(key: &SigningKey) -> Value {
    let mut jwk = key.jwk();
    jwk.as_object_mut().unwrap().remove("kid");
    jwk
}

#[tokio::test]
async fn a_set_may_have_very_many_keys_and_keys_without_a_name() {
    let keys: Vec<SigningKey> = (0..80)
        .map(|number| SigningKey::es256(&format!("key {number}")))
        .collect();
    let named: Vec<Value> = keys.iter().map(SigningKey::jwk).collect();
    let unnamed: Vec<Value> = keys.iter().map(nameless).collect();
    for published in [named, unnamed] {
        let server = AuthorizationServer::start(&[]).await;
        server.publish_text(json!({ "keys": published }).to_string());
        let oauth = OAuth::start(&trusting(&server), "/mcp", &Outbound::default()).unwrap();
        until(|| oauth.waits_for().is_none()).await;
        assert_eq!(oauth.report()[0].keys, Some(80));
        let claims = server.claims(RESOURCE);
        for key in [&keys[0], &keys[40], &keys[79]] {
            let anonymous = key.sign(&json!({ "alg": "ES256" }), &claims);
            for token in [key.token(&claims), anonymous] {
                let shown = oauth.authenticate(Credentials::bearer(&token)).await;
                assert!(shown.is_ok(), "{shown:?}");
            }
        }
        let stranger = SigningKey::es256("stranger");
        let forged = stranger.sign(&json!({ "alg": "ES256" }), &claims);
        let refused = oauth.authenticate(Credentials::bearer(&forged)).await;
        assert_eq!(refused, Err(AuthError::Token(TokenFault::Signature)));
    }
}

#[tokio::test]
async fn a_rotated_key_without_a_name_is_fetched_too() {
    let setting = Setting::with(|auth| {
        auth.keys_refresh = NEVER;
        auth.keys_interval = SHORTEST.into();
    })
    .await;
    let next = SigningKey::es256("second");
    let published = json!({ "keys": [nameless(&next)] });
    for header in [
        json!({ "alg": "ES256" }),
        json!({ "alg": "ES256", "kid": "second" }),
    ] {
        setting.server.publish(&[&setting.key]);
        let first = setting
            .key
            .sign(&json!({ "alg": "ES256" }), &setting.claims());
        setting.show(&first).await.unwrap();
        setting.server.publish_text(published.to_string());
        let token = next.sign(&header, &setting.claims());
        setting.show(&token).await.unwrap();
    }
}

#[tokio::test]
async fn metadata_of_another_issuer_is_not_believed() {
    let key = SigningKey::es256("first");
    let server = AuthorizationServer::start(&[&key]).await;
    server.claim("https://honest.example.com");
    let oauth = OAuth::start(&trusting(&server), "/mcp", &Outbound::default()).unwrap();
    until(|| oauth.trouble().is_some()).await;
    let trouble = oauth.report().remove(0).trouble.unwrap();
    assert!(trouble.contains("another issuer"), "{trouble}");
    assert_eq!(server.fetches(), 0);
}
