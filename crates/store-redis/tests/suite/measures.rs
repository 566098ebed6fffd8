use std::sync::OnceLock;

use shoal_ports::{Period, SessionId};
use shoal_telemetry::Guard;
use shoal_telemetry::config::Telemetry;
use shoal_telemetry::logging::Logging;
use shoal_telemetry::metrics::prometheus_text;

use crate::fixture::{begin, config_with, connect, eventually, node, session};
use crate::server::{IN_MEMORY, Server};

fn count() {
    static ON: OnceLock<Guard> = OnceLock::new();
    ON.get_or_init(|| shoal_telemetry::init(&Telemetry::default(), &Logging::default()).unwrap());
}

fn says(start: &str) -> bool {
    prometheus_text()
        .lines()
        .any(|line| line.starts_with(start) && !line.ends_with(" 0"))
}

#[track_caller]
fn has_ended(operation: &str, outcome: &str) {
    let name = "shoal_store_operation_duration_seconds_count";
    let series = format!(r#"{name}{{shoal_operation="{operation}",shoal_outcome="{outcome}"}}"#);
    assert!(says(&series), "no {series} in:\n{}", prometheus_text());
}

#[tokio::test]
async fn operations_are_measured_by_how_they_end() {
    count();
    let mut server = Server::on_socket(&IN_MEMORY).await;
    let quick = config_with(&server.url(), |redis| {
        redis.response_timeout = Period::millis(200);
    });
    let (redis, store) = connect(quick).await;
    let registrations = redis.observe();
    let (id, epoch) = session(&store).await;
    begin(&store, &id, epoch).await;
    has_ended("directory.create", "done");
    has_ended("journal.begin", "done");
    let nobodys = SessionId::random();
    assert!(store.directory.claim(&nobodys, &node("b")).await.is_err());
    has_ended("directory.claim", "not_found");
    assert!(store.directory.claim(&id, &node("b")).await.is_err());
    has_ended("directory.claim", "held");
    let (_, former) = (store.directory.claim(&id, &node("a")).await.unwrap(), epoch);
    assert!(store.directory.remove(&id, former).await.is_err());
    has_ended("directory.remove", "stale");
    assert!(says("shoal_store_connected 1"), "{}", prometheus_text());

    server.hang();
    assert!(store.directory.lookup(&id).await.is_err());
    has_ended("directory.lookup", "timeout");
    server.go_on();

    server.kill();
    eventually("that is noticed", || async {
        store.directory.lookup(&id).await.is_err() && redis.status().outage.is_some()
    })
    .await;
    has_ended("directory.lookup", "unavailable");
    server.start_again().await;
    eventually("it is back", || async {
        store.directory.lookup(&id).await.is_ok()
    })
    .await;
    assert!(
        says("shoal_store_reconnects_total"),
        "{}",
        prometheus_text()
    );
    drop(registrations);
}
