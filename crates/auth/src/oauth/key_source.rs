//! The keys of an issuer, as they are known here: fetched, kept, and fetched again.
//!
//! One task fetches, so that whoever waits for keys waits for the same fetch. A key that nobody knows has them fetched sooner, and
//! at most once within an interval, however many tokens name such keys.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use shoal_ports::Backoff;
use shoal_telemetry::metrics::{AuthServerOutcome, AuthServerRequest, metrics};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::http::{HttpAsker, NoAnswer};
use super::keys::KeySet;
use super::metadata::{Endpoint, discover};

/// Requests that wait for a fetch at most. Nobody knows yet who sent them.
const WAITING: usize = 256;
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Where keys come from, and how often.
#[derive(Clone)]
pub(crate) struct KeyConfig {
    pub(crate) issuer: String,
    /// The issuer that its metadata must name.
    pub(crate) described_as: String,
    /// Found by the issuer's metadata unless said.
    pub(crate) jwks_url: Option<String>,
    pub(crate) refresh: Duration,
    pub(crate) interval: Duration,
    pub(crate) stale: Duration,
    pub(crate) timeout: Duration,
}

/// Keeps the keys of an issuer. Dropping it ends the fetching.
pub(crate) struct KeySource {
    config: KeyConfig,
    known: watch::Receiver<Known>,
    wanted: Arc<Notify>,
    waiting: Semaphore,
    _task: AbortOnDropHandle<()>,
}

/// The keys of an issuer, and the outcome of the last fetch.
#[derive(Clone, Default)]
pub(crate) struct Known {
    keys: Option<Arc<KeySet>>,
    /// When those came.
    came: Option<Instant>,
    /// How often they were asked for, and when last.
    pub(crate) attempts: u64,
    attempted: Option<Instant>,
    /// Why the last fetch failed, if it did.
    pub(crate) trouble: Option<String>,
}

impl Known {
    /// How many keys there are.
    pub(crate) fn count(&self) -> usize {
        self.keys.as_ref().map_or(0, |keys| keys.len())
    }

    /// How long ago they came.
    pub(crate) fn age(&self) -> Option<Duration> {
        Some(self.came?.elapsed())
    }
}

/// Why there are no keys to check a token with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoKeys {
    /// The issuer does not have such a key, as far as it said lately.
    Unknown,
    /// The issuer cannot be reached, or has not been asked lately.
    Away,
}

impl KeySource {
    /// Begins to fetch.
    pub(crate) fn start(http: HttpAsker, config: KeyConfig) -> Self {
        let (told, known) = watch::channel(Known::default());
        let wanted = Arc::new(Notify::new());
        let fetching = keep(http, config.clone(), told, wanted.clone());
        Self {
            config,
            known,
            wanted,
            waiting: Semaphore::new(WAITING),
            _task: AbortOnDropHandle::new(tokio::spawn(fetching)),
        }
    }

    /// Returns the keys as they are known now.
    pub(crate) fn known(&self) -> Known {
        self.known.borrow().clone()
    }

    /// The keys, and how often they had been asked for. In the first moments of a process the first fetch is waited for.
    /// Cancellation safe.
    ///
    /// # Errors
    /// There are none, or they are too old.
    pub(crate) async fn keys(&self) -> Result<(Arc<KeySet>, u64), NoKeys> {
        if self.known.borrow().attempts == 0 {
            self.newer(0).await?;
        }
        self.kept()
    }

    fn kept(&self) -> Result<(Arc<KeySet>, u64), NoKeys> {
        let known = self.known.borrow();
        let fresh = known.age().is_some_and(|age| age <= self.config.stale);
        let keys = known.keys.clone().filter(|_| fresh);
        keys.map(|keys| (keys, known.attempts)).ok_or(NoKeys::Away)
    }

    /// The keys after the next fetch, for a token whose key is not among those that the attempt `seen` brought.
    ///
    /// # Errors
    /// They were fetched a moment ago, or cannot be fetched.
    pub(crate) async fn newer(&self, seen: u64) -> Result<Arc<KeySet>, NoKeys> {
        let mut known = self.known.clone();
        {
            let now = known.borrow_and_update();
            let lately = now
                .attempted
                .is_some_and(|at| at.elapsed() < self.config.interval);
            if now.attempts == seen && lately {
                return Err(match now.trouble {
                    Some(_) => NoKeys::Away,
                    None => NoKeys::Unknown,
                });
            }
        }
        if known.borrow().attempts == seen {
            let _waiting = self.waiting.try_acquire().map_err(|_| NoKeys::Away)?;
            self.wanted.notify_one();
            // Longer than a fetch takes, which may be that of the metadata too.
            let within = self.config.timeout * 4;
            let fetched = tokio::time::timeout(within, known.changed()).await;
            fetched
                .map_err(|_| NoKeys::Away)?
                .map_err(|_| NoKeys::Away)?;
        }
        if known.borrow().trouble.is_some() {
            return Err(NoKeys::Away);
        }
        self.kept().map(|(keys, _)| keys)
    }
}

/// Fetches keys for as long as anybody keeps the other end.
async fn keep(http: HttpAsker, config: KeyConfig, told: watch::Sender<Known>, wanted: Arc<Notify>) {
    // A server that is away is not asked all the time by all who miss it.
    let mut pauses = Backoff::new(FIRST_PAUSE, config.interval.max(FIRST_PAUSE));
    loop {
        let began = Instant::now();
        let fetched = fetch(&http, &config).await;
        let outcome = match &fetched {
            Ok(_) => AuthServerOutcome::Answered,
            Err(_) => AuthServerOutcome::Failed,
        };
        let security = &metrics().security;
        security.asked_server(AuthServerRequest::Keys, outcome);
        let issuer = &config.issuer;
        let pause = match &fetched {
            Ok(keys) => {
                if told.borrow().trouble.is_some() || told.borrow().keys.is_none() {
                    tracing::info!(
                        issuer,
                        keys = keys.len(),
                        "the authorization server's keys are known"
                    );
                }
                pauses.reset();
                config.refresh
            }
            Err(why) => {
                if told.borrow().trouble.as_ref() != Some(why) {
                    tracing::warn!(
                        issuer,
                        error = why,
                        "cannot fetch the authorization server's keys"
                    );
                }
                pauses.pause()
            }
        };
        // The fetch also answers requests that came while it ran.
        let _ = wanted.notified().now_or_never();
        told.send_modify(|known| {
            known.attempts += 1;
            known.attempted = Some(began);
            match fetched {
                Ok(keys) => {
                    known.keys = Some(Arc::new(keys));
                    known.came = Some(began);
                    known.trouble = None;
                }
                Err(why) => known.trouble = Some(why),
            }
        });
        let asked = async {
            wanted.notified().await;
            tokio::time::sleep_until(began + config.interval).await;
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = asked => {}
            () = told.closed() => return,
        }
    }
}

async fn fetch(http: &HttpAsker, config: &KeyConfig) -> Result<KeySet, String> {
    let text = async {
        let url = match &config.jwks_url {
            Some(url) => url.clone(),
            None => discover(http, &config.issuer, &config.described_as, Endpoint::Keys).await?,
        };
        let text = http.get(http.url(&url)?).await;
        text.map_err(|why| NoAnswer::Failed(format!("{url}: {why}")))
    };
    let text = text.await.map_err(|none| none.to_string())?;
    KeySet::read(&text)
}
