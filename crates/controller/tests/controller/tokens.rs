use serde_json::json;
use shoal_ports::kubernetes::KubernetesSettings;

use crate::api::Api;
use crate::running::{SERVICES, config, service, start, start_with, until};

const SECRETS: &str = "api/v1/namespaces/team-a/secrets";
/// "first" and "second" in base64.
const FIRST: &str = "Zmlyc3Q=";
const SECOND: &str = "c2Vjb25k";

fn secret(value: &str, labels: serde_json::Value) -> serde_json::Value {
    json!({ "metadata": { "name": "weather", "labels": labels }, "data": { "token": value } })
}

fn service_with_token() -> serde_json::Value {
    service(
        "weather",
        json!({ "shoal.dev/token-secret": "weather/token" }),
    )
}

#[tokio::test]
async fn a_token_reaches_workers_and_follows_its_secret() {
    let api = Api::start().await;
    let marked = json!({ "shoal.dev/token": "true" });
    api.put(SECRETS, secret(FIRST, json!({})));
    api.put(SERVICES, service_with_token());
    let running = start(&api, "one");
    until("the refusal of a Secret without the label", || {
        !api.told().is_empty()
    })
    .await;
    assert!(!api.workers_see("weather"));
    api.put(SECRETS, secret(FIRST, marked.clone()));
    until("the token", || {
        api.token("team-a_weather") == "Authorization: Bearer first\n"
    })
    .await;
    assert!(!api.nodes_see("first"));
    api.put(SECRETS, secret(SECOND, marked));
    until("the next token", || {
        api.token("team-a_weather") == "Authorization: Bearer second\n"
    })
    .await;
    running.end().await;
}

#[tokio::test]
async fn a_secret_that_cannot_be_read_at_first_holds_up_the_turn_and_refuses_nothing() {
    let api = Api::start().await;
    api.put(SECRETS, secret(FIRST, json!({ "shoal.dev/token": "true" })));
    api.put(SERVICES, service_with_token());
    api.fail("GET", &format!("{SECRETS}/weather"), 2, 500);
    let running = start(&api, "one");
    until("the pool", || api.workers_see("team-a_weather")).await;
    assert!(api.has_failed());
    assert_eq!(api.told(), Vec::<[String; 3]>::new());

    api.fail("GET", &format!("{SECRETS}/weather"), usize::MAX, 500);
    api.put(SERVICES, service("news", json!({})));
    until("the next pool", || api.workers_see("team-a_news")).await;
    assert_eq!(api.token("team-a_weather"), "Authorization: Bearer first\n");
    running.end().await;
}

#[tokio::test]
async fn a_secret_that_cannot_be_read_again_and_again_refuses_its_own_pool_alone() {
    let api = Api::start().await;
    api.put(SECRETS, secret(FIRST, json!({ "shoal.dev/token": "true" })));
    api.put(SERVICES, service_with_token());
    api.put(SERVICES, service("news", json!({})));
    api.fail("GET", &format!("{SECRETS}/weather"), usize::MAX, 500);
    let running = start(&api, "one");
    until("the other pool", || api.workers_see("team-a_news")).await;
    until("the event", || !api.told().is_empty()).await;
    assert_eq!(api.told()[0][..2], ["weather", "TokenUnavailable"]);
    assert!(!api.nodes_see("team-a_weather"));
    api.fail("GET", &format!("{SECRETS}/weather"), 0, 500);
    until("its own pool", || api.workers_see("team-a_weather")).await;
    assert_eq!(api.token("team-a_weather"), "Authorization: Bearer first\n");
    running.end().await;
}

#[tokio::test]
async fn a_leader_that_can_read_no_secret_leaves_the_pools_as_they_are() {
    let own = "api/v1/namespaces/shoal/secrets/shoal-discovered";
    let weather = format!("{SECRETS}/weather");
    let api = Api::start().await;
    api.put(SECRETS, secret(FIRST, json!({ "shoal.dev/token": "true" })));
    api.put(SERVICES, service_with_token());
    let first = start(&api, "one");
    until("the pool", || api.workers_see("team-a_weather")).await;
    first.end().await;
    let before = api.written().len();

    api.fail("GET", own, usize::MAX, 500);
    api.fail("GET", &weather, 10, 500);
    api.put(SERVICES, service("news", json!({})));
    let second = start(&api, "two");
    until("ten attempts", || !api.fails("GET", &weather)).await;
    api.fail("GET", own, 0, 500);
    until("the next pool", || api.workers_see("team-a_news")).await;
    let written = &api.written()[before..];
    assert!(
        written.iter().all(|pools| pools.contains("team-a_weather")),
        "{written:?}"
    );
    assert_eq!(api.token("team-a_weather"), "Authorization: Bearer first\n");
    assert_eq!(api.told(), Vec::<[String; 3]>::new());
    second.end().await;
}

#[tokio::test]
async fn a_controller_that_lacks_its_own_secret_still_refuses_an_unreadable_one() {
    let own = "api/v1/namespaces/shoal/secrets/shoal-discovered";
    for (code, why) in [
        (404, "secret/shoal-discovered does not exist"),
        (403, "does not let the controller get or update"),
    ] {
        let api = Api::start().await;
        api.put(SECRETS, secret(FIRST, json!({ "shoal.dev/token": "true" })));
        api.put(SERVICES, service_with_token());
        api.put(SERVICES, service("news", json!({})));
        api.fail("GET", own, usize::MAX, code);
        api.fail("GET", &format!("{SECRETS}/weather"), usize::MAX, 500);
        let running = start(&api, "one");
        until("the other pool", || api.nodes_see("team-a_news")).await;
        until("the event", || !api.told().is_empty()).await;
        assert_eq!(api.told()[0][..2], ["weather", "TokenUnavailable"]);
        assert!(!api.nodes_see("team-a_weather"));
        until("why", || {
            let trouble = (running.report)().trouble;
            trouble.is_some_and(|trouble| trouble.contains(why))
        })
        .await;
        api.fail("GET", own, 0, code);
        until("the Secret", || api.workers_see("team-a_news")).await;
        running.end().await;
    }
}

#[tokio::test]
async fn a_token_that_may_be_read_no_more_is_taken_away() {
    let api = Api::start().await;
    api.put(SECRETS, secret(FIRST, json!({ "shoal.dev/token": "true" })));
    api.put(SERVICES, service_with_token());
    api.put(SERVICES, service("news", json!({})));
    let running = start(&api, "one");
    until("the pool", || api.workers_see("team-a_weather")).await;
    api.fail("GET", &format!("{SECRETS}/weather"), usize::MAX, 403);
    until("its end", || !api.workers_see("team-a_weather")).await;
    assert!(api.workers_see("team-a_news"));
    assert_eq!(api.token("team-a_weather"), "");
    until("the event", || !api.told().is_empty()).await;
    assert_eq!(api.told()[0][1], "TokenUnavailable");
    running.end().await;
}

#[tokio::test]
async fn a_controller_without_the_right_reads_no_secret() {
    let api = Api::start().await;
    api.put(SECRETS, secret(FIRST, json!({ "shoal.dev/token": "true" })));
    api.put(SERVICES, service_with_token());
    api.put(SERVICES, service("news", json!({})));
    api.fail("GET", &format!("{SECRETS}/weather"), 1, 403);
    let config = KubernetesSettings {
        tokens: false,
        ..config()
    };
    let running = start_with(&api, "one", config);
    until("the event", || !api.told().is_empty()).await;
    assert_eq!(api.told()[0][1], "TokenUnavailable");
    until("the other pool", || api.workers_see("team-a_news")).await;
    assert!(!api.workers_see("team-a_weather"));
    assert!(!api.has_failed(), "the Secret was read");
    running.end().await;
}
