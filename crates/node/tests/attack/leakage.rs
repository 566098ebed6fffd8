//! Traces of a request in logs, spans, metrics and errors.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use nix::sys::signal::Signal;
use serde_json::json;
use shoal_auth::fixture::{AuthorizationServer, SigningKey};

use crate::harness::{Family, RESOURCE, Request, trusting};
use crate::process::Server;

/// Would break a log line and colour the rest, if the log did not escape it.
const FORGED: &str = "x\r\nFORGED \u{1b}[31m\u{202e}\u{2028}";
const SECRET: &str = "argument-that-is-secret";
/// A name that clients make up. It must not become a time series of a metric.
const MADE_UP: &str = "made-up-name";

pub(crate) async fn family() -> Family {
    let mut family = Family::new("logs and leaks");
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keeping = kept.clone();
    let collector = Router::new().fallback(async move |body: Bytes| {
        keeping.lock().unwrap().extend_from_slice(&body);
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, collector).await.unwrap() });

    let key = SigningKey::es256("first");
    let issuer = AuthorizationServer::start(&[&key]).await;
    let mut command = trusting(&issuer);
    command
        .env("SHOAL_TELEMETRY__ENDPOINT", &endpoint)
        .env("SHOAL_TELEMETRY__PROTOCOL", "http")
        .env("SHOAL_TELEMETRY__TRACES__RATIO", "1.0")
        .env("SHOAL_TELEMETRY__LOGS__OTLP", "true")
        .env("SHOAL_LOGGING__LEVEL", "debug,h2=info,hyper=info");
    let mut server = Server::of(command).await;
    let sound = issuer.claims(RESOURCE);
    let token = key.token(&sound);
    let mut forged = sound.clone();
    forged["client_id"] = json!(FORGED);
    let header = json!({ "alg": "ES256", "kid": FORGED });
    let (forged, unknown) = (key.token(&forged), key.sign(&header, &sound));
    let initialize = json!({
        "jsonrpc": "2.0", "id": FORGED, "method": "initialize", "params": {
            "protocolVersion": FORGED, "capabilities": {}, "clientInfo": { "name": FORGED, "version": FORGED },
        },
    });
    let method = json!({ "jsonrpc": "2.0", "id": 1, "method": FORGED, "params": {} });
    let echo = Request::call("echo", json!({ "text": SECRET }));
    let mut answers = String::new();
    for request in [
        echo.clone().bearer(&token),
        echo.clone().bearer(&forged),
        echo.clone().bearer(&unknown),
        echo.clone().bearer(&format!("{token}x")),
        echo.clone()
            .bearer(&token)
            .header("traceparent", FORGED.split('\r').next().unwrap()),
        echo.clone()
            .bearer(&token)
            .header("Origin", "http://\u{1b}[31mevil"),
        echo.clone().bearer(&token).header("Host", "evil\u{1b}[31m"),
        Request::post(&initialize.to_string()).bearer(&token),
        Request::post(&method.to_string()).bearer(&token),
        Request::call(MADE_UP, json!({ "text": SECRET })).bearer(&token),
        Request::modern(MADE_UP, json!({})).bearer(&token),
        Request::modern("resources/read", json!({ "uri": MADE_UP })).bearer(&token),
    ] {
        answers.push_str(&request.send(&server.mcp).await);
    }
    let mut pages = String::new();
    for page in ["metrics", "status", "readyz"] {
        let answer = reqwest::get(format!("{}/{page}", server.admin))
            .await
            .unwrap();
        pages.push_str(&answer.text().await.unwrap());
    }
    server.signal(Signal::SIGTERM);
    server.exit_code().await;
    let log = server.log();
    let spans = String::from_utf8_lossy(&kept.lock().unwrap()).into_owned();

    family.is(
        "a line of the log was forged",
        false,
        log.lines()
            .any(|line| line.trim_start().starts_with("FORGED")),
    );
    for (what, sign) in [
        ("an escape", '\u{1b}'),
        ("a carriage return", '\r'),
        ("a change of direction", '\u{202e}'),
        ("a line separator", '\u{2028}'),
    ] {
        family.is(format!("the log has {what}"), false, log.contains(sign));
    }
    let signature = token.rsplit_once('.').unwrap().1;
    let payload = token.split('.').nth(1).unwrap();
    for (place, text) in [
        ("the log", &log),
        ("the spans", &spans),
        ("the admin port", &pages),
        ("answers", &answers),
    ] {
        family.is(
            format!("a token is in {place}"),
            false,
            text.contains(signature) || text.contains(payload),
        );
    }
    for (place, text) in [
        ("the log", &log),
        ("the spans", &spans),
        ("the admin port", &pages),
    ] {
        family.is(
            format!("arguments are in {place}"),
            false,
            text.contains(SECRET),
        );
    }
    family.is("a made-up name is a series", false, pages.contains(MADE_UP));
    family.is(
        "none, as a control: there are spans",
        true,
        spans.contains("tools/call"),
    );
    family
}
