//! Subscribes at the server to the watched resources.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use shoal_protocol::{Era, Method, Outcome, RawJson, RawObject, code};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::error::RequestError;
use super::link::{RequestHandle, ServerLink};
use super::pending::RequestOutcome;
use super::subscriptions::ServerSubscriptions;

const CAUGHT_UP: usize = 16;
const REOPEN: Duration = Duration::from_secs(1);

pub(crate) async fn keep(
    link: Arc<ServerLink>,
    subscriptions: Arc<ServerSubscriptions>,
    ended: CancellationToken,
) {
    let wanted = subscriptions.wanted();
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

async fn keep_legacy(link: &Arc<ServerLink>, mut wanted: watch::Receiver<BTreeSet<String>>) {
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
pub(crate) async fn catch_up(
    link: &Arc<ServerLink>,
    lead: &ServerLink,
    subscriptions: &ServerSubscriptions,
) {
    if subscriptions.is_empty() || !link.greeting().offers("resources", "subscribe") {
        return;
    }
    let wanted = subscriptions.among(&lead.subscribed());
    let applied = link.subscribed();
    let missing = wanted.difference(&applied).take(CAUGHT_UP);
    let subscribing = missing.map(|uri| subscribe(link, uri));
    // If a subscription failed, the next catch-up tries again.
    futures::future::join_all(subscribing).await;
}

pub(crate) async fn subscribe(link: &Arc<ServerLink>, uri: &str) -> Result<(), RequestError> {
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

async fn keep_modern(link: &Arc<ServerLink>, mut wanted: watch::Receiver<BTreeSet<String>>) {
    let mut outdated: Option<RequestHandle> = None;
    loop {
        let uris = wanted.borrow_and_update().clone();
        let opened = link.open(Method::Listen, Some(listen_params(link, &uris)));
        let Ok(mut stream) = opened.await else { return };
        // Dropped after the new stream is open, so that changes are reported twice rather than
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

fn listen_params(link: &ServerLink, uris: &BTreeSet<String>) -> RawJson {
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
