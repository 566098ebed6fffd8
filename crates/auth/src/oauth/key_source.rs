//! Fetches and caches an issuer's keys.
//!
//! One task fetches for all waiting requests. An unknown key causes an early fetch, at most once per interval.

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
use super::metadata::{IssuerEndpoint, discover};

/// Maximum requests that wait for a fetch, because their callers are not authenticated yet.
const WAITING: usize = 256;
const FIRST_PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(crate) struct KeyConfig {
    pub(crate) issuer: String,
    pub(crate) described_as: String,
    /// `None` to find it in the issuer's metadata.
    pub(crate) jwks_url: Option<String>,
    pub(crate) refresh: Duration,
    pub(crate) interval: Duration,
    pub(crate) stale: Duration,
    pub(crate) timeout: Duration,
}

/// Dropping this ends the fetching.
pub(crate) struct KeySource {
    config: KeyConfig,
    known: watch::Receiver<KnownKeys>,
    wanted: Arc<Notify>,
    waiting: Semaphore,
    _task: AbortOnDropHandle<()>,
}

#[derive(Clone, Default)]
pub(crate) struct KnownKeys {
    keys: Option<Arc<KeySet>>,
    came: Option<Instant>,
    pub(crate) attempts: u64,
    attempted: Option<Instant>,
    pub(crate) trouble: Option<String>,
}

impl KnownKeys {
    pub(crate) fn count(&self) -> usize {
        self.keys.as_ref().map_or(0, |keys| keys.len())
    }

    pub(crate) fn age(&self) -> Option<Duration> {
        Some(self.came?.elapsed())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoKeys {
    Unknown,
    /// The issuer cannot be reached, or may not be asked again so soon.
    Away,
}

impl KeySource {
    pub(crate) fn start(http: HttpAsker, config: KeyConfig) -> Self {
        let (told, known) = watch::channel(KnownKeys::default());
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

    pub(crate) fn known(&self) -> KnownKeys {
        self.known.borrow().clone()
    }

    /// Returns the keys and the number of fetches so far. Waits for the first fetch. Cancel safe.
    ///
    /// # Errors
    /// There are no keys, or they are too old.
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

    /// Fetches keys for a token whose key was missing after fetch number `seen`.
    ///
    /// # Errors
    /// The keys were fetched recently or cannot be fetched, or too many requests wait for them.
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
            // A fetch that begins with the metadata takes several requests.
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

async fn keep(
    http: HttpAsker,
    config: KeyConfig,
    told: watch::Sender<KnownKeys>,
    wanted: Arc<Notify>,
) {
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
                        "fetched the authorization server's keys"
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
            None => {
                discover(
                    http,
                    &config.issuer,
                    &config.described_as,
                    IssuerEndpoint::Keys,
                )
                .await?
            }
        };
        let text = http.get(http.url(&url)?).await;
        text.map_err(|why| NoAnswer::Failed(format!("{url}: {why}")))
    };
    let text = text.await.map_err(|none| none.to_string())?;
    KeySet::read(&text)
}
