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
const SECRETS: &str = "api/v1/namespaces/team-a/secrets";
/// "first" and "second" in base64.
const FIRST: &str = "Zmlyc3Q=";
const SECOND: &str = "c2Vjb25k";

/// A controller at work.
struct Running {
    report: Box<dyn Fn() -> Report + Send + Sync>,
    taken: watch::Sender<BTreeSet<String>>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

fn start(api: &Api, me: &str) -> Running {
    start_with(api, me, config())
}

fn config() -> KubernetesConfig {
    KubernetesConfig {
        namespaces: vec!["team-a".to_owned()],
        tokens: true,
        tokens_every: Period::millis(200),
        retry: Period::millis(100),
        lease_duration: Period::seconds(3),
        ..KubernetesConfig::default()
    }
}

fn start_with(api: &Api, me: &str, config: KubernetesConfig) -> Running {
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
    until("both events", || api.told().len() >= 2).await;
    // Another turn tells nothing new.
    api.put(SERVICES, service("later", json!({})));
    until("the later one", || api.nodes_see("team-a_later")).await;
    let told = || {
        let mut told = api.told();
        told.sort();
        told.into_iter().map(|[name, reason, _]| [name, reason])
    };
    let (bad, mine) = (["bad", "InvalidAnnotation"], ["mine", "NameTaken"]);
    assert!(told().eq([bad, mine]), "{:?}", api.told());
    // Another mistake of the same kind is told with its own text.
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

/// A Secret with a token in base64.
fn secret(value: &str, labels: serde_json::Value) -> serde_json::Value {
    json!({ "metadata": { "name": "weather", "labels": labels }, "data": { "token": value } })
}

/// A Service whose token is in that Secret.
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

    // What was read stays, and the other pools come.
    api.fail("GET", &format!("{SECRETS}/weather"), usize::MAX, 500);
    api.put(SERVICES, service("news", json!({})));
    until("the next pool", || api.workers_see("team-a_news")).await;
    assert_eq!(api.token("team-a_weather"), "Authorization: Bearer first\n");
    running.end().await;
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
    let config = KubernetesConfig {
        tokens: false,
        ..config()
    };
    let running = start_with(&api, "one", config);
    until("the event", || !api.told().is_empty()).await;
    assert_eq!(api.told()[0][1], "TokenUnavailable");
    assert!(api.workers_see("team-a_news") && !api.workers_see("team-a_weather"));
    assert!(!api.has_failed(), "the Secret was read");
    running.end().await;
}

#[tokio::test]
async fn a_write_that_conflicts_is_repeated() {
    let api = Api::start().await;
    api.put(SERVICES, service("weather", json!({})));
    let own = "api/v1/namespaces/shoal/secrets/shoal-discovered";
    api.fail("PUT", own, 1, 409);
    let config = KubernetesConfig {
        tokens_every: Period::seconds(3_600),
        ..config()
    };
    let running = start_with(&api, "one", config);
    until("the pool", || api.workers_see("team-a_weather")).await;
    assert!(api.has_failed());
    until("the end of the trouble", || {
        (running.report)().trouble.is_none()
    })
    .await;
    running.end().await;
}

#[tokio::test]
async fn a_turn_ends_with_the_leadership() {
    const OWN: &str = "api/v1/namespaces/shoal/configmaps";
    const LEASES: &str = "apis/coordination.k8s.io/v1/namespaces/shoal/leases";
    let api = Api::start().await;
    api.put(SERVICES, service("weather", json!({})));
    let lease = Duration::from_secs(2);
    let config = KubernetesConfig {
        lease_duration: lease.into(),
        ..config()
    };
    let running = start_with(&api, "one", config);
    until("the pool", || api.workers_see("team-a_weather")).await;
    api.hold(&format!("{OWN}/shoal-discovered"));
    api.put(SERVICES, service("news", json!({})));
    until("its turn", || api.holds() > 0).await;

    // Another controller takes over once the Lease has ended, and publishes. What the first one waits for comes after that.
    let spec = json!({ "holderIdentity": "two", "leaseDurationSeconds": 3600, "renewTime": "2026-01-01T00:00:00.000000Z" });
    api.put(
        LEASES,
        json!({ "metadata": { "name": "shoal-controller" }, "spec": spec }),
    );
    tokio::time::sleep(lease).await;
    let newer =
        json!({ "metadata": { "name": "shoal-discovered" }, "data": { "pools.toml": "newer" } });
    api.put(OWN, newer);
    api.hold("");
    until("what the first one knows", || {
        (running.report)().leader.as_deref() == Some("two")
    })
    .await;
    assert!(!(running.report)().leads);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(api.nodes_see("newer"), "{:?}", api.written());
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
