use std::time::Duration;

use reqwest::Response;
use serde_json::{Value, json};

use crate::server::Server;

const LIMIT: usize = 100_000;
/// So short that the edge counts no single request or answer of this length.
const URI: usize = 8_000;

async fn listen(server: &Server, number: usize) -> Response {
    let uri = format!("r://{number:0>width$}", width = URI - 4);
    let filter = json!({ "notifications": { "resourceSubscriptions": [uri] } });
    let listening = server.modern("subscriptions/listen", filter);
    listening.send().await.unwrap()
}

#[tokio::test]
async fn what_is_listened_to_has_a_limit_in_bytes() {
    let server = Server::with(|config| config.limits.answers_waiting_bytes = LIMIT).await;
    let mut open = Vec::new();
    for number in 0..LIMIT / URI {
        let listening = listen(&server, number).await;
        assert_eq!(listening.status(), 200, "{number}");
        open.push(listening);
    }
    let refused = listen(&server, open.len()).await;
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
    let error: Value = serde_json::from_str(&refused.text().await.unwrap()).unwrap();
    assert_eq!(error["error"]["code"], 50300);
    let lists = json!({ "notifications": { "toolsListChanged": true } });
    let lists = server.modern("subscriptions/listen", lists);
    assert_eq!(lists.send().await.unwrap().status(), 200);

    drop(open.pop());
    let closed = async {
        while server.load.answer_bytes() > LIMIT - URI {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let closed = tokio::time::timeout(Duration::from_secs(60), closed).await;
    closed.unwrap();
    assert_eq!(listen(&server, open.len()).await.status(), 200);
}

#[tokio::test]
async fn a_client_that_leaves_while_a_backend_is_asked_leaves_nothing_behind() {
    let server = Server::start().await;
    let uris = json!(["r://1", "never://1"]);
    let filter = json!({ "notifications": { "resourceSubscriptions": uris } });
    let listening = tokio::spawn(server.modern("subscriptions/listen", filter).send());
    server.dispatcher.subscribed_to(&["r://1"]).await;
    listening.abort();
    let left = server.dispatcher.subscribed_to(&[]);
    let left = tokio::time::timeout(Duration::from_secs(20), left).await;
    left.unwrap();
}
