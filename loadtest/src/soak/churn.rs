use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::HeaderValue;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::connection::{Goodbye, Reply};
use crate::failure::Failure;
use crate::findings::Findings;
use crate::mcp::client::Client;
use crate::mcp::job::{Job, listen};
use crate::mcp::tools::{call, echo};
use crate::mcp::{Mode, legacy};
use crate::target::Target;

/// Further clients are only counted, because the machine cannot keep up.
const MOST_CLIENTS: usize = 2_000;

const LIFE: Duration = Duration::from_secs(120);

const UNREAD: Duration = Duration::from_millis(300);

const TICK: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) sessions: AtomicU64,
    pub(super) requests: AtomicU64,
    pub(super) streams: AtomicU64,
    pub(super) deleted: AtomicU64,
    pub(super) abandoned: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) not_started: AtomicU64,
}

pub(super) struct Churn {
    pub(super) targets: Arc<[Target]>,
    pub(super) rate: f64,
    pub(super) seed: u64,
    pub(super) counts: Arc<Counts>,
    pub(super) findings: Arc<Findings>,
}

impl Churn {
    pub(super) async fn run(self, until: Instant) {
        let mut clients = JoinSet::new();
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut chance = SmallRng::seed_from_u64(self.seed);
        let mut due = 0.0;
        while Instant::now() < until {
            ticks.tick().await;
            while clients.try_join_next().is_some() {}
            due += self.rate * TICK.as_secs_f64();
            while due >= 1.0 {
                due -= 1.0;
                if clients.len() >= MOST_CLIENTS {
                    self.counts.not_started.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                let life = Life {
                    targets: Arc::clone(&self.targets),
                    counts: Arc::clone(&self.counts),
                    findings: Arc::clone(&self.findings),
                    chance: SmallRng::seed_from_u64(chance.random()),
                };
                clients.spawn(life.run());
            }
        }
        while clients.join_next().await.is_some() {}
    }
}

struct Life {
    targets: Arc<[Target]>,
    counts: Arc<Counts>,
    findings: Arc<Findings>,
    chance: SmallRng,
}

impl Life {
    async fn run(mut self) {
        let findings = Arc::clone(&self.findings);
        match timeout(LIFE, self.live()).await {
            Ok(Ok(())) => {}
            // A clear refusal does not break a promise.
            Ok(Err((_, failure))) if failure.is_passing() => self.count(|counts| &counts.refused),
            Ok(Err((what, failure))) => findings.failed(what, &failure),
            Err(_) => findings.add("no answer", "a client's life took too long"),
        }
    }

    async fn live(&mut self) -> Result<(), (&'static str, Failure)> {
        let target = self.target();
        let opening = Client::open(&target, Mode::Legacy, Goodbye::Reset);
        let mut client = opening.await.map_err(named("initialize"))?;
        self.count(|counts| &counts.sessions);
        let mut counted = 0;
        for _ in 0..self.chance.random_range(2..6) {
            match self.chance.random_range(0..8) {
                0 | 1 => self.echo(&mut client, "echo").await,
                2 => self.echo(&mut client, "echo_once").await,
                3 => {
                    counted += 1;
                    let text = counted.to_string();
                    let counting = call(&mut client, "count_up", "{}", &text).await;
                    counting.map_err(named("count_up"))
                }
                4 => {
                    let tools = client.tools().await.map(drop);
                    tools.map_err(named("tools/list"))
                }
                5 => self.job(&mut client).await,
                _ => self.stream(&client).await,
            }?;
            self.count(|counts| &counts.requests);
        }
        if self.chance.random_bool(0.6) {
            client.end().await.map_err(named("DELETE"))?;
            self.count(|counts| &counts.deleted);
        } else {
            self.count(|counts| &counts.abandoned);
        }
        Ok(())
    }

    async fn echo(
        &mut self,
        client: &mut Client,
        tool: &'static str,
    ) -> Result<(), (&'static str, Failure)> {
        let text = format!("{:016x}", self.chance.random::<u64>());
        echo(client, tool, &text).await.map_err(named(tool))
    }

    async fn job(&mut self, client: &mut Client) -> Result<(), (&'static str, Failure)> {
        let job = Job {
            steps: self.chance.random_range(1..5),
            interval: Duration::from_millis(20),
        };
        let done = job
            .see_through(client, &self.targets, &self.findings, None)
            .await;
        done.map(drop).map_err(named("long_job"))
    }

    /// Drops the stream after its first event, and resumes it in half of the cases.
    async fn stream(&mut self, client: &Client) -> Result<(), (&'static str, Failure)> {
        let Some(session) = client.session().cloned() else {
            return Ok(());
        };
        let mut first = self.listen(&session, None).await?;
        let primed = timeout(LIFE, first.next()).await;
        let primed = primed.ok().and_then(Result::ok).flatten();
        let id = primed.and_then(|event| event.id);
        let Some(id) = id.and_then(|id| HeaderValue::from_str(&id).ok()) else {
            let failure = Failure::Wrong("no event id to come back with".to_owned());
            return Err(("the standalone stream", failure));
        };
        drop(first);
        if self.chance.random_bool(0.5) {
            let again = self.listen(&session, Some(&id)).await?;
            tokio::time::sleep(UNREAD).await;
            drop(again);
        }
        Ok(())
    }

    async fn listen(
        &mut self,
        session: &legacy::Session,
        last_event_id: Option<&HeaderValue>,
    ) -> Result<Reply, (&'static str, Failure)> {
        let target = self.target();
        let listening = listen(session, &target, last_event_id).await;
        self.count(|counts| &counts.streams);
        listening.map_err(named("GET"))
    }

    fn target(&mut self) -> Target {
        self.targets[self.chance.random_range(0..self.targets.len())].clone()
    }

    fn count(&self, which: impl Fn(&Counts) -> &AtomicU64) {
        which(&self.counts).fetch_add(1, Ordering::Relaxed);
    }
}

fn named(what: &'static str) -> impl Fn(Failure) -> (&'static str, Failure) {
    move |failure| (what, failure)
}
