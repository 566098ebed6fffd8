use std::time::Duration;

use serde_json::json;
use shoal_ports::{CallFailure, SessionId};

use super::harness::{Client, TestBackend, eventually, failure, text};
use super::server::{Server, started};
use crate::HttpIsolation;

#[tokio::test]
async fn each_session_has_one_of_its_own_and_it_ends_with_it() {
    let server = Server::start(&[]).await;
    let running = server.backend().await;
    let (a, b) = (Client::named("a"), Client::named("b"));
    for expected in 1..=3 {
        for client in [&a, &b] {
            let outcome = running.call(client, "count", json!({})).await;
            assert_eq!(text(&outcome), expected);
        }
    }
    assert_eq!(server.seen().await["opened"], 3, "two and the lead");
    running.0.end_session(&SessionId::new("a")).await;
    assert_eq!(server.seen().await["deleted"], 1);
    running.0.shutdown().await;
    let seen = server
        .seen_where("all have ended", |seen| seen["deleted"] == 3)
        .await;
    assert_eq!(seen["sessions"], 0);
}

#[tokio::test]
async fn callers_of_one_principal_may_share_one() {
    let server = Server::start(&[]).await;
    let mut config = server.config();
    config.isolation = HttpIsolation::Principal;
    let running = server.backend_of(config).await;
    let session = async |client: &Client| text(&running.call(client, "session", json!({})).await);
    let first = session(&Client::named("a").of("alice")).await;
    assert_eq!(session(&Client::named("b").of("alice")).await, first);
    assert_eq!(session(&Client::modern("c", "{}").of("alice")).await, first);
    assert_ne!(session(&Client::named("d").of("bob")).await, first);
}

#[tokio::test]
async fn a_session_that_the_server_has_forgotten_is_opened_again() {
    for flags in [
        &[][..],
        &["--forgets-by-400"],
        &["--forgets-without-a-word"],
        &["--no-get"],
    ] {
        let server = Server::start(flags).await;
        let running = server.backend().await;
        let client = Client::named("a");
        assert_eq!(text(&running.call(&client, "count", json!({})).await), 1);
        server.forget().await;
        let calls = (0..4).map(|_| running.call(&client, "count", json!({})));
        for outcome in futures::future::join_all(calls).await {
            assert!(text(&outcome).as_u64().unwrap() <= 4);
        }
        server
            .seen_where("both are open again", |seen| seen["sessions"] == 2)
            .await;
        assert_eq!(server.seen().await["runs"]["count"], 5, "none ran twice");
    }
}

#[tokio::test]
async fn an_idle_session_is_ended() {
    let server = Server::start(&[]).await;
    let mut config = server.config();
    config.session_idle = Duration::from_millis(100).into();
    let running = server.backend_of(config).await;
    running.call(&Client::named("a"), "count", json!({})).await;
    server
        .seen_where("it has ended", |seen| seen["deleted"] == 1)
        .await;
}

#[tokio::test]
async fn calls_wait_for_a_server_that_restarts() {
    for era in ["legacy", "modern"] {
        let mut server = Server::start(&["--era", era]).await;
        let running = server.backend().await;
        let client = Client::named("a");
        running
            .call(&client, "echo", json!({ "text": "before" }))
            .await;
        server.stop().await;
        let calls: Vec<_> = (0..5)
            .map(|at| running.spawn(&client, "echo", json!({ "text": at.to_string() })))
            .collect();
        server.come_again().await;
        for (at, call) in calls.into_iter().enumerate() {
            assert_eq!(text(&call.await.unwrap()), at, "{era}");
        }
        assert_eq!(server.seen().await["runs"]["echo"], 5);
    }
}

#[tokio::test]
async fn a_server_that_stays_away_is_said_to_be() {
    let mut server = Server::start(&[]).await;
    let running = server.backend().await;
    let client = Client::named("a");
    server.stop().await;
    let failed = failure(running.call(&client, "echo", json!({ "text": "x" })).await);
    let CallFailure::Overloaded { reason, .. } = failed else {
        panic!("{failed:?}");
    };
    assert!(reason.contains("cannot be reached"), "{reason}");
    let state = running.state_where(|state| state.detail.is_some()).await;
    assert!(state.detail.unwrap().contains("cannot be reached"));
    server.come_again().await;
    running
        .state_where(|state| state.catalog.is_some() && state.detail.is_none())
        .await;
    eventually("it is there", || running.0.restarts() > 0).await;
}

#[tokio::test]
async fn where_there_is_another_server_a_call_does_not_wait() {
    let mut server = Server::start(&[]).await;
    let mut config = server.config();
    config.url = String::new();
    config.urls = vec![server.url.clone(), "http://127.0.0.1:1/mcp".to_owned()];
    let running = server.backend_of(config).await;
    server.stop().await;
    let failed = failure(running.call(&Client::named("a"), "echo", json!({})).await);
    assert!(
        matches!(failed, CallFailure::NotExecuted { .. }),
        "{failed:?}"
    );
    running.state_where(|state| state.catalog.is_none()).await;
}

#[tokio::test]
async fn a_server_that_chooses_an_unknown_version_is_not_used() {
    for version in ["9999-01-01", "2026-07-28"] {
        let server = Server::start(&["--version", version]).await;
        let backend = started(server.config());
        let running = TestBackend(std::sync::Arc::new(backend));
        let told = format!("it speaks protocol version {version}, which Shoal does not");
        let says = |detail: &String| detail.contains(&told) && detail.contains("2025-11-25");
        let state = running.state_where(|state| state.detail.as_ref().is_some_and(says));
        assert!(state.await.catalog.is_none());
    }
}

#[tokio::test]
async fn a_server_whose_lists_cannot_be_read_says_so() {
    for (lists, told) in [
        (r#""none""#, "the result is not a JSON object"),
        ("[]", "the result is not a JSON object"),
        (r#"{"tools":{}}"#, "`tools` is not an array"),
    ] {
        let server = Server::start(&["--lists", lists]).await;
        let backend = started(server.config());
        let running = TestBackend(std::sync::Arc::new(backend));
        let says = |detail: &String| detail.contains("tools/list") && detail.contains(told);
        let state = running.state_where(|state| state.detail.as_ref().is_some_and(says));
        assert!(state.await.catalog.is_none());
    }
}
