use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use shoal_auth::fixture::SigningKey;
use shoal_ports::{AuthError, Authenticator as _, GrantNews, GrantWatch, Period, TokenFault};
use tokio::time::timeout;

use crate::introspection::{active, setting_with};
use crate::setting::{SOON, Setting, until};

async fn watch(setting: &Setting, token: &str) -> GrantWatch {
    let known = setting.show(token).await.unwrap();
    setting.oauth.watch(token.as_bytes(), &known)
}

async fn over(watch: GrantWatch) -> AuthError {
    timeout(SOON, watch.over()).await.expect("it goes on")
}

async fn asking(name: &str) -> Setting {
    let setting = setting_with(name, |auth| auth.cached_for = Period::seconds(1)).await;
    setting.server.say("opaque", active());
    setting
}

#[tokio::test]
async fn all_streams_of_a_token_end_when_it_is_revoked_and_ask_once_for_all() {
    let setting = asking("revoked").await;
    let watches = join_all((0..50).map(|_| watch(&setting, "opaque"))).await;
    let watching = tokio::spawn(join_all(watches.into_iter().map(GrantWatch::over)));
    until(|| setting.server.introspections() >= 4).await;
    assert!(!watching.is_finished());
    setting.server.say("opaque", json!({ "active": false }));
    let ends = timeout(SOON, watching).await.unwrap().unwrap();
    let due = AuthError::Token(TokenFault::Inactive);
    assert!(ends.iter().all(|end| *end == due), "{ends:?}");
    let asked = setting.server.introspections();
    assert!(asked < 20, "{asked} questions about one token");
}

#[tokio::test]
async fn what_is_granted_anew_is_told_and_another_caller_ends_the_stream() {
    let setting = asking("renewed").await;
    let mut watch = watch(&setting, "opaque").await;
    let mut answer = active();
    answer["scope"] = json!("mcp more");
    setting.server.say("opaque", answer.clone());
    let more = async {
        loop {
            match watch.next().await {
                GrantNews::Renewed(grant) if grant.has("more") => return,
                GrantNews::Renewed(_) => {}
                GrantNews::Over(why) => panic!("{why}"),
            }
        }
    };
    timeout(SOON, more).await.unwrap();
    answer["sub"] = json!("mallory");
    setting.server.say("opaque", answer);
    assert_eq!(over(watch).await, AuthError::Invalid);
}

#[tokio::test]
async fn a_stream_outlives_an_issuer_that_is_away_for_a_moment() {
    let setting = asking("moment").await;
    let watching = tokio::spawn(watch(&setting, "opaque").await.over());
    setting.server.set_down(true);
    until(|| setting.server.introspections() > 1).await;
    setting.server.set_down(false);
    let asked = setting.server.introspections();
    until(|| setting.server.introspections() > asked + 1).await;
    assert!(!watching.is_finished());
    setting.server.set_down(true);
    let why = timeout(SOON, watching).await.unwrap().unwrap();
    assert!(matches!(why, AuthError::Unavailable { .. }), "{why}");
}

#[tokio::test]
async fn a_stream_ends_whose_tokens_key_is_withdrawn() {
    let setting = Setting::with(|auth| {
        auth.cached_for = Period::seconds(1);
        auth.keys_refresh = Period::seconds(1);
        auth.keys_interval = Period::seconds(1);
    })
    .await;
    let token = setting.key.token(&setting.claims());
    let watch = watch(&setting, &token).await;
    setting.server.publish(&[&SigningKey::es256("second")]);
    assert_eq!(over(watch).await, AuthError::Token(TokenFault::Key));
}

#[tokio::test]
async fn the_end_of_a_tokens_time_is_no_revocation() {
    let setting = Setting::with(|auth| auth.clock_skew = Period::seconds(0)).await;
    let mut claims = setting.claims();
    claims["exp"] = json!(shoal_auth::fixture::now() + 2);
    let token = setting.key.token(&claims);
    let [one, other] = [watch(&setting, &token).await, watch(&setting, &token).await];
    let revoked = tokio::spawn(one.revoked());
    assert_eq!(over(other).await, AuthError::Token(TokenFault::Expired));
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(!revoked.is_finished());
}
