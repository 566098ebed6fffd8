use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use futures::StreamExt as _;
use http::StatusCode;
use serde_json::{Value, json};
use sse_stream::SseStream;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::modern::REVISION;
use crate::check::code;

const KNOCKS_EVERY: Duration = Duration::from_millis(10);

/// An acknowledged `subscriptions/listen`, which counts changes until it is dropped.
#[derive(Debug)]
pub struct Listener {
    changes: watch::Receiver<usize>,
    _reading: AbortOnDropHandle<()>,
}

impl Listener {
    /// Subscribes to changes of the tool list, with retries.
    ///
    /// # Errors
    ///
    /// If the server refuses permanently, does not acknowledge in time, or acknowledges without the
    /// tool list.
    pub async fn open(url: &str, within: Duration) -> anyhow::Result<Self> {
        let opening = async {
            let http = crate::http::client().build()?;
            loop {
                match Self::knock(&http, url).await? {
                    Some(listener) => return Ok(listener),
                    None => sleep(KNOCKS_EVERY).await,
                }
            }
        };
        timeout(within, opening)
            .await
            .context("nobody listened to a listener")?
    }

    /// Counts the reported changes.
    #[must_use]
    pub fn changes(&self) -> usize {
        *self.changes.borrow()
    }

    /// Waits for more than `before` changes.
    ///
    /// # Errors
    ///
    /// If the change does not arrive in time, or the stream ends.
    pub async fn hear_more_than(&mut self, before: usize, within: Duration) -> anyhow::Result<()> {
        let more = self.changes.wait_for(|changes| *changes > before);
        let heard = timeout(within, more)
            .await
            .context("did not hear of a change")?;
        heard.context("the stream ended before the change")?;
        Ok(())
    }

    async fn knock(http: &reqwest::Client, url: &str) -> anyhow::Result<Option<Self>> {
        let method = "subscriptions/listen";
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({ "notifications": { "toolsListChanged": true }, "_meta": meta });
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let post = http
            .post(url)
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", REVISION)
            .header("mcp-method", method)
            .body(request.to_string());
        let Ok(answer) = post.send().await else {
            return Ok(None);
        };
        if answer.status() != StatusCode::OK {
            let status = answer.status();
            let body: Value = answer.json().await.context("a refusal that is no JSON")?;
            let passes = body["error"]["code"] == code::NOT_EXECUTED;
            ensure!(
                status == StatusCode::SERVICE_UNAVAILABLE && passes,
                "{status}: {body}"
            );
            return Ok(None);
        }
        let mut messages = SseStream::from_bytes_stream(answer.bytes_stream())
            .filter_map(async |event| event.ok()?.data)
            .filter_map(async |data| serde_json::from_str::<Value>(&data).ok())
            .boxed();
        let first = messages.next().await.unwrap_or_default();
        if first["params"]["notifications"]["toolsListChanged"] != true {
            bail!("a listener was acknowledged so: {first}");
        }
        let (count, changes) = watch::channel(0);
        let reading = tokio::spawn(async move {
            while let Some(message) = messages.next().await {
                if message["method"] == "notifications/tools/list_changed" {
                    count.send_modify(|count| *count += 1);
                }
            }
        });
        Ok(Some(Self {
            changes,
            _reading: AbortOnDropHandle::new(reading),
        }))
    }
}
