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

const BACKLOG: usize = 1024;
const CAUGHT_UP: usize = 16;
const REOPEN: Duration = Duration::from_secs(1);

/// Changes of one resource within this time are reported once, because several connections may hear
/// of each.
const AS_ONE: Duration = Duration::from_millis(50);

pub(crate) struct Subscriptions {
    uris: watch::Sender<BTreeSet<String>>,
    updates: broadcast::Sender<ResourceUpdated>,
    told: Mutex<HashMap<String, Told>>,
}

struct Told {
    at: Instant,
    next: Option<RawJson>,
}

impl Subscriptions {
    pub(crate) fn new() -> Self {
        Self {
            uris: watch::Sender::new(BTreeSet::new()),
            updates: broadcast::Sender::new(BACKLOG),
            told: Mutex::default(),
        }
    }

    pub(crate) fn resource_updates(&self) -> broadcast::Receiver<ResourceUpdated> {
        self.updates.subscribe()
    }

    pub(crate) fn contains(&self, uri: &str) -> bool {
        self.uris.borrow().contains(uri)
    }

    pub(crate) fn add(&self, uri: &str) {
        self.uris
            .send_if_modified(|uris| uris.insert(uri.to_owned()));
    }

    pub(crate) fn remove(&self, uri: &str) {
        self.uris.send_if_modified(|uris| uris.remove(uri));
        self.told.lock().remove(uri);
    }

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
        let _ = self.updates.send(ResourceUpdated { uri, params });
    }
}

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
                tracing::debug!(target: "shoal::upstream", server = link.name(), %uri, %error, "cannot subscribe");
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

/// Subscribes on a new connection too, because some servers report a change only in the session that caused
/// it. Skips resources that `lead` could not watch, because they may be visible only to this caller.
pub(crate) async fn catch_up(link: &Arc<Link>, lead: &Link, subscriptions: &Subscriptions) {
    if subscriptions.uris.borrow().is_empty() || !link.greeting().offers("resources", "subscribe") {
        return;
    }
    let wanted = &*subscriptions.uris.borrow() & &lead.subscribed();
    let applied = link.subscribed();
    let missing = wanted.difference(&applied).take(CAUGHT_UP);
    let subscribing = missing.map(|uri| subscribe(link, uri));
    // The next catch-up retries failed subscriptions.
    futures::future::join_all(subscribing).await;
}

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
        // Dropped after the new stream is open, so that a change in between is reported twice rather than
        // missed.
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
                // The server could not report changes during the pause.
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
