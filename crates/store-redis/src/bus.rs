//! The cluster's bus, with one listening connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use redis::aio::PubSub;
use shoal_ports::{Backoff, ClusterEvent, Lagged};
use tokio::sync::broadcast;
use tokio::time::{Instant, interval_at, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::config::RedisConfig;
use crate::dial::Dialler;
use crate::suspicion::Suspicion;

pub(crate) struct RedisBus {
    pub(crate) subscribers: broadcast::Sender<Result<ClusterEvent, Lagged>>,
    listening: Arc<AtomicBool>,
    pub(crate) channel: String,
    _listener: AbortOnDropHandle<()>,
}

const BACKLOG: usize = 1024;
const ASKED_EVERY: Duration = Duration::from_secs(3);

impl RedisBus {
    /// Call within a runtime.
    pub(crate) fn new(
        config: &RedisConfig,
        dialler: Arc<Dialler>,
        channel: String,
        first: PubSub,
        suspicion: Suspicion,
    ) -> Self {
        let subscribers = broadcast::Sender::new(BACKLOG);
        let listening = Arc::new(AtomicBool::new(true));
        let listener = BusListener {
            subscribers: subscribers.clone(),
            listening: listening.clone(),
            dialler,
            channel: channel.clone(),
            answer_timeout: config.redis.response_timeout.get(),
            backoff: config.backoff(),
            suspicion,
        };
        let listener = tokio::spawn(listener.run(first));
        Self {
            subscribers,
            listening,
            channel,
            _listener: AbortOnDropHandle::new(listener),
        }
    }

    pub(crate) fn is_listening(&self) -> bool {
        self.listening.load(Ordering::Relaxed)
    }
}

struct BusListener {
    subscribers: broadcast::Sender<Result<ClusterEvent, Lagged>>,
    listening: Arc<AtomicBool>,
    dialler: Arc<Dialler>,
    channel: String,
    answer_timeout: Duration,
    backoff: Backoff,
    suspicion: Suspicion,
}

impl BusListener {
    async fn run(mut self, first: PubSub) {
        let mut connection = first;
        let mut attempt = 0;
        loop {
            let began = Instant::now();
            self.listen(connection).await;
            self.listening.store(false, Ordering::Relaxed);
            // The command connection does not notice a lost server at once. This connection does.
            self.suspicion.raise();
            if began.elapsed() > ASKED_EVERY {
                self.backoff.reset();
            }
            connection = loop {
                sleep(self.backoff.pause()).await;
                attempt += 1;
                match self.dialler.dial_news(&self.channel, attempt).await {
                    Ok(connection) => break connection,
                    Err(why) => tracing::debug!(%why, "cannot receive notifications from Redis"),
                }
            };
            self.listening.store(true, Ordering::Relaxed);
            self.tell(Err(Lagged));
        }
    }

    async fn listen(&self, connection: PubSub) {
        let (mut asking, mut messages) = connection.split();
        let mut ticks = interval_at(Instant::now() + ASKED_EVERY, ASKED_EVERY);
        loop {
            tokio::select! {
                message = messages.next() => match message {
                    Some(message) => match serde_json::from_slice(message.get_payload_bytes()) {
                        Ok(event) => self.tell(Ok(event)),
                        // A newer release sent the event.
                        Err(error) => tracing::debug!(%error, "received a notification that this release does not understand"),
                    },
                    None => return,
                },
                _ = ticks.tick() => {
                    let answer = timeout(self.answer_timeout, asking.ping::<redis::Value>()).await;
                    if !matches!(answer, Ok(Ok(_))) {
                        return;
                    }
                }
            }
        }
    }

    fn tell(&self, news: Result<ClusterEvent, Lagged>) {
        // Fails without subscribers.
        let _ = self.subscribers.send(news);
    }
}
