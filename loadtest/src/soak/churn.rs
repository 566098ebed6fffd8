//! Sessions that come and go.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::HeaderValue;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::arrivals;
use crate::connection::{Goodbye, Reply};
use crate::engine::call::{Caller, Echo};
use crate::engine::mix::Kind;
use crate::failure::Failure;
use crate::findings::Findings;
use crate::mcp::Mode;
use crate::mcp::client::Client;
use crate::mcp::job::Job;
use crate::target::Target;

/// Further clients are only counted, because the machine cannot keep up.
const MOST_CLIENTS: usize = 2_000;
const LIFE: Duration = Duration::from_secs(120);
const UNREAD: Duration = Duration::from_millis(300);

pub(super) const OPENED: &str = "sessions opened";
const CALLED: &str = "calls after that";
const STREAMED: &str = "streams opened and dropped";
const DELETED: &str = "sessions ended by DELETE";
const ABANDONED: &str = "sessions left to expire";
const REFUSED: &str = "clients refused for a while (429, 503)";
const NOT_STARTED: &str = "clients not started: too many were busy";
pub(super) const COUNTED: [&str; 7] = [
    OPENED,
    CALLED,
    STREAMED,
    DELETED,
    ABANDONED,
    REFUSED,
    NOT_STARTED,
];

pub(super) struct Churn {
    pub(super) targets: Vec<Target>,
    pub(super) seed: u64,
    pub(super) findings: Findings,
    pub(super) counts: Findings,
    pub(super) places: Semaphore,
}

impl Churn {
    pub(super) fn new(targets: Vec<Target>, seed: u64) -> Self {
        Self {
            targets,
            seed,
            findings: Findings::default(),
            counts: Findings::default(),
            places: Semaphore::new(MOST_CLIENTS),
        }
    }

    pub(super) async fn run(self: Arc<Self>, rate: f64, time: Duration) {
        let clients = AtomicUsize::new(0);
        let life = |_| {
            let (churn, number) = (Arc::clone(&self), clients.fetch_add(1, Ordering::Relaxed));
            async move {
                churn.start(number).await;
                Ok(())
            }
        };
        arrivals::spread(rate, time, life).await;
    }

    async fn start(&self, number: usize) {
        let Ok(_place) = self.places.try_acquire() else {
            return self.counts.add(NOT_STARTED, "");
        };
        match timeout(LIFE, self.live(number)).await {
            Ok(Ok(())) => {}
            // A clear refusal does not break a promise.
            Ok(Err((_, failure))) if failure.is_passing() => self.counts.add(REFUSED, ""),
            Ok(Err((what, failure))) => self.findings.failed(&what, &failure),
            Err(_) => self
                .findings
                .add("no answer", "a client's life took too long"),
        }
    }

    async fn live(&self, number: usize) -> Result<(), (String, Failure)> {
        let mut chance = SmallRng::seed_from_u64(self.seed.wrapping_add(number as u64));
        let named = |what: &'static str| move |failure| (what.to_owned(), failure);
        let target = &self.targets[chance.random_range(0..self.targets.len())];
        let opening = Client::open(target, Mode::Legacy, Goodbye::Reset).await;
        let mut caller = Caller::new(opening.map_err(named("initialize"))?, number);
        self.counts.add(OPENED, "");
        for _ in 0..chance.random_range(2..6) {
            let kind = match chance.random_range(0..7) {
                0 | 1 => Kind::Echo,
                2 => Kind::Journaled,
                3 => Kind::Count,
                4 => Kind::Progress(Job {
                    steps: chance.random_range(1..5),
                    interval: Duration::from_millis(20),
                }),
                _ => {
                    let streamed = self.stream(&caller.client, &mut chance).await;
                    streamed.map_err(named("the standalone stream"))?;
                    Kind::Echo
                }
            };
            let called = caller.call(kind, &Echo::by("echo")).await;
            called.map_err(|failure| (kind.to_string(), failure))?;
            self.counts.add(CALLED, "");
        }
        if chance.random_bool(0.6) {
            caller.client.end().await.map_err(named("DELETE"))?;
            self.counts.add(DELETED, "");
        } else {
            self.counts.add(ABANDONED, "");
        }
        Ok(())
    }

    /// Drops the stream after its first event, and resumes it in half of the cases.
    async fn stream(&self, client: &Client, chance: &mut SmallRng) -> Result<(), Failure> {
        let mut first = self.listen(client, None, chance).await?;
        let id = first.next().await?.and_then(|event| event.id);
        let id = id.and_then(|id| HeaderValue::from_str(&id).ok());
        let missing = || Failure::Wrong("no event id to come back with".to_owned());
        let id = id.ok_or_else(missing)?;
        drop(first);
        if chance.random_bool(0.5) {
            let _again = self.listen(client, Some(&id), chance).await?;
            sleep(UNREAD).await;
        }
        Ok(())
    }

    async fn listen(
        &self,
        client: &Client,
        last_event_id: Option<&HeaderValue>,
        chance: &mut SmallRng,
    ) -> Result<Reply, Failure> {
        let target = &self.targets[chance.random_range(0..self.targets.len())];
        self.counts.add(STREAMED, "");
        client.stream(target, last_event_id).await
    }
}
