//! Servers behind a URL: one Shoal in front of others.

use serde_json::{Value, json};

use crate::client::{Session, call, modern_call, post_modern, request, response, text};
use crate::process::{Server, shoal};

/// The address of a server, for one that takes its place.
fn address(server: &Server) -> String {
    let address = server.mcp.trim_start_matches("http://");
    address.trim_end_matches("/mcp").to_owned()
}

async fn echo(session: &Session, id: u64, said: &str) -> Value {
    session
        .ask(&call(id, "echo", json!({ "text": said })))
        .await
}

#[tokio::test]
async fn a_server_is_put_behind_by_its_url() {
    let upstream = Server::start(&["--demo"]).await;
    let server = Server::start(&[&upstream.mcp]).await;
    let session = Session::open(&server.mcp).await;
    let tools = session.ask(&request(1, "tools/list", json!({}))).await;
    assert!(tools["result"]["tools"].as_array().unwrap().len() > 5);
    assert_eq!(text(&echo(&session, 2, "legacy").await), "legacy");
    let once = call(3, "echo_once", json!({ "text": "once" }));
    assert_eq!(text(&session.ask(&once).await), "once");
    let echo = modern_call(4, "echo", json!({ "text": "modern" }));
    let answer = post_modern(&server.mcp, &echo).send().await.unwrap();
    assert_eq!(text(&response(answer).await), "modern");
}

#[tokio::test]
async fn no_client_notices_that_the_server_is_restarted() {
    let upstream = Server::start(&["--demo"]).await;
    let listen = address(&upstream);
    let server = Server::start(&[&upstream.mcp]).await;
    let session = Session::open(&server.mcp).await;
    assert_eq!(text(&echo(&session, 1, "before").await), "before");
    drop(upstream);
    let arguments = ["--demo", "--listen", &listen];
    let (calls, again) = tokio::join!(
        futures::future::join_all((2..20).map(|id| {
            let session = &session;
            async move { text(&echo(session, id, &id.to_string()).await).to_owned() }
        })),
        Server::start(&arguments),
    );
    let expected: Vec<String> = (2..20).map(|id: u64| id.to_string()).collect();
    assert_eq!(calls, expected);
    assert_eq!(text(&echo(&session, 20, "after").await), "after");
    drop(again);
}

#[tokio::test]
async fn one_of_several_servers_may_go_away() {
    let servers = [
        Server::start(&["--demo"]).await,
        Server::start(&["--demo"]).await,
    ];
    let server = Server::start(&[&servers[0].mcp, &servers[1].mcp]).await;
    let session = Session::open(&server.mcp).await;
    let [first, second] = servers;
    drop(first);
    for id in 1..20 {
        let said = id.to_string();
        assert_eq!(text(&echo(&session, id, &said).await), said);
    }
    server.wait_for_readiness(200).await;
    drop(second);
    // After a while the pool has nobody any more, and says so.
    let refused = echo(&session, 20, "nobody").await;
    assert!(
        refused["error"]["code"].as_i64().unwrap() >= 50_300,
        "{refused}"
    );
}

#[tokio::test]
async fn what_cannot_be_a_server_is_refused_at_once() {
    for (url, told) in [
        ("ftp://host/mcp", "no URL of an MCP endpoint"),
        ("http://user:secret@host/mcp", "must not hold a password"),
    ] {
        let output = shoal(&["serve", url]).output().await.unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(told), "{error}");
    }
}
