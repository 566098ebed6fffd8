use std::sync::Arc;

use reqwest::Method;
use serde_json::json;
use shoal_auth::{StaticTokens, TokenHash};
use shoal_ports::Principal;

use crate::page::{Series, alone};
use crate::server::{Server, rpc};

const DURATION: &str = "http_server_request_duration_seconds_count";
const REFUSED: &str = "shoal_http_refused_total";
const IO: &str = "shoal_http_io_bytes_total";
const AUTH: &str = "shoal_auth_attempts_total";

fn requests(method: &str, route: &str, status: &str) -> Series {
    let labels = [
        ("http_request_method", method),
        ("http_route", route),
        ("http_response_status_code", status),
        ("network_protocol_version", "1.1"),
        ("url_scheme", "http"),
    ];
    Series::of(DURATION, &labels)
}

#[tokio::test]
async fn requests_are_counted_by_route_and_status() {
    let _turn = alone().await;
    let server = Server::start().await;
    let good = requests("POST", "/mcp", "200");
    let bad = requests("POST", "/mcp", "400");
    let ended = requests("DELETE", "/mcp", "204");
    let lost = requests("GET", "_OTHER", "404");
    let malformed = Series::of(REFUSED, &[("shoal_reason", "malformed")]);
    let elsewhere = Series::of(REFUSED, &[("shoal_reason", "not_served")]);

    let ping = server.legacy(&rpc("ping", &json!({})));
    assert_eq!(ping.send().await.unwrap().status(), 200);
    let broken = server.post("{").header("mcp-session-id", "live");
    assert_eq!(broken.send().await.unwrap().status(), 400);
    let close = server
        .request(Method::DELETE, "/mcp")
        .header("mcp-session-id", "live");
    assert_eq!(close.send().await.unwrap().status(), 204);
    let path = "/what/a/client/makes/up";
    let unknown = server.request(Method::GET, path).send().await.unwrap();
    assert_eq!(unknown.status(), 404);

    for series in [good, bad, ended, lost, malformed, elsewhere] {
        series.reaches(1.0).await;
    }
    let text = shoal_telemetry::metrics::prometheus_text();
    assert!(!text.contains(path), "{text}");
}

#[tokio::test]
async fn bytes_are_counted_each_way() {
    let _turn = alone().await;
    let server = Server::start().await;
    let kind = ("shoal_kind", "plain");
    let into = Series::of(IO, &[("shoal_direction", "in"), kind]);
    let out = Series::of(IO, &[("shoal_direction", "out"), kind]);
    let body = rpc("ping", &json!({}));
    let answer = server.legacy(&body).send().await.unwrap();
    let answer = answer.bytes().await.unwrap();
    for (series, bytes) in [(into, body.to_string().len()), (out, answer.len())] {
        series
            .reaches(f64::from(u32::try_from(bytes).unwrap()))
            .await;
    }
}

#[tokio::test]
async fn callers_are_counted_by_what_they_brought() {
    let _turn = alone().await;
    let token = (TokenHash::of("open sesame"), Principal::new("alice"));
    let tokens = Arc::new(StaticTokens::new([token]));
    let guarded = Server::with_authenticator(tokens, |_| {}).await;
    let outcome = |method, outcome| {
        let labels = [("shoal_auth_method", method), ("shoal_outcome", outcome)];
        Series::of(AUTH, &labels)
    };
    let missing = outcome("bearer", "missing");
    let invalid = outcome("bearer", "invalid");
    let accepted = outcome("bearer", "accepted");
    let anonymous = outcome("anonymous", "accepted");
    let refused = Series::of(REFUSED, &[("shoal_reason", "unauthenticated")]);

    let ping = || guarded.legacy(&rpc("ping", &json!({})));
    assert_eq!(ping().send().await.unwrap().status(), 401);
    let wrong = ping().bearer_auth("open barley");
    assert_eq!(wrong.send().await.unwrap().status(), 401);
    let right = ping().bearer_auth("open sesame");
    assert_eq!(right.send().await.unwrap().status(), 200);
    let open = Server::start().await;
    let ping = open.legacy(&rpc("ping", &json!({})));
    assert_eq!(ping.send().await.unwrap().status(), 200);

    for series in [missing, invalid, accepted, anonymous] {
        series.reaches(1.0).await;
    }
    refused.reaches(2.0).await;
}
