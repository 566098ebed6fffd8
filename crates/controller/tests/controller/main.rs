//! Tests of the controller against an API server for tests.
#![expect(clippy::unwrap_used, reason = "a failed test is the report")]

mod api;
mod leader;
mod running;
mod tokens;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use shoal_ports::Period;
use shoal_ports::kubernetes::KubernetesSettings;

use api::Api;
use running::{Running, SERVICES, config, service, start, start_with, until};

const TOOLHIVE: &str = "apis/toolhive.stacklok.dev/v1beta1/namespaces/team-a/mcpservers";

#[tokio::test]
async fn servers_come_change_and_go() {
    let api = Api::start().await;
    api.put(SERVICES, service("weather", json!({})));
    let running = start(&api, "one");
    let first = "http://weather.team-a.svc:8080/mcp";
    until("the first pool", || {
        api.nodes_see(first) && api.workers_see(first)
    })
    .await;

    api.put(
        SERVICES,
        service("weather", json!({ "shoal.dev/path": "/v2" })),
    );
    until("the change", || {
        api.workers_see("weather.team-a.svc:8080/v2")
    })
    .await;
    api.put(SERVICES, service("news", json!({})));
    until("the second pool", || api.nodes_see("team-a_news")).await;
    api.delete(SERVICES, "weather");
    until("its end", || {
        !api.nodes_see("weather") && !api.workers_see("weather")
    })
    .await;
    assert!(api.nodes_see("team-a_news"));
    running.end().await;
}

#[tokio::test]
async fn many_objects_are_listed_in_small_pages() {
    let api = Api::start().await;
    for at in 0..120 {
        let plain = json!({ "metadata": { "name": format!("plain-{at}") }, "spec": { "selector": { "app": "x" } } });
        api.put(SERVICES, plain);
    }
    api.put(SERVICES, service("weather", json!({})));
    let running = start(&api, "one");
    until("the pool", || api.nodes_see("team-a_weather")).await;
    let sources = (running.report)().sources;
    assert_eq!(sources.iter().map(|it| it.objects).sum::<usize>(), 121);
    assert_eq!(api.longest_page(), 50);
    running.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_gets_no_answer_is_requested_again() {
    let api = Api::start().await;
    api.put(SERVICES, service("weather", json!({})));
    api.hold(SERVICES);
    let seldom = KubernetesSettings {
        tokens_every: Period::seconds(60),
        retry: Period::seconds(60),
        lease_duration: Period::seconds(300),
        ..config()
    };
    let running = start_with(&api, "one", seldom);
    let requested_again = async {
        while api.holds() < 2 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(1_200), requested_again).await;
    assert!(waited.is_ok(), "the first request is never given up");
    tokio::time::resume();
    api.hold("");
    until("the pool", || api.nodes_see("team-a_weather")).await;
    running.end().await;
}

#[tokio::test]
async fn a_kind_that_appears_is_found() {
    let api = Api::start().await;
    let running = start(&api, "one");
    until("the start", || api.nodes_see("shoal controller")).await;
    let missing = (running.report)()
        .sources
        .iter()
        .filter(|it| it.missing)
        .count();
    assert_eq!(missing, 2);

    api.put(SERVICES, json!({ "metadata": { "name": "mcp-fetch-proxy" }, "spec": { "selector": { "app": "x" } } }));
    api.install(TOOLHIVE);
    let object =
        |url: Option<&str>| json!({ "metadata": { "name": "fetch" }, "status": { "url": url } });
    api.put(TOOLHIVE, object(None));
    until("the object", || (running.report)().waiting == 1).await;
    assert!(!api.nodes_see("fetch"));
    api.put(
        TOOLHIVE,
        object(Some(
            "http://mcp-fetch-proxy.team-a.svc.cluster.local:8080/sse#fetch",
        )),
    );
    until("its pool", || {
        api.nodes_see("http://mcp-fetch-proxy.team-a.svc.cluster.local:8080/sse\"")
    })
    .await;
    running.end().await;
}

#[tokio::test]
async fn a_refusal_is_told_once_and_concerns_no_other() {
    let api = Api::start().await;
    api.put(
        SERVICES,
        service("bad", json!({ "shoal.dev/port": "nowhere" })),
    );
    api.put(SERVICES, service("good", json!({})));
    api.put(SERVICES, service("mine", json!({})));
    let running = start(&api, "one");
    running
        .taken
        .send_replace(BTreeSet::from(["team-a_mine".to_owned()]));
    until("the good one", || api.nodes_see("team-a_good")).await;
    until("the name that is taken", || !api.nodes_see("team-a_mine")).await;
    until("both events", || api.told().len() >= 2).await;
    api.put(SERVICES, service("later", json!({})));
    until("the later one", || api.nodes_see("team-a_later")).await;
    let told = || {
        let mut told = api.told();
        told.sort();
        told.into_iter().map(|[name, reason, _]| [name, reason])
    };
    let (bad, mine) = (["bad", "InvalidAnnotation"], ["mine", "NameTaken"]);
    assert!(told().eq([bad, mine]), "{:?}", api.told());
    api.put(
        SERVICES,
        service("bad", json!({ "shoal.dev/port": "elsewhere" })),
    );
    until("the next event", || api.told().len() >= 3).await;
    assert!(told().eq([bad, bad, mine]), "{:?}", api.told());
    assert!(api.told()[2][2].contains("elsewhere"), "{:?}", api.told());
    assert_eq!((running.report)().refused.len(), 2);
    running.end().await;
}

#[tokio::test]
async fn an_event_that_the_api_server_does_not_take_is_tried_once() {
    let api = Api::start().await;
    let nowhere = json!({ "shoal.dev/port": "nowhere" });
    api.put(SERVICES, service("bad", nowhere.clone()));
    api.put(SERVICES, service("good", json!({})));
    api.hold("apis/events.k8s.io/v1/namespaces/team-a/events");
    let running = start(&api, "one");
    until("the first event", || api.holds() > 0).await;
    api.put(SERVICES, service("later", json!({})));
    until("the later one", || api.nodes_see("team-a_later")).await;
    api.hold("");
    api.put(SERVICES, service("worse", nowhere));
    until("its event", || !api.told().is_empty()).await;
    let told: Vec<String> = api.told().into_iter().map(|[name, ..]| name).collect();
    assert_eq!(told, ["worse"]);
    running.end().await;
}

#[tokio::test]
async fn nothing_is_taken_away_because_nothing_can_be_read() {
    let api = Api::start().await;
    api.put(SERVICES, service("weather", json!({})));
    let running = start(&api, "one");
    until("the pool", || api.workers_see("team-a_weather")).await;
    api.fail_lists(true);
    let trouble = |it: &Running| (it.report)().sources.iter().any(|it| it.trouble.is_some());
    until("the trouble", || trouble(&running)).await;
    running.end().await;
    let other = start(&api, "two");
    until("the other", || (other.report)().leads && trouble(&other)).await;
    assert!(!(other.report)().listed);
    api.fail_lists(false);
    api.put(SERVICES, service("news", json!({})));
    until("the next pool", || api.nodes_see("team-a_news")).await;
    let written = api.written();
    let first = written
        .iter()
        .position(|pools| pools.contains("team-a_weather"))
        .unwrap();
    assert!(
        written[first..]
            .iter()
            .all(|pools| pools.contains("team-a_weather")),
        "{written:?}"
    );
    other.end().await;
}
