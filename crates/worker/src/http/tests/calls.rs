use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use shoal_ports::{CallFailure, CallOutcome, Repeat, Secret};
use shoal_protocol::{Method, code};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::harness::{Client, TestBackend, error, failure, text};
use super::server::{Server, started};
use crate::{EraChoice, HttpConfig, HttpIsolation};

#[tokio::test]
async fn every_kind_of_server_is_called() {
    for flags in [
        &["--era", "legacy"][..],
        &["--era", "legacy", "--json"],
        &["--era", "legacy", "--stateless"],
        &["--era", "legacy", "--no-get"],
        &["--era", "modern"],
    ] {
        let server = Server::start(flags).await;
        let running = server.backend().await;
        let catalog = running.catalog_where(|_| true).await;
        assert!(
            catalog
                .tools
                .iter()
                .any(|tool| tool.as_str().contains("echo")),
            "{flags:?}"
        );
        for client in [Client::named("legacy"), Client::modern("modern", "{}")] {
            let outcome = running
                .call(&client, "echo", json!({ "text": "hello" }))
                .await;
            assert_eq!(text(&outcome), "hello", "{flags:?}");
            let outcome = running
                .call(&client, "progress", json!({ "steps": 3 }))
                .await;
            assert_eq!(text(&outcome), "done", "{flags:?}");
        }
        let unknown = running
            .call(&Client::named("other"), "echo", json!({ "text": "é\n" }))
            .await;
        assert_eq!(text(&unknown), "é\n");
        running.0.shutdown().await;
    }
}

#[tokio::test]
async fn the_era_can_be_chosen() {
    let server = Server::start(&["--era", "modern"]).await;
    let mut config = server.config();
    config.era = EraChoice::Legacy;
    let backend = started(config);
    let running = TestBackend(Arc::new(backend));
    let state = running.state_where(|state| {
        state
            .detail
            .as_ref()
            .is_some_and(|detail| detail.contains("handshake"))
    });
    assert!(state.await.catalog.is_none());
}

#[tokio::test]
async fn what_a_call_says_reaches_its_client_only() {
    let server = Server::start(&[]).await;
    let running = server.backend().await;
    let clients: Vec<Client> = (0..5)
        .map(|at| {
            let mut client = Client::named(&format!("user{at}"));
            client.progress_token = Some(shoal_protocol::RawJson::from_static("\"mine\""));
            client
        })
        .collect();
    let calls = clients
        .iter()
        .enumerate()
        .map(|(at, client)| running.call(client, "progress", json!({ "steps": at + 1 })));
    for outcome in futures::future::join_all(calls).await {
        assert_eq!(text(&outcome), "done");
    }
    for (at, client) in clients.iter().enumerate() {
        let notes = client.notes(&Method::Progress);
        assert_eq!(notes.len(), at + 1);
        assert!(notes.iter().all(|note| note["progressToken"] == "mine"));
        assert_eq!(client.notes(&Method::LogMessage).len(), 1);
    }
}

#[tokio::test]
async fn an_answer_counts_only_where_it_belongs() {
    let clients = |modern: bool| {
        ["alice", "bob"].map(|name| {
            let mut client = match modern {
                true => Client::modern(name, "{}").of(name),
                false => Client::named(name).of("one"),
            };
            client.progress_token = Some(shoal_protocol::RawJson::of(&json!(name)));
            client
        })
    };
    for era in ["legacy", "modern"] {
        let server = Server::start(&["--era", era]).await;
        let mut config = server.config();
        config.isolation = HttpIsolation::Principal;
        let running = server.backend_of(config).await;
        let [alice, bob] = clients(era == "modern");
        let mixed = async |client: &Client| {
            let outcome = running.call(client, "mixed", json!({})).await;
            assert_eq!(text(&outcome), "own");
            assert!(client.notes(&Method::Progress).is_empty());
        };
        tokio::join!(mixed(&alice), mixed(&bob));
    }
}

#[tokio::test]
async fn an_error_of_the_request_itself_is_its_answer_whatever_the_status() {
    let server = Server::start(&[]).await;
    let running = server.backend().await;
    let client = Client::named("a");
    let outcome = running.call(&client, "missing", json!({})).await;
    assert_eq!(error(outcome).message, "no such file");
    let seen = server.seen().await;
    assert_eq!(
        (&seen["runs"]["missing"], &seen["opened"]),
        (&json!(1), &json!(2))
    );
}

#[tokio::test]
async fn refusals_are_told_apart() {
    let server = Server::start(&[]).await;
    let running = server.backend().await;
    let client = Client::named("a");
    let status = async |status: u16, later: bool| {
        running
            .call(
                &client,
                "status",
                json!({ "status": status, "later": later }),
            )
            .await
    };
    assert!(
        error(status(401, false).await)
            .message
            .contains("credentials")
    );
    assert!(error(status(403, false).await).message.contains("403"));
    assert!(
        error(status(302, false).await)
            .message
            .contains("redirect that names no URL")
    );
    for answered in [429, 503] {
        // The server's claim that nothing ran may be wrong, so only a repeatable call may run
        // elsewhere.
        let declined = error(status(answered, true).await);
        assert_eq!(declined.code, code::OVERLOADED);
        assert!(declined.message.contains("in 7 s"), "{declined:?}");
        let mut call = client.call(json!({
            "name": "status",
            "arguments": { "status": answered, "later": true },
        }));
        call.repeat = Repeat::Safe;
        let failed = failure(running.run(&client, &call).await);
        let CallFailure::Overloaded { retry_after, .. } = failed else {
            panic!("{failed:?}");
        };
        assert_eq!(retry_after, Duration::from_secs(7));
    }
    for answered in [500, 502, 503] {
        let failed = failure(status(answered, false).await);
        assert!(
            matches!(failed, CallFailure::OutcomeUnknown { .. }),
            "{failed:?}"
        );
    }
    let failed = failure(running.call(&client, "dies", json!({})).await);
    assert!(
        matches!(failed, CallFailure::OutcomeUnknown { .. }),
        "{failed:?}"
    );
    assert_eq!(server.seen().await["runs"]["dies"], 1);
}

#[tokio::test]
async fn a_status_that_may_follow_a_run_is_no_proof_that_nothing_ran() {
    for flags in [
        &["--era", "legacy"][..],
        &["--era", "legacy", "--stateless"],
        &["--era", "modern"],
    ] {
        let server = Server::start(flags).await;
        let running = server.backend().await;
        let client = Client::named("a");
        for (at, status) in [404, 408, 500].into_iter().enumerate() {
            let arguments = json!({ "status": status });
            let failed = failure(running.call(&client, "status", arguments).await);
            assert!(
                matches!(failed, CallFailure::OutcomeUnknown { .. }),
                "{flags:?} {status}: {failed:?}"
            );
            let runs = &server.seen().await["runs"]["status"];
            assert_eq!(*runs, at + 1, "{flags:?} {status}");
        }
    }
}

#[tokio::test]
async fn arguments_and_the_operators_headers_travel_as_headers() {
    let server = Server::start(&["--era", "modern"]).await;
    let mut config = server.config();
    config
        .headers
        .insert("Authorization".into(), Secret::new("Bearer x"));
    let running = server.backend_of(config).await;
    let client = Client::named("a");
    let outcome = running
        .call(&client, "mirrored", json!({ "region": "eu" }))
        .await;
    assert_eq!(text(&outcome), "eu");
    let headers = &server.seen().await["headers"]["tools/call"];
    assert_eq!(headers["authorization"], "Bearer x");
    assert_eq!(headers["accept-encoding"], "identity");
    assert_eq!(headers["mcp-protocol-version"], "2026-07-28");
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_at_the_server() {
    // The second client has no session with Shoal, but supports elicitation. Its call therefore
    // gets its own server session, which Shoal ends with the call.
    let clients = [
        Client::named("a"),
        Client::modern("b", r#"{"elicitation":{}}"#),
    ];
    for client in clients {
        let server = Server::start(&[]).await;
        let running = server.backend().await;
        let call = running.spawn(&client, "grow", json!({}));
        server
            .seen_where("it runs", |seen| seen["runs"]["grow"] == 1)
            .await;
        client.cancel();
        let outcome = call.await.unwrap();
        assert!(
            matches!(outcome, CallOutcome::Failed(CallFailure::Cancelled)),
            "{outcome:?}"
        );
        let told = |seen: &serde_json::Value| {
            seen["cancelled"].as_array().unwrap().len() == 1 && seen["dropped"] == 1
        };
        server.seen_where("the server was told", told).await;
    }
}

#[tokio::test]
async fn a_modern_call_is_cancelled_by_the_end_of_its_stream() {
    let server = Server::start(&["--era", "modern"]).await;
    let running = server.backend().await;
    let client = Client::named("a");
    let call = running.spawn(&client, "grow", json!({}));
    server
        .seen_where("it runs", |seen| seen["runs"]["grow"] == 1)
        .await;
    client.cancel();
    call.await.unwrap();
    let seen = server
        .seen_where("its stream has ended", |seen| seen["dropped"] == 1)
        .await;
    assert_eq!(seen["cancelled"], json!([]));
}

#[tokio::test]
async fn an_answer_has_a_limit_in_bytes() {
    for flags in [&[][..], &["--json"]] {
        let server = Server::start(flags).await;
        let mut config = server.config();
        config.message_bytes = 10_000;
        let running = server.backend_of(config).await;
        let client = Client::named("a");
        let fits = running
            .call(&client, "large", json!({ "bytes": 5000 }))
            .await;
        assert_eq!(text(&fits).as_str().unwrap().len(), 5000);
        let large = running
            .call(&client, "large", json!({ "bytes": 50_000 }))
            .await;
        assert!(error(large).message.contains("larger"));
        let next = running
            .call(&client, "echo", json!({ "text": "well" }))
            .await;
        assert_eq!(text(&next), "well");
    }
}

async fn unauthorized() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let noted = seen.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.ends_with(b"}") && stream.read_buf(&mut request).await.unwrap_or(0) > 0 {
            }
            noted
                .lock()
                .push(String::from_utf8_lossy(&request).into_owned());
            let refused =
                b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(refused).await;
        }
    });
    (url, seen)
}

#[tokio::test]
async fn a_refusal_that_is_not_the_servers_own_is_not_answered_by_other_forms() {
    let (url, seen) = unauthorized().await;
    let config = HttpConfig {
        restart_delay: Duration::from_secs(60).into(),
        max_restart_delay: Duration::from_secs(60).into(),
        ..HttpConfig::new(url)
    };
    let running = TestBackend(Arc::new(started(config)));
    let told = |detail: &String| detail.contains("credentials");
    running
        .state_where(|state| state.detail.as_ref().is_some_and(told))
        .await;
    let seen = seen.lock();
    let opened = seen
        .iter()
        .filter(|request| request.contains(r#""initialize""#));
    assert_eq!(opened.count(), 1, "{seen:?}");
}
