use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use futures::future::try_join_all;
use rand::Rng as _;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{Deed, Deeds, Injector};
use crate::client::{Client, End};
use crate::history::{Recorder, Step, Tool};
use crate::redis::Redis;

const CLIENTS: usize = 100;
/// The number of the first of these clients, above those of all others.
const FIRST: usize = 1_000_000;
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
    client: Client,
    began: Instant,
    patience: Duration,
}

impl Injector<'_> {
    pub(super) async fn come_back_at_once(&mut self) -> Deeds {
        let (redis, url) = (self.redis()?, self.cluster.url());
        let visitors = (FIRST..FIRST + CLIENTS).map(|number| {
            anyhow::Ok(Visitor {
                client: Client::new(url, Recorder::new(number, self.began))?,
                began: self.began,
                patience: self.options.settle,
            })
        });
        let visitors = visitors.collect::<anyhow::Result<Vec<_>>>()?;
        try_join_all(visitors.iter().map(Visitor::use_session)).await?;
        // Uses all sessions at once, so that they expire together.
        let used = try_join_all(visitors.iter().map(Visitor::use_session)).await?;
        let used = visitors.iter().zip(used);
        let used: Vec<_> = used.filter_map(|(one, used)| Some((one, used?))).collect();
        let first = used.iter().map(|(_, used)| *used).min();
        let early = IDLE.saturating_sub(AROUND);
        let first = first.context("every session has ended at once")? + early;
        let returns = used.into_iter().map(|(visitor, used)| {
            let offset = AROUND.mul_f64(self.dice.random_range(0.0..2.0));
            visitor.come_back(used + early + offset)
        });
        let returns = Vec::from_iter(returns);
        // Redis must continue even if a client fails.
        let (found, stopped) = tokio::join!(try_join_all(returns), stop_repeatedly(redis, first));
        stopped?;
        ensure!(found?.contains(&true), "every client came back too late");
        Ok(vec![Deed::new("paused while clients returned", "redis")])
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
    /// Returns the time before the request, or `None` if the session has expired.
    async fn use_session(&self) -> anyhow::Result<Option<Instant>> {
        let before = self.last_use();
        let call = self.client.work(Tool::Echo, 0, 0);
        let called = timeout(self.patience, self.client.call(call, None)).await;
        match called.context("a client that returns has no answer in time")? {
            End::Answered => Ok(self.last_use()),
            End::Forgotten => {
                let unused = before.map(|before| before.elapsed());
                ensure!(
                    unused.is_some_and(|unused| unused >= IDLE),
                    "a session ended {unused:?} after its use"
                );
                Ok(None)
            }
            End::GivenUp => bail!("a client that returns is refused"),
        }
    }

    fn last_use(&self) -> Option<Instant> {
        let history = self.client.history();
        let sent = |step: &Step| matches!(step, Step::Sent { .. });
        let last = history.entries.iter().rfind(|entry| sent(&entry.step))?;
        Some(self.began + last.at)
    }

    /// Returns `false` if the session had expired.
    async fn come_back(&self, at: Instant) -> anyhow::Result<bool> {
        sleep_until(at).await;
        if self.use_session().await?.is_none() {
            return Ok(false);
        }
        sleep(AGAIN).await;
        self.use_session().await?;
        Ok(true)
    }
}
