//! A client of 2026-07-28. Every broken request counts as a failure.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use rand::Rng as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::load::Clients;
use super::tally::{Failure, Sample};
use crate::client::wire::{MODERN, Messages, Wire};
use crate::history::{Answer, Message, Tool, Work};

const LISTEN_AGAIN: Duration = Duration::from_millis(250);

#[derive(Clone, Debug)]
pub(super) struct Modern {
    wire: Arc<Wire>,
    clients: Clients,
    notes: Arc<Notes>,
    ids: Arc<AtomicU64>,
}

#[derive(Debug)]
pub(super) struct Notes {
    pub(super) client: usize,
    began: Instant,
    seen: Mutex<Seen>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) sent: Vec<Duration>,
    pub(super) answered: Vec<Sample>,
    pub(super) failed: Vec<Failure>,
    pub(super) told_to_return: u64,
}

impl Notes {
    pub(super) fn seen(&self) -> Seen {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, what: &str, cause: &anyhow::Error) {
        let failure = Failure {
            at: self.began.elapsed(),
            client: format!("modern {}", self.client),
            what: format!("{what}: {cause:#}"),
        };
        self.lock().failed.push(failure);
    }
}

impl Modern {
    pub(super) fn new(
        url: &str,
        number: usize,
        clients: Clients,
        began: Instant,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            wire: Arc::new(Wire::to(url, number)?),
            clients,
            notes: Arc::new(Notes {
                client: number,
                began,
                seen: Mutex::default(),
            }),
            ids: Arc::new(AtomicU64::new(1)),
        })
    }

    pub(super) fn notes(&self) -> Arc<Notes> {
        self.notes.clone()
    }

    pub(super) async fn run(self, mut dice: StdRng, enough: CancellationToken) {
        loop {
            let thinking = self.clients.thinking.mul_f64(dice.random());
            tokio::select! {
                () = sleep(thinking) => {}
                () = enough.cancelled() => return,
            }
            let plan = self.clients.tools.modern(&mut dice);
            let id = self.ids.fetch_add(1, Ordering::Relaxed);
            let work = Work {
                call: id,
                tool: plan.tool,
                nonce: format!("modern-{}-{id}", self.notes.client),
                steps: plan.steps,
                ms: plan.ms,
            };
            self.call(work).await;
        }
    }

    async fn call(&self, work: Work) {
        let (began, sent) = (self.notes.began.elapsed(), Instant::now());
        self.notes.lock().sent.push(began);
        match self.answer(&work).await {
            Ok(()) => self.notes.lock().answered.push(Sample {
                at: began,
                took: sent.elapsed(),
                takes: work.takes(),
            }),
            Err(cause) => self.notes.failed(work.tool.name(), &cause),
        }
    }

    async fn answer(&self, work: &Work) -> anyhow::Result<()> {
        let params = json!({
            "name": work.tool.name(),
            "arguments": work.arguments(),
        });
        let mut messages = self
            .request("tools/call", Some(work.tool.name()), work.call, params)
            .await?;
        let mut step = 0;
        while let Some(text) = messages.next().await? {
            match Message::read(&text) {
                Message::Prime => {}
                Message::Progress { token, value } => {
                    ensure!(
                        token == work.call && value == step + 1,
                        "step {value} after {step}"
                    );
                    step = value;
                }
                Message::Response { request, answer } => {
                    ensure!(request == work.call, "an answer to request {request}");
                    right(work, &answer).with_context(|| format!("after step {step}"))?;
                    let steps = match work.tool {
                        Tool::Echo => 0,
                        _ => u64::from(work.steps),
                    };
                    ensure!(step == steps, "answered after step {step} of {steps}");
                    return Ok(());
                }
                other => bail!("{other:?} in the answer to a call"),
            }
        }
        bail!("the stream ended before the answer")
    }

    pub(super) async fn listen(self) {
        loop {
            let began = self.notes.began.elapsed();
            self.notes.lock().sent.push(began);
            match self.listen_once().await {
                Ok(()) => self.notes.lock().told_to_return += 1,
                Err(cause) => self.notes.failed("subscriptions/listen", &cause),
            }
            sleep(LISTEN_AGAIN).await;
        }
    }

    /// Listens to one stream of changes, which must end with the response.
    async fn listen_once(&self) -> anyhow::Result<()> {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let params = json!({ "notifications": { "toolsListChanged": true } });
        let mut messages = self
            .request("subscriptions/listen", None, id, params)
            .await?;
        while let Some(text) = messages.next().await? {
            let message: Value = serde_json::from_str(&text).context("a message is no JSON")?;
            if message["id"] == json!(id) {
                ensure!(message.get("result").is_some(), "answered with {message}");
                return Ok(());
            }
        }
        bail!("the stream ended without its response")
    }

    async fn request(
        &self,
        method: &str,
        name: Option<&str>,
        id: u64,
        mut params: Value,
    ) -> anyhow::Result<Messages> {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
            "progressToken": id,
        });
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let exchange = self.wire.post_modern(method, name, &message).await;
        exchange.outcome.messages()
    }
}

fn right(work: &Work, answer: &Answer) -> anyhow::Result<()> {
    match answer {
        Answer::Result { text, failed } => {
            ensure!(!failed, "the tool says: {text}");
            let expected = work.answer();
            ensure!(*text == expected, "{text:?} instead of {expected:?}");
            Ok(())
        }
        Answer::Error { code, message } => bail!("error {code}: {message}"),
    }
}
