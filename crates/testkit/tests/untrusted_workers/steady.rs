//! Calls that continue while strangers try to join. Each call must be answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) struct Steady {
    answered: Arc<AtomicU64>,
    calling: JoinHandle<()>,
}

impl Steady {
    pub(crate) async fn start(url: &str) -> Self {
        let answered = Arc::new(AtomicU64::new(0));
        let (count, url) = (Arc::clone(&answered), url.to_owned());
        let calling = tokio::spawn(async move {
            let http = reqwest::Client::builder().no_proxy().build().unwrap();
            loop {
                call(&http, &url).await;
                count.fetch_add(1, Ordering::Relaxed);
                sleep(PAUSE).await;
            }
        });
        let steady = Self { answered, calling };
        steady.goes_on().await;
        steady
    }

    pub(crate) async fn goes_on(&self) {
        let wanted = self.answered.load(Ordering::Relaxed) + 3;
        let until = Instant::now() + PATIENCE;
        while self.answered.load(Ordering::Relaxed) < wanted {
            assert!(
                !self.calling.is_finished(),
                "a call of the good worker failed"
            );
            assert!(
                Instant::now() < until,
                "the good worker's calls do not go on"
            );
            sleep(PAUSE).await;
        }
    }

    pub(crate) async fn end(self) {
        self.goes_on().await;
        self.calling.abort();
    }
}

async fn call(http: &reqwest::Client, url: &str) {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "echo", "arguments": {"text": "well"}, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let request = http
        .post(url)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "echo");
    let answer = request.body(body.to_string()).send().await.unwrap();
    let text = answer.text().await.unwrap();
    // On a slow machine the answer may be a stream.
    let json = text.lines().find_map(|line| line.strip_prefix("data: "));
    let said: Value = serde_json::from_str(json.unwrap_or(&text)).unwrap();
    assert_eq!(said["result"]["content"][0]["text"], "well", "{said}");
}
