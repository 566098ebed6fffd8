use std::time::Duration;

use serde_json::{Value, json};
use shoal_ports::{CallFailure, ResourceUpdated, Secret};
use shoal_protocol::code;

use super::harness::{Client, error, failure, text};
use super::server::{Server, started};
use crate::{Backend as _, HttpIsolation};

#[tokio::test]
async fn everybody_gets_their_own_question_also_in_one_session() {
    let server = Server::start(&[]).await;
    for isolation in [HttpIsolation::Session, HttpIsolation::Principal] {
        let mut config = server.config();
        config.isolation = isolation;
        let running = server.backend_of(config).await;
        let clients: Vec<_> = (0..6)
            .map(|at| Client::askable(&format!("user{at}")).of("one"))
            .collect();
        let calls = clients.iter().map(|client| {
            let question = client.caller.session.as_ref().unwrap().to_string();
            running.call(client, "ask", json!({ "question": question }))
        });
        let outcomes = futures::future::join_all(calls).await;
        for (at, (client, outcome)) in clients.iter().zip(outcomes).enumerate() {
            assert_eq!(
                text(&outcome)["content"]["answered_by"],
                format!("user{at}")
            );
            let asked = client.asked();
            assert_eq!(asked.len(), 1);
            assert!(asked[0].contains(&format!("user{at}\"")), "{asked:?}");
        }
        running.0.shutdown().await;
    }
}

#[tokio::test]
async fn a_question_of_no_call_is_put_only_where_the_session_is_one_clients() {
    let server = Server::start(&[]).await;
    let running = server.backend().await;
    let client = Client::askable("a");
    let outcome = running.call(&client, "background", json!({})).await;
    assert_eq!(text(&outcome)["content"]["answered_by"], "a");
    // A modern call whose client supports elicitation gets its own server session.
    let modern: Vec<_> = (0..4)
        .map(|at| Client::modern(&format!("m{at}"), r#"{"elicitation":{}}"#).of("one"))
        .collect();
    let calls = modern
        .iter()
        .map(|client| running.call(client, "background", json!({})));
    for (at, outcome) in futures::future::join_all(calls).await.iter().enumerate() {
        assert_eq!(text(outcome)["content"]["answered_by"], format!("m{at}"));
    }
    server
        .seen_where("those are over", |seen| seen["deleted"] == 4)
        .await;
    let mut config = server.config();
    config.isolation = HttpIsolation::Principal;
    let running = server.backend_of(config).await;
    let client = Client::askable("b");
    let outcome = running.call(&client, "background", json!({})).await;
    assert!(
        text(&outcome)["message"]
            .as_str()
            .unwrap()
            .contains("only during a call")
    );
    assert!(client.asked().is_empty());
}

#[tokio::test]
async fn a_broken_stream_is_resumed() {
    let server = Server::start(&[]).await;
    let running = server.backend().await;
    let client = Client::named("a");
    let outcome = running.call(&client, "breaks", json!({})).await;
    assert_eq!(text(&outcome), "whole");
    let seen = server.seen().await;
    assert_eq!(
        (&seen["resumed"], &seen["runs"]["breaks"]),
        (&json!(1), &json!(1))
    );
}

#[tokio::test]
async fn a_stream_that_cannot_be_resumed_leaves_the_outcome_unknown() {
    for (era, resumable) in [("legacy", false), ("modern", true)] {
        let server = Server::start(&["--era", era]).await;
        let running = server.backend().await;
        let client = Client::named("a");
        let arguments = json!({ "resumable": resumable });
        let failed = failure(running.call(&client, "breaks", arguments).await);
        assert!(
            matches!(failed, CallFailure::OutcomeUnknown { .. }),
            "{failed:?}"
        );
        let next = running
            .call(&client, "echo", json!({ "text": "well" }))
            .await;
        assert_eq!(text(&next), "well");
    }
}

#[tokio::test]
async fn a_server_that_says_too_much_or_nothing_ends_only_its_call() {
    let server = Server::start(&[]).await;
    let mut config = server.config();
    config.message_bytes = 100_000;
    config.stream_idle = Duration::from_millis(300).into();
    let running = server.backend_of(config).await;
    let client = Client::named("a");
    let endless = running.call(&client, "endless", json!({})).await;
    assert!(error(endless).message.contains("larger"));
    let silent = failure(running.call(&client, "silent", json!({})).await);
    let CallFailure::OutcomeUnknown { reason } = silent else {
        panic!("{silent:?}");
    };
    assert!(reason.contains("silent"), "{reason}");
    // The client cannot keep up, so messages are dropped.
    let flood = running.call(&client, "flood", json!({})).await;
    assert_eq!(text(&flood), "done");
    let next = running
        .call(&client, "echo", json!({ "text": "well" }))
        .await;
    assert_eq!(text(&next), "well");
    server
        .seen_where("its streams are closed", |seen| {
            seen["dropped"].as_u64() >= Some(1)
        })
        .await;
}

#[tokio::test]
async fn a_change_that_is_told_in_one_session_only_is_told_once() {
    let server = Server::start(&[]).await;
    let running = server.backend().await;
    let mut updates = running.0.resource_updates();
    running.0.subscribe("test://a").await.unwrap();
    let client = Client::named("a");
    let arguments = json!({ "uri": "test://a" });
    let outcome = running.call(&client, "touch", arguments).await;
    assert_eq!(text(&outcome), "touched");
    let next = tokio::time::timeout(Duration::from_secs(20), updates.recv());
    let ResourceUpdated { uri, .. } = next.await.unwrap().unwrap();
    assert_eq!(uri, "test://a");
    running.0.shutdown().await;
    let more = std::iter::from_fn(|| updates.try_recv().ok()).count();
    assert!(more < 10, "{more}");
}

/// Shoal must subscribe only in its own name, not in a caller's session, even if the resource was
/// watched first while the server was away.
#[tokio::test]
async fn what_the_server_shows_one_caller_alone_is_watched_in_nobodys_session() {
    let mut server = Server::start(&["--watcher", "alice"]).await;
    let mut config = server.config();
    config.forward = vec!["authorization".to_owned()];
    let own = ("Authorization".to_owned(), Secret::new("Bearer shoal"));
    config.headers.extend([own]);
    let running = server.backend_of(config).await;
    let refused = running.0.subscribe("test://alice").await.unwrap_err();
    assert_eq!(refused.code, code::INVALID_PARAMS, "{refused:?}");
    server.stop().await;
    running.state_where(|state| state.detail.is_some()).await;
    running.0.subscribe("test://alice").await.unwrap();
    server.come_again().await;
    running.state_where(|state| state.detail.is_none()).await;
    let asked = |seen: &Value| seen["subscribed"] == json!(["shoal"]);
    server.seen_where("Shoal has asked", asked).await;
    let alice = Client::named("a").bringing(&[("authorization", "Bearer alice")]);
    let arguments = json!({ "uri": "test://alice" });
    let outcome = running.call(&alice, "touch", arguments).await;
    assert_eq!(text(&outcome), "touched");
    assert!(asked(&server.seen().await), "{}", server.seen().await);
}

#[tokio::test]
async fn a_changed_list_is_read_again() {
    for era in ["legacy", "modern"] {
        let server = Server::start(&["--era", era]).await;
        let running = server.backend().await;
        let grown = |catalog: &shoal_ports::PoolCatalog| {
            catalog
                .tools
                .iter()
                .any(|tool| tool.as_str().contains("\"grown\""))
        };
        assert!(!grown(&*running.catalog_where(|_| true).await));
        server.order(json!({ "grown": true })).await;
        running.catalog_where(grown).await;
    }
}

#[tokio::test]
async fn a_server_without_a_stream_of_its_own_is_used_all_the_same() {
    for refusal in ["405", "404"] {
        let server = Server::start(&["--no-get", refusal]).await;
        let running = server.backend().await;
        let client = Client::named("a");
        assert_eq!(text(&running.call(&client, "count", json!({})).await), 1);
        assert_eq!(text(&running.call(&client, "count", json!({})).await), 2);
    }
}

#[tokio::test]
async fn lists_have_a_limit_in_bytes() {
    let server = Server::start(&["--endless-lists"]).await;
    let backend = started(server.config());
    let mut state = backend.state();
    let told = state.wait_for(|state| {
        let detail = state.detail.as_ref();
        detail.is_some_and(|detail| detail.contains("its lists have more than 16777216 bytes"))
    });
    assert!(told.await.unwrap().catalog.is_none());
}

/// Shoal answers each ping by a request. Without a bound, each answer that the server does not read
/// would cost a connection.
#[tokio::test]
async fn answers_that_the_server_does_not_take_are_bounded() {
    let server = Server::start(&["--pings", "200"]).await;
    let running = server.backend().await;
    server
        .seen_where("as many as there may be", |seen| seen["answering"] == 64)
        .await;
    // Shoal answers the other pings when the server has read the first answers.
    server.order(json!({ "release": true })).await;
    assert_eq!(
        text(&running.call(&Client::named("a"), "count", json!({})).await),
        1
    );
    server
        .seen_where("the others, too", |seen| {
            seen["answering"].as_u64() > Some(64)
        })
        .await;
}

#[tokio::test]
async fn the_stream_of_a_session_is_followed_to_where_it_has_moved() {
    let server = Server::start(&["--moved"]).await;
    let running = server.backend().await;
    running.catalog_where(|_| true).await;
    let listens = |seen: &Value| seen["listening"] == 1;
    server
        .seen_where("a stream at the other path", listens)
        .await;
}
