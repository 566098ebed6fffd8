//! A controller against an API server that lists, watches and stores as Kubernetes does.
#![expect(clippy::unwrap_used, reason = "a failed test is the report")]

mod api;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use shoal_controller::{Check, Controller, KubernetesConfig, Report};
use shoal_outbound::OutboundConfig;
use shoal_ports::Period;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use api::Api;

const TOOLHIVE: &str = "apis/toolhive.stacklok.dev/v1beta1/namespaces/team-a/mcpservers";
const SERVICES: &str = "api/v1/namespaces/team-a/services";

/// A controller at work.
struct Running {
    report: Box<dyn Fn() -> Report + Send + Sync>,
    taken: watch::Sender<BTreeSet<String>>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

fn start(api: &Api, me: &str) -> Running {
    let config = KubernetesConfig {
        namespaces: vec!["team-a".to_owned()],
        tokens: true,
        tokens_every: Period::millis(200),
        retry: Period::millis(100),
        lease_duration: Period::seconds(3),
        ..KubernetesConfig::default()
    };
    let check: Check = Arc::new(|_, _| Ok(()));
    let outbound = OutboundConfig::default();
    let controller = Controller::new(api.cluster(), config, outbound, check, me).unwrap();
    let report = Box::new(controller.reporter());
    let (taken, names) = watch::channel(BTreeSet::new());
    let stop = CancellationToken::new();
    let task = tokio::spawn(controller.run(names, stop.clone()));
    Running {
        report,
        taken,
        stop,
        task,
    }
}

impl Running {
    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

/// Waits until something is so. The time is there to end a test that fails.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), wait).await;
    waited.unwrap_or_else(|_| panic!("never: {what}"));
}

fn service(name: &str, annotations: serde_json::Value) -> serde_json::Value {
    json!({
        "metadata": { "name": name, "labels": { "shoal.dev/server": "true" }, "annotations": annotations },
        "spec": { "selector": { "app": name }, "ports": [{ "port": 8080 }] },
    })
}

#[tokio::test]
async fn servers_come_change_and_go() {
    let api = Api::start().await;
    api.put(SERVICES, service("weather", json!({})));
    let running = start(&api, "one");
    until("the first pool", || api.nodes_see("team-a_weather")).await;
    assert!(api.nodes_see("http://weather.team-a.svc:8080/mcp"));
    assert!(api.workers_see("http://weather.team-a.svc:8080/mcp"));

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
    until("both events", || api.events().len() >= 2).await;
    // Another turn tells nothing new.
    api.put(SERVICES, service("later", json!({})));
    until("the later one", || api.nodes_see("team-a_later")).await;
    let mut events = api.events();
    events.sort();
    let of = |name: &str, reason: &str| (name.to_owned(), reason.to_owned());
    assert_eq!(
        events,
        [of("bad", "InvalidAnnotation"), of("mine", "NameTaken")]
    );
    assert_eq!((running.report)().refused.len(), 2);
    running.end().await;
}

#[tokio::test]
async fn a_token_reaches_workers_and_follows_its_secret() {
    const SECRETS: &str = "api/v1/namespaces/team-a/secrets";
    let api = Api::start().await;
    let said = json!({ "shoal.dev/token-secret": "weather/token" });
    // "first" and "second" in base64.
    let secret = |value: &str, labels: serde_json::Value| json!({ "metadata": { "name": "weather", "labels": labels }, "data": { "token": value } });
    let marked = json!({ "shoal.dev/token": "true" });
    api.put(SECRETS, secret("Zmlyc3Q=", json!({})));
    api.put(SERVICES, service("weather", said));
    let running = start(&api, "one");
    until("the refusal of a Secret without the label", || {
        !api.events().is_empty()
    })
    .await;
    assert!(!api.workers_see("weather"));
    api.put(SECRETS, secret("Zmlyc3Q=", marked.clone()));
    until("the token", || {
        api.token("team-a_weather") == "Authorization: Bearer first\n"
    })
    .await;
    assert!(!api.nodes_see("first"));
    api.put(SECRETS, secret("c2Vjb25k", marked));
    until("the next token", || {
        api.token("team-a_weather") == "Authorization: Bearer second\n"
    })
    .await;
    running.end().await;
}

#[tokio::test]
async fn one_of_two_controllers_writes_and_the_other_follows() {
    let api = Api::start().await;
    api.put(SERVICES, service("weather", json!({})));
    let first = start(&api, "one");
    until("the first", || (first.report)().leads).await;
    let second = start(&api, "two");
    until("what the second knows", || {
        (second.report)().leader.as_deref() == Some("one")
    })
    .await;
    assert!(!(second.report)().leads);
    first.end().await;
    until("the second", || (second.report)().leads).await;
    api.put(SERVICES, service("news", json!({})));
    until("what it writes", || api.nodes_see("team-a_news")).await;

    // A controller that has died does not give its Lease up, so the Lease expires.
    second.task.abort();
    let third = start(&api, "three");
    until("the third", || (third.report)().leads).await;
    third.end().await;
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
    // A controller that starts now leads, and waits until it has read all objects.
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
