use std::sync::Arc;

use reqwest::Method;
use serde_json::json;
use shoal_auth::{StaticTokens, TokenHash};
use shoal_ports::Principal;

use crate::gateway::event;
use crate::page::{Series, alone};
use crate::server::Server;
use crate::sse::Events;

const OPEN: &str = "shoal_stream_open";
const ACTIVE: &str = "http_server_active_requests";

#[tokio::test]
async fn they_are_counted_by_kind_while_they_are_open() {
    let _turn = alone().await;
    let open = |kind| Series::level(OPEN, &[("shoal_kind", kind)]);
    let kinds = [open("call"), open("session"), open("subscription")];
    let active = Series::level(ACTIVE, &[]);
    let server = Server::start().await;

    let call = Events::of(server.tool("played").send().await.unwrap());
    let listen = Events::of(server.listen().send().await.unwrap());
    let sse = server
        .request(Method::GET, "/sse")
        .header("accept", "text/event-stream");
    let sse = Events::of(sse.send().await.unwrap());
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let subscription = server.modern("subscriptions/listen", wanted);
    let subscription = Events::of(subscription.send().await.unwrap());
    for (series, count) in kinds.iter().zip([1.0, 2.0, 1.0]) {
        series.reaches(count).await;
    }
    active.reaches(4.0).await;

    drop((call, listen, sse, subscription));
    for series in kinds.iter().chain([&active]) {
        series.reaches(0.0).await;
    }
}

#[tokio::test]
async fn their_events_and_bytes_are_counted() {
    let _turn = alone().await;
    let server = Server::start().await;
    let events = Series::of("shoal_http_events_total", &[]);
    let labels = [("shoal_direction", "out"), ("shoal_kind", "sse")];
    let bytes = Series::of("shoal_http_io_bytes_total", &labels);
    let mut listening = Events::of(server.listen().send().await.unwrap());
    let feed = server.gateway.stream().await;
    for sequence in 1..=3 {
        feed.send(event(sequence, "{}")).await.unwrap();
    }
    let mut read = 0;
    for _ in 0..3 {
        read += listening.block().await.unwrap().len() + "\n\n".len();
    }
    events.reaches(3.0).await;
    bytes.reaches(f64::from(u32::try_from(read).unwrap())).await;
    let retry = std::time::Duration::from_secs(1);
    feed.send(shoal_ports::StreamItem::Retry(retry))
        .await
        .unwrap();
    assert!(listening.block().await.unwrap().starts_with("retry: "));
    assert_eq!(listening.block().await, None);
    events.reaches(3.0).await;
}

#[tokio::test]
async fn a_principal_that_has_enough_of_them_is_counted() {
    let _turn = alone().await;
    let token = (TokenHash::of("open sesame"), Principal::new("alice"));
    let tokens = Arc::new(StaticTokens::new([token]));
    let server = Server::with_authenticator(tokens, |config| {
        config.limits.streams_per_principal = 1;
    })
    .await;
    let checks = |outcome| {
        let labels = [
            ("shoal_quota", "streams_per_principal"),
            ("shoal_outcome", outcome),
        ];
        Series::of("shoal_quota_checks_total", &labels)
    };
    let (allowed, refused) = (checks("allowed"), checks("refused"));
    let reason = Series::of("shoal_http_refused_total", &[("shoal_reason", "quota")]);
    let listen = || server.listen().bearer_auth("open sesame").send();
    let first = Events::of(listen().await.unwrap());
    assert!(!listen().await.unwrap().status().is_success());
    drop(first);
    for series in [allowed, refused, reason] {
        series.reaches(1.0).await;
    }
}
