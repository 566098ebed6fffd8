//! Tests of the controller's metrics, in their own process because telemetry is set up once per
//! process.
#![expect(clippy::unwrap_used, reason = "a failed test is the report")]
#![allow(dead_code, reason = "the API server is shared with the other tests")]

#[path = "../controller/api.rs"]
mod api;
#[path = "../controller/running.rs"]
mod running;

use serde_json::json;
use shoal_telemetry::config::Telemetry;
use shoal_telemetry::logging::Logging;
use shoal_telemetry::metrics::prometheus_text;

use api::Api;
use running::{SERVICES, service, start, until};

fn shows(series: &str, value: &str) -> bool {
    let text = prometheus_text();
    let mut lines = text.lines();
    lines.any(|line| {
        let (name, read) = line.rsplit_once(' ').unwrap_or_default();
        let labels = series.split(' ').skip(1);
        let name_is = name.split('{').next() == series.split(' ').next();
        name_is && labels.clone().all(|label| name.contains(label)) && read == value
    })
}

#[tokio::test]
async fn the_work_of_a_controller_can_be_seen() {
    let _guard = shoal_telemetry::init(&Telemetry::default(), &Logging::default()).unwrap();
    let api = Api::start().await;
    api.put(SERVICES, service("weather", json!({})));
    let nowhere = json!({ "shoal.dev/port": "nowhere" });
    api.put(SERVICES, service("bad", nowhere));
    let own = "api/v1/namespaces/shoal/secrets/shoal-discovered";
    api.fail("PUT", own, 1, 409);
    let running = start(&api, "one");
    for (series, value) in [
        ("shoal_discovery_pools", "1"),
        (
            "shoal_discovery_refused shoal_reason=\"InvalidAnnotation\"",
            "1",
        ),
        ("shoal_discovery_leader", "1"),
        (
            "shoal_discovery_reconciles_total shoal_outcome=\"failed\"",
            "1",
        ),
        (
            "shoal_discovery_reconciles_total shoal_outcome=\"published\"",
            "1",
        ),
    ] {
        until(series, || shows(series, value)).await;
    }
    until("when", || {
        prometheus_text().contains("\nshoal_discovery_last_success_seconds")
    })
    .await;
    running.end().await;
    assert!(!shows("shoal_discovery_leader", "1"));
}
