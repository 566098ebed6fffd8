//! The objects as the API server tells of them.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use kube::Client;
use kube::api::{Api, ApiResource};
use kube::core::DynamicObject;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::Notify;

use crate::config::{EVERY_NAMESPACE, KubernetesConfig};
use crate::kind::Kind;
use crate::object::Object;

/// Objects that are kept of one kind and namespace, so that the objects of one namespace push out those of no other.
const MOST_OBJECTS: usize = 2000;
/// How often the API server may refuse to list a kind before a controller that starts goes on without it.
const REFUSALS: usize = 3;

/// All objects, as far as they are known.
#[derive(Default)]
pub(crate) struct Sources {
    known: Mutex<BTreeMap<(Kind, String), Source>>,
    pub(crate) changed: Notify,
}

/// Objects by namespace and name.
type Objects = BTreeMap<String, BTreeMap<String, Object>>;

/// The objects of one kind, in one namespace or in all.
#[derive(Default)]
struct Source {
    objects: Objects,
    version: String,
    /// Whether all of them are known, or it is known that there are none.
    listed: bool,
    /// How often in a row the kind was not there, and how often the API server refused to list it.
    missing: usize,
    refused: usize,
    /// A namespace with more objects than are kept.
    left_out: Option<String>,
    trouble: Option<String>,
}

/// A source in the report for operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceReport {
    /// The kind of object.
    pub kind: Kind,
    /// The namespace; `*` for all.
    pub namespace: String,
    /// The version of the API by which it is read.
    pub version: String,
    /// How many objects there are.
    pub objects: usize,
    /// Whether the cluster has this kind.
    pub missing: bool,
    /// Why the objects cannot be read, or not all of them.
    pub trouble: Option<String>,
}

/// Why a watch was given up.
struct Missing;

impl Sources {
    /// Every kind and namespace that the configuration names.
    pub(crate) fn of(config: &KubernetesConfig) -> Arc<Self> {
        let sources = Self::default();
        {
            let mut known = sources.known.lock();
            for namespace in &config.namespaces {
                for kind in &config.kinds {
                    known.insert((*kind, namespace.clone()), Source::default());
                    // The Services behind the URLs of the others.
                    known.insert((Kind::Service, namespace.clone()), Source::default());
                }
            }
        }
        Arc::new(sources)
    }

    /// Follows all of them until this is dropped.
    pub(crate) async fn follow(self: Arc<Self>, client: Client, retry: Duration) {
        let all: Vec<_> = self.known.lock().keys().cloned().collect();
        let followed = all.into_iter().map(|(kind, namespace)| {
            let (sources, client) = (Arc::clone(&self), client.clone());
            async move { sources.follow_one(client, kind, namespace, retry).await }
        });
        futures::future::join_all(followed).await;
    }

    async fn follow_one(&self, client: Client, kind: Kind, namespace: String, retry: Duration) {
        let id = (kind, namespace);
        loop {
            for resource in kind.resources() {
                let api = api(&client, &id.1, &resource);
                let events = watcher(api, watcher::Config::default()).default_backoff();
                self.change(&id, |source| {
                    source.version = resource.version.clone();
                    false
                });
                let Missing = self.take(&id, &resource.api_version, events).await;
            }
            self.change(&id, |source| {
                source.missing += 1;
                // An API server that starts may not have the kind for a moment.
                let gone = source.missing > 1 || !source.listed;
                let other = gone && !(source.listed && source.objects.is_empty());
                if gone {
                    source.objects.clear();
                    source.listed = true;
                }
                source.trouble = None;
                other
            });
            tokio::time::sleep(retry).await;
        }
    }

    /// Takes what comes, until the kind is not there.
    async fn take(
        &self,
        id: &(Kind, String),
        api_version: &str,
        events: impl Stream<Item = watcher::Result<Event<DynamicObject>>>,
    ) -> Missing {
        let mut events = pin!(events);
        let mut listing = None;
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => self.change(id, |source| {
                    source.see((id.0, api_version), event, &mut listing)
                }),
                Err(error) => {
                    if code(&error) == Some(404) {
                        return Missing;
                    }
                    tracing::warn!(
                        kind = id.0.as_str(),
                        namespace = id.1,
                        "cannot read the objects: {error}"
                    );
                    self.change(id, |source| {
                        source.refused += usize::from(code(&error) == Some(403));
                        let begins = !source.listed && source.refused >= REFUSALS;
                        source.listed |= begins;
                        source.trouble = Some(error.to_string());
                        begins
                    });
                }
            }
        }
        Missing
    }

    /// `change` says whether there is something else to publish now.
    fn change(&self, id: &(Kind, String), change: impl FnOnce(&mut Source) -> bool) {
        if self.known.lock().get_mut(id).is_some_and(change) {
            self.changed.notify_one();
        }
    }

    /// Whether nothing is left to be listed for the first time.
    pub(crate) fn listed(&self) -> bool {
        self.known.lock().values().all(|source| source.listed)
    }

    /// The objects as they are now.
    pub(crate) fn objects(&self) -> Vec<Object> {
        let known = self.known.lock();
        let namespaces = known.values().flat_map(|source| source.objects.values());
        let objects = namespaces.flat_map(BTreeMap::values);
        objects.cloned().collect()
    }

    pub(crate) fn report(&self) -> Vec<SourceReport> {
        let known = self.known.lock();
        let report = known
            .iter()
            .map(|((kind, namespace), source)| SourceReport {
                kind: *kind,
                namespace: namespace.clone(),
                version: source.version.clone(),
                objects: source.objects.values().map(BTreeMap::len).sum(),
                missing: source.missing > 0,
                trouble: source.trouble.clone().or_else(|| {
                    let namespace = source.left_out.as_ref()?;
                    Some(format!("objects are left out: the namespace {namespace} has more than {MOST_OBJECTS}"))
                }),
            });
        report.collect()
    }
}

impl Source {
    /// `listing` is what a list has brought so far, which replaces all at its end. Returns whether other objects are known now.
    fn see(
        &mut self,
        (kind, api_version): (Kind, &str),
        event: Event<DynamicObject>,
        listing: &mut Option<Objects>,
    ) -> bool {
        match event {
            Event::Init => {
                *listing = Some(BTreeMap::new());
                self.left_out = None;
                return false;
            }
            Event::InitApply(object) => {
                let object = Object::of(kind, api_version, &object);
                if let (Some(listing), Some(object)) = (listing, object) {
                    keep(listing, object, &mut self.left_out);
                }
                return false;
            }
            Event::InitDone => {
                self.objects = listing.take().unwrap_or_default();
                self.listed = true;
                (self.missing, self.refused) = (0, 0);
                self.trouble = None;
            }
            Event::Apply(object) => {
                if let Some(object) = Object::of(kind, api_version, &object) {
                    keep(&mut self.objects, object, &mut self.left_out);
                }
                self.trouble = None;
            }
            Event::Delete(object) => {
                let metadata = object.metadata;
                let (namespace, name) = (metadata.namespace, metadata.name);
                let namespace = namespace.unwrap_or_default();
                if let Some(objects) = self.objects.get_mut(&namespace) {
                    objects.remove(&name.unwrap_or_default());
                    if objects.is_empty() {
                        self.objects.remove(&namespace);
                    }
                }
            }
        }
        true
    }
}

/// Keeps an object if its namespace has room. If not, the namespace is `left_out`.
fn keep(all: &mut Objects, object: Object, left_out: &mut Option<String>) {
    let objects = all.entry(object.namespace.clone()).or_default();
    if objects.len() >= MOST_OBJECTS && !objects.contains_key(&object.name) {
        *left_out = Some(object.namespace);
        return;
    }
    objects.insert(object.name.clone(), object);
}

fn api(client: &Client, namespace: &str, resource: &ApiResource) -> Api<DynamicObject> {
    match namespace {
        EVERY_NAMESPACE => Api::all_with(client.clone(), resource),
        namespace => Api::namespaced_with(client.clone(), namespace, resource),
    }
}

/// The status that the API server answered with.
fn code(error: &watcher::Error) -> Option<u16> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status.code),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use kube::core::{ApiResource, DynamicObject};
    use kube::runtime::watcher::Event;

    use super::{MOST_OBJECTS, Source};
    use crate::kind::Kind;

    #[test]
    fn a_namespace_with_many_objects_pushes_out_those_of_no_other() {
        let resource: &ApiResource = &Kind::Service.resources()[0];
        let mut source = Source::default();
        let mut see = |namespace: &str, name: &str| {
            let object = DynamicObject::new(name, resource).within(namespace);
            source.see((Kind::Service, "v1"), Event::Apply(object), &mut None);
        };
        for at in 0..=MOST_OBJECTS {
            see("team-a", &format!("s{at}"));
        }
        see("team-b", "weather");
        assert_eq!(source.objects["team-a"].len(), MOST_OBJECTS);
        assert!(source.objects["team-b"].contains_key("weather"));
        assert_eq!(source.left_out.as_deref(), Some("team-a"));
        let gone = DynamicObject::new("weather", resource).within("team-b");
        source.see((Kind::Service, "v1"), Event::Delete(gone), &mut None);
        assert!(!source.objects.contains_key("team-b"));
    }
}
