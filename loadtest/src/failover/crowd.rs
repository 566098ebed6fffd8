use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::connection::{Event, Goodbye, Reply};
use crate::failure::Failure;
use crate::findings::Findings;
use crate::mcp::answer::Message;
use crate::mcp::check::SeenIds;
use crate::mcp::client::Client;
use crate::mcp::job::{Back, listen};
use crate::mcp::tools::subscribe;
use crate::mcp::{Mode, legacy};
use crate::target::Target;

const OPENING: usize = 50;

const PAUSE: Duration = Duration::from_millis(500);

/// Longer than a run.
const LONGEST_RETURN: Duration = Duration::from_secs(86_400);

const LOOK_EVERY: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
struct Shared {
    back: Mutex<Vec<Instant>>,
    /// Streams that have reported a change after their return.
    told: AtomicUsize,
    broken: AtomicU64,
    refused: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Returns {
    pub(super) moments: Vec<Instant>,
    pub(super) broken: u64,
    pub(super) refused: u64,
}

pub(super) struct Crowd {
    streams: JoinSet<()>,
    shared: Arc<Shared>,
    size: usize,
}

impl Crowd {
    /// Each stream has an event ID on return. Broken streams reconnect to `others`.
    pub(super) async fn open(
        size: usize,
        first: &Target,
        others: &Arc<[Target]>,
        findings: &Arc<Findings>,
    ) -> anyhow::Result<Self> {
        let shared = Arc::<Shared>::default();
        let places = Arc::new(Semaphore::new(OPENING));
        let mut opening = JoinSet::new();
        for number in 0..size {
            let (first, places) = (first.clone(), Arc::clone(&places));
            let (others, findings) = (Arc::clone(others), Arc::clone(findings));
            let shared = Arc::clone(&shared);
            opening.spawn(async move {
                let _place = places.acquire().await;
                let (session, mut reply) = hold(&first).await?;
                let mut stream = Stream {
                    number,
                    session,
                    others,
                    findings,
                    shared,
                    ids: SeenIds::default(),
                    last_id: None,
                    retry: PAUSE,
                    back: 0,
                    told: false,
                };
                if let Some(event) = reply.next().await? {
                    stream.take(event);
                }
                Ok::<_, Failure>((stream, reply))
            });
        }
        let mut streams = JoinSet::new();
        while let Some(opened) = opening.join_next().await {
            let (stream, reply) = opened?.context("could not open a stream")?;
            streams.spawn(stream.run(reply));
        }
        Ok(Self {
            streams,
            shared,
            size,
        })
    }

    pub(super) async fn until_back(&self, deadline: Instant) {
        while self.shared.moments().len() < self.size && Instant::now() < deadline {
            sleep(LOOK_EVERY).await;
        }
    }

    pub(super) async fn until_told(&self, deadline: Instant) -> usize {
        loop {
            let told = self.shared.told.load(Ordering::Relaxed);
            if told >= self.size || Instant::now() >= deadline {
                return told;
            }
            sleep(LOOK_EVERY).await;
        }
    }

    pub(super) async fn close(mut self) -> Returns {
        self.streams.shutdown().await;
        Returns {
            moments: self.shared.moments(),
            broken: self.shared.broken.load(Ordering::Relaxed),
            refused: self.shared.refused.load(Ordering::Relaxed),
        }
    }
}

impl Shared {
    fn moments(&self) -> Vec<Instant> {
        let back = self.back.lock().unwrap_or_else(PoisonError::into_inner);
        back.clone()
    }
}

async fn hold(target: &Target) -> Result<(legacy::Session, Reply), Failure> {
    let mut client = Client::open(target, Mode::Legacy, Goodbye::Reset).await?;
    subscribe(&mut client).await?;
    let session = client.session().cloned();
    let session =
        session.ok_or_else(|| Failure::Wrong("the server keeps no session".to_owned()))?;
    let reply = listen(&session, target, None).await?;
    Ok((session, reply))
}

struct Stream {
    number: usize,
    session: legacy::Session,
    others: Arc<[Target]>,
    findings: Arc<Findings>,
    shared: Arc<Shared>,
    ids: SeenIds,
    last_id: Option<String>,
    retry: Duration,
    back: usize,
    told: bool,
}

impl Stream {
    async fn run(mut self, mut reply: Reply) {
        loop {
            while let Ok(Some(event)) = reply.next().await {
                self.take(event);
            }
            match self.come_back().await {
                Ok(again) => reply = again,
                Err(failure) => {
                    return self.findings.add(
                        "refused resume",
                        format_args!("stream {}: {failure}", self.number),
                    );
                }
            }
            self.back += 1;
            if self.back == 1 {
                let mut back = self
                    .shared
                    .back
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                back.push(Instant::now());
            }
        }
    }

    async fn come_back(&self) -> Result<Reply, Failure> {
        let back = Back {
            session: &self.session,
            last_id: self.last_id.as_deref(),
            pause: self.retry,
            again: self.retry,
            deadline: Instant::now() + LONGEST_RETURN,
        };
        let first = self.number % self.others.len();
        let targets = self.others.iter().cycle().skip(first);
        let count = |failure: &Failure| {
            let count = match failure {
                Failure::Transport(_) => &self.shared.broken,
                _ => &self.shared.refused,
            };
            count.fetch_add(1, Ordering::Relaxed);
        };
        back.come(targets, count).await
    }

    fn take(&mut self, event: Event) {
        if let Some(retry_ms) = event.retry_ms {
            self.retry = Duration::from_millis(retry_ms);
        }
        if let Some(id) = event.id {
            if !self.ids.insert(&id) {
                let detail = format_args!("event id {id} on stream {}", self.number);
                self.findings.add("doubled", detail);
            }
            self.last_id = Some(id);
        }
        if event.data.is_empty() {
            return;
        }
        match Message::parse(&event.data) {
            Ok(message) => {
                let updated = message.method.as_deref() == Some("notifications/resources/updated");
                if updated && self.back > 0 && !self.told {
                    self.told = true;
                    self.shared.told.fetch_add(1, Ordering::Relaxed);
                }
            }
            Err(failure) => self.findings.failed("a stream's message", &failure),
        }
    }
}
