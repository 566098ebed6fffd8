use std::time::Duration;

use serde_json::json;
use shoal_ports::Period;
use shoal_ports::kubernetes::KubernetesSettings;

use crate::api::Api;
use crate::running::{SERVICES, config, service, start, start_with, until};

const LEASES: &str = "apis/coordination.k8s.io/v1/namespaces/shoal/leases";

#[tokio::test]
async fn a_write_that_conflicts_is_repeated() {
    let api = Api::start().await;
    api.put(SERVICES, service("weather", json!({})));
    let own = "api/v1/namespaces/shoal/secrets/shoal-discovered";
    api.fail("PUT", own, 1, 409);
    let config = KubernetesSettings {
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
    let api = Api::start().await;
    api.put(SERVICES, service("weather", json!({})));
    let lease = Duration::from_secs(2);
    let config = KubernetesSettings {
        lease_duration: lease.into(),
        ..config()
    };
    let running = start_with(&api, "one", config);
    until("the pool", || api.workers_see("team-a_weather")).await;
    api.hold(&format!("{OWN}/shoal-discovered"));
    api.put(SERVICES, service("news", json!({})));
    until("its turn", || api.holds() > 0).await;

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
async fn a_turn_that_takes_longer_than_the_lease_does_not_lose_it() {
    const OWN: &str = "api/v1/namespaces/shoal/configmaps";
    let api = Api::start().await;
    api.put(SERVICES, service("weather", json!({})));
    let config = KubernetesSettings {
        lease_duration: Period::seconds(1),
        ..config()
    };
    let running = start_with(&api, "one", config);
    until("the pool", || api.workers_see("team-a_weather")).await;
    api.hold(&format!("{OWN}/shoal-discovered"));
    api.put(SERVICES, service("news", json!({})));
    until("its turn", || api.holds() > 0).await;
    for _ in 0..6 {
        let before = api.lease_renewed();
        until("a renewal", || api.lease_renewed() != before).await;
    }
    assert_eq!(api.holds(), 1, "the same turn goes on");
    api.hold("");
    until("what it wrote", || api.nodes_see("team-a_news")).await;
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

    second.task.abort();
    let third = start(&api, "three");
    until("the third", || (third.report)().leads).await;
    third.end().await;
}

#[tokio::test]
async fn the_first_controller_makes_the_lease() {
    let api = Api::start().await;
    api.put(SERVICES, service("weather", json!({})));
    api.fail("POST", LEASES, 1, 409);
    let running = start(&api, "one");
    until("the pool", || api.workers_see("team-a_weather")).await;
    assert!(api.has_failed());
    assert!((running.report)().leads);
    assert_eq!(
        api.owner_of_the_lease().as_deref(),
        Some("api/v1/namespaces/shoal/configmaps/shoal-discovered")
    );
    running.end().await;
    let next = start(&api, "two");
    until("the next one", || (next.report)().leads).await;
    api.delete(LEASES, "shoal-controller");
    until("the next Lease", || api.holder().as_deref() == Some("two")).await;
    next.end().await;
}

#[tokio::test]
async fn an_election_that_fails_is_told() {
    let api = Api::start().await;
    api.put(SERVICES, service("weather", json!({})));
    api.fail("POST", LEASES, usize::MAX, 403);
    let running = start(&api, "one");
    until("why", || (running.report)().election.is_some()).await;
    let report = (running.report)();
    let why = report.election.unwrap();
    assert!(
        why.contains("shoal-controller") && why.contains("Failed"),
        "{why}"
    );
    assert!(!report.leads && report.last_success.is_none());
    api.fail("POST", LEASES, 0, 403);
    until("the pool", || api.workers_see("team-a_weather")).await;
    assert_eq!((running.report)().election, None);
    until("when", || (running.report)().last_success.is_some()).await;
    running.end().await;
}
