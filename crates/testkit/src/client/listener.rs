use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::modern::{LISTEN, listen, meta};
use super::wire::{Trouble, Wire};
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
            let wire = Wire::to(url, 0)?;
            loop {
                match Self::knock(&wire).await? {
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

    async fn knock(wire: &Wire) -> anyhow::Result<Option<Self>> {
        let request = listen(1, &meta(&json!({})));
        let mut messages = match wire.post_modern(LISTEN, None, &request).await.outcome {
            Ok(messages) => messages,
            Err(Trouble::Broken(_)) => return Ok(None),
            Err(Trouble::Refused(refusal)) => {
                let starting = refusal.status == StatusCode::SERVICE_UNAVAILABLE
                    && refusal.code == Some(code::NOT_EXECUTED);
                // The edge refuses connections until it has started.
                let passes = starting || refusal.status == StatusCode::BAD_GATEWAY;
                ensure!(passes, "{refusal}");
                return Ok(None);
            }
        };
        let first = messages.next().await?.unwrap_or_default();
        let first: Value = serde_json::from_str(&first).unwrap_or_default();
        if first["params"]["notifications"]["toolsListChanged"] != true {
            bail!("a listener was acknowledged so: {first}");
        }
        let (count, changes) = watch::channel(0);
        let reading = tokio::spawn(async move {
            while let Ok(Some(message)) = messages.next().await {
                if message.contains("notifications/tools/list_changed") {
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
