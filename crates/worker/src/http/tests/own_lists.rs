use serde_json::{Value, json};
use shoal_ports::{Call, CallOutcome, ListScope, PoolCatalog};
use shoal_protocol::{Method, code};

use super::harness::{Client, TestBackend, error, eventually, text};
use super::server::Server;
use crate::HttpConfig;

async fn list(running: &TestBackend, client: &Client) -> CallOutcome {
    let call = Call {
        method: Method::ToolsList,
        params: None,
        ..client.call(json!({}))
    };
    running.run(client, &call).await
}

async fn names(running: &TestBackend, client: &Client) -> Vec<String> {
    let outcome = list(running, client).await;
    let CallOutcome::Result(result) = outcome else {
        panic!("{outcome:?}")
    };
    let tools: Vec<Value> = result.member("tools").unwrap().read().unwrap();
    let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

fn of_callers(server: &Server) -> HttpConfig {
    HttpConfig {
        forward: vec!["authorization".to_owned()],
        lists: ListScope::Principal,
        ..server.config()
    }
}

#[tokio::test]
async fn a_server_that_refuses_shoals_own_requests_is_ready_and_tells_callers() {
    for flags in [&["--protected"][..], &["--protected", "--era", "modern"]] {
        let mut server = Server::start(flags).await;
        server.order(json!({ "valid": "abc" })).await;
        let running = server.backend_of(of_callers(&server)).await;
        let catalog = running.catalog_where(|_| true).await;
        assert_eq!(catalog.lists, ListScope::Principal);
        assert!(catalog.declares("tools") && catalog.tools.is_empty());
        let bringing = |token: &str| {
            Client::named(token).bringing(&[("authorization", &format!("Bearer {token}"))])
        };
        let (known, unknown) = (bringing("abc"), bringing("no"));
        assert!(names(&running, &known).await.contains(&"echo".to_owned()));
        let outcome = running.call(&known, "echo", json!({ "text": "x" })).await;
        assert!(matches!(outcome, CallOutcome::Result(_)), "{outcome:?}");
        let refused = error(list(&running, &unknown).await);
        let data: Value = refused.data.unwrap().read().unwrap();
        assert_eq!((refused.code, &data["status"]), (-32603, &json!(401)));
        let refused = error(list(&running, &Client::named("none")).await);
        assert!(
            refused.message.contains("send Authorization"),
            "{}",
            refused.message
        );
        server.stop().await;
        running.state_where(|state| state.detail.is_some()).await;
        server.come_again().await;
        running.state_where(|state| state.detail.is_none()).await;
    }
}

/// Subscriptions name no caller, so bob would get the updates of a resource that only alice may
/// watch.
#[tokio::test]
async fn a_server_that_lists_to_each_caller_is_watched_for_none() {
    for flags in [
        &["--watcher", "alice"][..],
        &["--watcher", "alice", "--protected"],
    ] {
        let server = Server::start(flags).await;
        let running = server.backend_of(of_callers(&server)).await;
        let mut updates = running.0.resource_updates();
        for name in ["bob", "alice"] {
            server.order(json!({ "valid": name })).await;
            let refused = running.0.subscribe("test://alice").await.unwrap_err();
            assert_eq!(refused.code, code::METHOD_NOT_FOUND, "{refused:?}");
        }
        for name in ["bob", "alice", "bob"] {
            let bearer = format!("Bearer {name}");
            let client = Client::named(name).bringing(&[("authorization", &bearer)]);
            let arguments = json!({ "uri": "test://alice" });
            let outcome = running.call(&client, "touch", arguments).await;
            assert_eq!(text(&outcome), "touched");
        }
        assert_eq!(server.seen().await["subscribed"], json!([]));
        running.0.shutdown().await;
        assert!(updates.try_recv().is_err());
    }
}

/// The server announces the change on every connection. The order in which Shoal reads the
/// connections' lists must not matter.
#[tokio::test]
async fn what_a_server_adds_for_all_is_nobodys_own() {
    let server = Server::start(&[]).await;
    let running = server.backend().await;
    let own = running.0.own_lists();
    for name in ["a", "b", "c"] {
        running
            .call(&Client::named(name), "echo", json!({ "text": "x" }))
            .await;
    }
    server
        .seen_where("all listen", |seen| seen["listening"] == 4)
        .await;
    server.order(json!({ "grown": true })).await;
    let grown = |catalog: &PoolCatalog| {
        let mut tools = catalog.tools.iter();
        tools.any(|tool| tool.as_str().contains("grown"))
    };
    running.catalog_where(grown).await;
    eventually("nobody has lists of its own", || own.borrow().is_empty()).await;
    assert!(
        names(&running, &Client::named("a"))
            .await
            .contains(&"grown".to_owned())
    );
}
