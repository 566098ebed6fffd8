use std::time::Duration;

use serde_json::{Value, json};
use shoal_testkit::client::{Client, Leave};
use shoal_testkit::history::{Recorder, Tool};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

const PAUSE: Duration = Duration::from_millis(100);

pub(crate) fn start(url: &str) -> anyhow::Result<JoinSet<()>> {
    let mut clients = JoinSet::new();
    for number in 0..2 {
        let client = Client::new(url, Recorder::new(number, Instant::now()))?;
        let listening = client.clone();
        clients.spawn(async move { listening.listen(None).await });
        clients.spawn(call(client));
    }
    for number in 2..6 {
        let client = Client::new(url, Recorder::new(number, Instant::now()))?;
        clients.spawn(async move {
            loop {
                // Each call takes longer than a take-over.
                let work = client.work(Tool::StepsOnce, 40, 500);
                client.call(work, None).await;
            }
        });
    }
    clients.spawn(come_and_go(url.to_owned()));
    Ok(clients)
}

async fn call(client: Client) {
    loop {
        for tool in [Tool::Echo, Tool::Record, Tool::Ask, Tool::Steps] {
            client.call(client.work(tool, 3, 20), None).await;
        }
        let leave = Leave::Return {
            after: 2,
            within: Duration::from_secs(60),
            away: Duration::from_millis(100),
            unread: false,
        };
        client
            .call(client.work(Tool::Steps, 5, 50), Some(leave))
            .await;
        sleep(PAUSE).await;
    }
}

async fn come_and_go(url: String) {
    let http = reqwest::Client::new();
    let post = |session: &str, body: Value| {
        let post = http.post(&url).json(&body);
        let post = post.header("accept", "application/json, text/event-stream");
        match session {
            "" => post,
            session => post.header("mcp-session-id", session),
        }
    };
    let wrong =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "none" } });
    loop {
        let opening = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "passing", "version": "1" }
        } });
        if let Ok(opened) = post("", opening).send().await
            && let Some(session) = opened.headers().get("mcp-session-id")
            && let Ok(session) = session.to_str()
        {
            let _ = post(session, wrong.clone()).send().await;
            let end = http.delete(&url).header("mcp-session-id", session);
            let _ = end.send().await;
        }
        let _ = post("nobody-has-it", wrong.clone()).send().await;
        sleep(PAUSE).await;
    }
}
