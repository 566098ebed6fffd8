use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use futures::future::try_join_all;
use http::StatusCode;
use rand::Rng as _;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{Deed, Injector};
use crate::client::wire::{Outcome, Wire};
use crate::redis::Redis;

const CLIENTS: usize = 100;
/// The number that tags the exchanges of these clients, above those of all others.
const VISITOR: usize = 1_000_000;
/// How long sessions live without use. The run's other clients are never silent for so long, even
/// while Redis stops.
const IDLE: Duration = Duration::from_secs(15);
const AROUND: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::from_millis(300);
const STOPS: usize = 2;
const STOPPED: Duration = Duration::from_millis(2300);
const GOES: Duration = Duration::from_millis(300);

/// Each stop of Redis (`STOPPED`) is longer than `redis.response_timeout`. A shorter timeout would
/// also expire on a busy machine without a stop.
pub(in crate::chaos) const SETTINGS: [(&str, &str); 2] =
    [("session.idle", "15s"), ("redis.response_timeout", "2s")];

struct Visitor {
    wire: Arc<Wire>,
    session: Option<String>,
    patience: Duration,
}

enum Failure {
    Status(StatusCode),
    Broken(String),
}

impl Injector<'_> {
    pub(super) async fn come_back_at_once(&mut self) -> anyhow::Result<Vec<Deed>> {
        let redis = self.redis()?;
        let (url, patience) = (self.cluster.url(), self.options.settle);
        let wire = Arc::new(Wire::to(url, VISITOR)?);
        let opened = try_join_all((0..CLIENTS).map(|_| Visitor::open(&wire, patience))).await?;
        // Uses all sessions at once, so that they expire together.
        let used = opened
            .iter()
            .map(|(visitor, used)| visitor.use_session(*used));
        let used = try_join_all(used).await?;
        let visitors = opened.iter().zip(used);
        let visitors: Vec<_> = visitors
            .filter_map(|((visitor, _), used)| Some((visitor, used?)))
            .collect();
        let first = visitors.iter().map(|(_, used)| *used).min();
        let early = IDLE.saturating_sub(AROUND);
        let first = first.context("every session has ended at once")? + early;
        let returns = visitors.iter().map(|(visitor, used)| {
            let offset = AROUND.mul_f64(self.dice.random_range(0.0..2.0));
            visitor.come_back(*used, *used + early + offset)
        });
        let returns = Vec::from_iter(returns);
        // Redis must continue even if a client fails.
        let (found, stopped) = tokio::join!(try_join_all(returns), stop_repeatedly(redis, first));
        stopped?;
        ensure!(found?.contains(&true), "every client came back too late");
        Ok(vec![
            Deed::CameBack(CLIENTS),
            Deed::Paused("redis".to_owned()),
        ])
    }
}

async fn stop_repeatedly(redis: &Redis, from: Instant) -> anyhow::Result<()> {
    sleep_until(from).await;
    for _ in 0..STOPS {
        redis.pause().await?;
        sleep(STOPPED).await;
        redis.resume().await?;
        sleep(GOES).await;
    }
    Ok(())
}

impl Visitor {
    /// Opens a session. Also returns the time before the request, because the session cannot expire
    /// earlier than `IDLE` after that time.
    async fn open(wire: &Arc<Wire>, patience: Duration) -> anyhow::Result<(Self, Instant)> {
        let mut visitor = Self {
            wire: Arc::clone(wire),
            session: None,
            patience,
        };
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "visitor", "version": "1" },
        });
        let initialize =
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let deadline = Instant::now() + patience;
        loop {
            let sent = Instant::now();
            match visitor.send(&initialize).await {
                Ok(session) => {
                    ensure!(
                        session.is_some(),
                        "an answer to initialize names no session"
                    );
                    visitor.session = session;
                    return Ok((visitor, sent));
                }
                Err(failure) if Instant::now() > deadline => {
                    bail!("a session cannot be opened: {failure}");
                }
                Err(_) => sleep(AGAIN).await,
            }
        }
    }

    /// Returns the session that the answer names.
    async fn send(&self, message: &Value) -> Result<Option<String>, Failure> {
        let posting = self.wire.post(self.session.as_deref(), message);
        let outcome = match timeout(self.patience, posting).await {
            Ok(exchange) => exchange.outcome,
            Err(_) => return Err(Failure::Broken("no answer in time".to_owned())),
        };
        match outcome {
            Outcome::Json { session, .. } => Ok(session),
            Outcome::Accepted | Outcome::Stream(_) => Ok(None),
            Outcome::Refused(refusal) => Err(Failure::Status(refusal.status)),
            Outcome::Broken(cause) => Err(Failure::Broken(cause)),
        }
    }

    /// Returns the time before the ping, or `None` if the session has expired.
    async fn use_session(&self, used: Instant) -> anyhow::Result<Option<Instant>> {
        let deadline = Instant::now() + self.patience;
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        loop {
            let sent = Instant::now();
            match self.send(&ping).await {
                Ok(_) => return Ok(Some(sent)),
                Err(Failure::Status(StatusCode::NOT_FOUND)) => {
                    let (session, unused) = (self.session(), used.elapsed());
                    ensure!(
                        unused >= IDLE,
                        "session {session} ended {unused:?} after its use"
                    );
                    return Ok(None);
                }
                Err(failure) if Instant::now() > deadline => {
                    bail!("session {} is not answered: {failure}", self.session());
                }
                Err(_) => sleep(AGAIN).await,
            }
        }
    }

    fn session(&self) -> &str {
        self.session.as_deref().unwrap_or_default()
    }

    /// Returns `false` if the session had expired.
    async fn come_back(&self, used: Instant, at: Instant) -> anyhow::Result<bool> {
        sleep_until(at).await;
        let Some(used) = self.use_session(used).await? else {
            return Ok(false);
        };
        sleep(AGAIN).await;
        self.use_session(used).await?;
        Ok(true)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(out, "HTTP {status}"),
            Self::Broken(cause) => out.write_str(cause),
        }
    }
}
