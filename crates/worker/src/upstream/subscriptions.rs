//! Which resources are watched, and keeping a server informed of it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shoal_ports::ResourceUpdated;
use shoal_protocol::{Era, Method, Outcome, RawJson, RawObject, SUBSCRIPTION_ID, code};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::error::RequestError;
use super::link::{Link, RequestHandle};
use super::pending::RequestOutcome;

/// Updates that a slow reader may be behind before it is told to look for itself.
const BACKLOG: usize = 1024;
/// Subscriptions that one call catches up with.
const CAUGHT_UP: usize = 16;
/// The pause before a subscription that the server ended is opened again.
const REOPEN: Duration = Duration::from_secs(1);

/// Changes of one resource that come within this time are told as one: of servers that tell each session, each session's
/// connection hears of it.
const AS_ONE: Duration = Duration::from_millis(50);

/// The watched resources of a backend, and where their changes are told.
pub(crate) struct Subscriptions {
    uris: watch::Sender<BTreeSet<String>>,
    updates: broadcast::Sender<ResourceUpdated>,
    told: Mutex<HashMap<String, Told>>,
}

/// What was told last of a resource.
struct Told {
    at: Instant,
    /// What is to be told next, when it is time.
    next: Option<RawJson>,
}

impl Subscriptions {
    /// Nothing is watched.
    pub(crate) fn new() -> Self {
        Self {
            uris: watch::Sender::new(BTreeSet::new()),
            updates: broadcast::Sender::new(BACKLOG),
            told: Mutex::default(),
        }
    }

    /// Updates from now on.
    pub(crate) fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated> {
        self.updates.subscribe()
    }

    /// Whether a resource is watched.
    pub(crate) fn contains(&self, uri: &str) -> bool {
        self.uris.borrow().contains(uri)
    }

    /// Watches a resource in every server, present and future.
    pub(crate) fn add(&self, uri: &str) {
        self.uris
            .send_if_modified(|uris| uris.insert(uri.to_owned()));
    }

    /// Stops watching a resource.
    pub(crate) fn remove(&self, uri: &str) {
        self.uris.send_if_modified(|uris| uris.remove(uri));
        self.told.lock().remove(uri);
    }

    /// A server said that a resource changed. What nobody watches is dropped.
    pub(crate) fn report(self: &Arc<Self>, params: Option<&RawJson>) {
        let Some(params) = params else { return };
        let uri = RawObject::of(params).and_then(|params| params.get("uri")?.string());
        if let Some(uri) = uri.filter(|uri| self.contains(uri)) {
            self.tell(uri, params.clone().without_meta(SUBSCRIPTION_ID));
        }
    }

    fn tell(self: &Arc<Self>, uri: String, params: RawJson) {
        let now = Instant::now();
        let mut told = self.told.lock();
        match told.get_mut(&uri) {
            Some(last) if now < last.at + AS_ONE => {
                if last.next.replace(params).is_none() {
                    tokio::spawn(self.clone().tell_later(uri, last.at + AS_ONE));
                }
            }
            _ => {
                let last = Told {
                    at: now,
                    next: None,
                };
                told.insert(uri.clone(), last);
                self.send(uri, params);
            }
        }
    }

    async fn tell_later(self: Arc<Self>, uri: String, at: Instant) {
        tokio::time::sleep_until(at).await;
        let next = self.told.lock().get_mut(&uri).and_then(|last| {
            last.at = Instant::now();
            last.next.take()
        });
        if let Some(params) = next {
            self.send(uri, params);
        }
    }

    fn send(&self, uri: String, params: RawJson) {
        // Nobody listens if sending fails.
        let _ = self.updates.send(ResourceUpdated { uri, params });
    }
}

/// Keeps a server subscribed to what is watched, until it ends.
pub(crate) async fn keep(
    link: Arc<Link>,
    subscriptions: Arc<Subscriptions>,
    ended: CancellationToken,
) {
    let wanted = subscriptions.uris.subscribe();
    let keeping = async {
        match link.greeting().era {
            Era::Legacy if link.greeting().offers("resources", "subscribe") => {
                keep_legacy(&link, wanted).await;
            }
            Era::Legacy => {}
            Era::Modern => keep_modern(&link, wanted).await,
        }
    };
    tokio::select! {
        () = keeping => {}
        () = ended.cancelled() => {}
    }
}

async fn keep_legacy(link: &Arc<Link>, mut wanted: watch::Receiver<BTreeSet<String>>) {
    loop {
        let target = wanted.borrow_and_update().clone();
        let applied = link.subscribed();
        for uri in target.difference(&applied) {
            if let Err(error) = subscribe(link, uri).await {
                tracing::debug!(target: "shoal::upstream", server = link.name(), %uri, %error, "could not subscribe");
            }
        }
        for uri in applied.difference(&target) {
            link.set_subscribed(uri, false);
            let params = Some(uri_params(uri));
            let _ = link.request(Method::ResourcesUnsubscribe, params).await;
        }
        if wanted.changed().await.is_err() {
            return;
        }
    }
}

/// Subscribes over a connection to what is watched by now: some servers tell a change only in the session that caused it. Resources
/// that the server has not let Shoal itself watch over `lead` are left out: the server may show them to this caller alone.
pub(crate) async fn catch_up(link: &Arc<Link>, lead: &Link, subscriptions: &Subscriptions) {
    if subscriptions.uris.borrow().is_empty() || !link.greeting().offers("resources", "subscribe") {
        return;
    }
    let wanted = &*subscriptions.uris.borrow() & &lead.subscribed();
    let applied = link.subscribed();
    let missing = wanted.difference(&applied).take(CAUGHT_UP);
    let subscribing = missing.map(|uri| subscribe(link, uri));
    // One that fails is missing the next time.
    futures::future::join_all(subscribing).await;
}

/// Subscribes one server (legacy).
pub(crate) async fn subscribe(link: &Arc<Link>, uri: &str) -> Result<(), RequestError> {
    let params = Some(uri_params(uri));
    link.request(Method::ResourcesSubscribe, params).await?;
    link.set_subscribed(uri, true);
    Ok(())
}

fn uri_params(uri: &str) -> RawJson {
    let mut params = RawObject::default();
    params.set("uri", RawJson::of(uri));
    params.to_json()
}

async fn keep_modern(link: &Arc<Link>, mut wanted: watch::Receiver<BTreeSet<String>>) {
    let mut outdated: Option<RequestHandle> = None;
    loop {
        let uris = wanted.borrow_and_update().clone();
        let opened = link.open(Method::Listen, Some(listen_params(link, &uris)));
        let Ok(mut stream) = opened.await else { return };
        // Dropping the former stream cancels it. The server reads that after it has opened the new
        // one, so a change in between is told twice rather than not at all.
        drop(outdated.take());
        let ended = tokio::select! {
            outcome = stream.outcome() => outcome,
            changed = wanted.changed() => match changed {
                Ok(()) => {
                    outdated = Some(stream);
                    continue;
                }
                Err(_) => return,
            },
        };
        match ended {
            RequestOutcome::Lost { .. } if link.pending.ended().is_some() => return,
            RequestOutcome::Answered(Outcome::Error(error))
                if error.code == code::METHOD_NOT_FOUND =>
            {
                return;
            }
            _ => {
                tokio::time::sleep(REOPEN).await;
                // What changed meanwhile was not told.
                link.lists_may_have_changed();
            }
        }
    }
}

fn listen_params(link: &Link, uris: &BTreeSet<String>) -> RawJson {
    let yes = RawJson::from_static("true");
    let mut filter = RawObject::default();
    for kind in [
        "toolsListChanged",
        "promptsListChanged",
        "resourcesListChanged",
    ] {
        filter.set(kind, yes.clone());
    }
    if !uris.is_empty() {
        filter.set("resourceSubscriptions", RawJson::of(uris));
    }
    let mut params = RawObject::default();
    params.set("notifications", filter.to_json());
    link.with_own_meta(params)
}
