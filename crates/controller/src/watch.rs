//! Watches the Kubernetes objects at the API server.

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

/// Maximum objects of one kind in one namespace, so that one namespace cannot displace objects of another.
const MOST_OBJECTS: usize = 2000;
/// Maximum bytes of all objects of one kind: about 40,000 Services.
const MOST_BYTES: usize = 16 << 20;
/// Maximum objects in a page of the API server's list. One object may have 1.5 MiB.
const PAGE: u32 = 50;
/// How often the API server may refuse to list a kind before a controller that starts continues without it.
const REFUSALS: usize = 3;

/// All objects that the controller knows, by kind and namespace.
#[derive(Default)]
pub(crate) struct Sources {
    known: Mutex<BTreeMap<(Kind, String), Source>>,
    pub(crate) changed: Notify,
}

#[derive(Default)]
struct Objects {
    known: BTreeMap<String, BTreeMap<String, Arc<Object>>>,
    bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum LeftOut {
    Namespace(String),
    Kind,
}

#[derive(Default)]
struct Source {
    objects: Objects,
    version: String,
    /// Whether the source has all its objects, or its kind is known to be missing.
    listed: bool,
    /// How often in a row the cluster lacked the kind, and how often the API server refused to list it.
    missing: usize,
    refused: usize,
    left_out: Option<LeftOut>,
    trouble: Option<String>,
}

/// A source in the report for operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceReport {
    /// The kind of object.
    pub kind: Kind,
    /// The namespace; `*` for all.
    pub namespace: String,
    /// The kind's API version in use.
    pub version: String,
    /// Number of objects in the source.
    pub objects: usize,
    /// Whether the cluster lacks this kind.
    pub missing: bool,
    /// Why objects of the source cannot be read, if so.
    pub trouble: Option<String>,
}

struct Missing;

impl Sources {
    /// Makes sources for all configured kinds and namespaces.
    pub(crate) fn of(config: &KubernetesConfig) -> Arc<Self> {
        let sources = Self::default();
        {
            let mut known = sources.known.lock();
            for namespace in &config.namespaces {
                for kind in &config.kinds {
                    known.insert((*kind, namespace.clone()), Source::default());
                    // Services are always watched, because the URLs of other kinds lead to them.
                    known.insert((Kind::Service, namespace.clone()), Source::default());
                }
            }
        }
        Arc::new(sources)
    }

    /// Watches all sources until the future is dropped.
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
                let events =
                    watcher(api, watcher::Config::default().page_size(PAGE)).default_backoff();
                self.change(&id, |source| {
                    source.version = resource.version.clone();
                    false
                });
                let Missing = self.take(&id, &resource.api_version, events).await;
            }
            self.change(&id, |source| {
                source.missing += 1;
                // Wait for a second failure, because an API server that starts may lack the kind for a moment.
                let gone = source.missing > 1 || !source.listed;
                let other = gone && !(source.listed && source.objects.known.is_empty());
                if gone {
                    source.objects = Objects::default();
                    source.listed = true;
                }
                source.trouble = None;
                other
            });
            tokio::time::sleep(retry).await;
        }
    }

    /// Applies a source's events until the cluster lacks its kind.
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
                Ok(event) => {
                    let room = self.room(id);
                    self.change(id, |source| {
                        source.see((id.0, api_version), event, &mut listing, room)
                    });
                }
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

    /// Returns the bytes that a source may take, given the same kind's objects in other namespaces.
    fn room(&self, id: &(Kind, String)) -> usize {
        let known = self.known.lock();
        let others = known
            .iter()
            .filter(|(other, _)| other.0 == id.0 && *other != id);
        let taken: usize = others.map(|(_, source)| source.objects.bytes).sum();
        MOST_BYTES.saturating_sub(taken)
    }

    /// Applies `change` to a source, and tells the controller if `change` returns `true`.
    fn change(&self, id: &(Kind, String), change: impl FnOnce(&mut Source) -> bool) {
        if self.known.lock().get_mut(id).is_some_and(change) {
            self.changed.notify_one();
        }
    }

    /// Whether every source has been listed once.
    pub(crate) fn listed(&self) -> bool {
        self.known.lock().values().all(|source| source.listed)
    }

    pub(crate) fn objects(&self) -> Vec<Arc<Object>> {
        let known = self.known.lock();
        let namespaces = known
            .values()
            .flat_map(|source| source.objects.known.values());
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
                objects: source.objects.known.values().map(BTreeMap::len).sum(),
                missing: source.missing > 0,
                trouble: source.trouble.clone().or_else(|| {
                    Some(match source.left_out.as_ref()? {
                        LeftOut::Namespace(namespace) => {
                            format!("objects are left out: the namespace {namespace} has more than {MOST_OBJECTS}")
                        }
                        LeftOut::Kind => {
                            let most = MOST_BYTES >> 20;
                            format!("objects are left out: those of this kind take more than {most} MiB. Name fewer namespaces")
                        }
                    })
                }),
            });
        report.collect()
    }
}

impl Source {
    /// Applies an event within `room` bytes. `listing` collects a new list, which replaces all objects when it is
    /// complete. Returns whether the objects changed.
    fn see(
        &mut self,
        (kind, api_version): (Kind, &str),
        event: Event<DynamicObject>,
        listing: &mut Option<Objects>,
        room: usize,
    ) -> bool {
        match event {
            Event::Init => {
                *listing = Some(Objects::default());
                self.left_out = None;
                return false;
            }
            Event::InitApply(object) => {
                let object = Object::of(kind, api_version, &object);
                if let (Some(listing), Some(object)) = (listing, object) {
                    let object = self
                        .objects
                        .get_same(&object)
                        .unwrap_or_else(|| object.into());
                    self.left_out = listing.keep(object, room).err().or(self.left_out.take());
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
                    let left_out = self.objects.keep(object.into(), room).err();
                    self.left_out = left_out.or(self.left_out.take());
                }
                self.trouble = None;
            }
            Event::Delete(object) => {
                let metadata = object.metadata;
                let (namespace, name) = (metadata.namespace, metadata.name);
                let (namespace, name) = (namespace.unwrap_or_default(), name.unwrap_or_default());
                self.objects.remove(&namespace, &name);
            }
        }
        true
    }
}

impl Objects {
    fn get_same(&self, object: &Object) -> Option<Arc<Object>> {
        let known = self.known.get(&object.namespace)?.get(&object.name)?;
        (**known == *object).then(|| Arc::clone(known))
    }

    /// Keeps an object in place of its predecessor, if all objects then fit into `room` bytes.
    ///
    /// # Errors
    ///
    /// Returns why the object was left out.
    fn keep(&mut self, object: Arc<Object>, room: usize) -> Result<(), LeftOut> {
        self.remove(&object.namespace, &object.name);
        let bytes = object.bytes();
        if self.bytes + bytes > room {
            return Err(LeftOut::Kind);
        }
        let objects = self.known.entry(object.namespace.clone()).or_default();
        if objects.len() >= MOST_OBJECTS {
            return Err(LeftOut::Namespace(object.namespace.clone()));
        }
        objects.insert(object.name.clone(), object);
        self.bytes += bytes;
        Ok(())
    }

    fn remove(&mut self, namespace: &str, name: &str) {
        let Some(objects) = self.known.get_mut(namespace) else {
            return;
        };
        if let Some(removed) = objects.remove(name) {
            self.bytes -= removed.bytes();
        }
        if objects.is_empty() {
            self.known.remove(namespace);
        }
    }
}

fn api(client: &Client, namespace: &str, resource: &ApiResource) -> Api<DynamicObject> {
    match namespace {
        EVERY_NAMESPACE => Api::all_with(client.clone(), resource),
        namespace => Api::namespaced_with(client.clone(), namespace, resource),
    }
}

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
    use std::sync::Arc;

    use kube::core::{ApiResource, DynamicObject};
    use kube::runtime::watcher::Event;

    use super::{LeftOut, MOST_BYTES, MOST_OBJECTS, Source, Sources};
    use crate::config::KubernetesConfig;
    use crate::kind::Kind;
    use crate::object::Object;

    #[test]
    fn a_namespace_with_many_objects_pushes_out_those_of_no_other() {
        let resource: &ApiResource = &Kind::Service.resources()[0];
        let mut source = Source::default();
        let mut see = |namespace: &str, name: &str| {
            let object = DynamicObject::new(name, resource).within(namespace);
            source.see(
                (Kind::Service, "v1"),
                Event::Apply(object),
                &mut None,
                MOST_BYTES,
            );
        };
        for at in 0..=MOST_OBJECTS {
            see("team-a", &format!("s{at}"));
        }
        see("team-b", "weather");
        let known = &source.objects.known;
        assert_eq!(known["team-a"].len(), MOST_OBJECTS);
        assert!(known["team-b"].contains_key("weather"));
        assert_eq!(
            source.left_out,
            Some(LeftOut::Namespace("team-a".to_owned()))
        );
        let gone = DynamicObject::new("weather", resource).within("team-b");
        source.see(
            (Kind::Service, "v1"),
            Event::Delete(gone),
            &mut None,
            MOST_BYTES,
        );
        assert!(!source.objects.known.contains_key("team-b"));
    }

    fn service(namespace: &str, name: &str, annotation: usize) -> DynamicObject {
        let resource: &ApiResource = &Kind::Service.resources()[0];
        let mut object = DynamicObject::new(name, resource).within(namespace);
        let label = ("shoal.dev/server".to_owned(), "true".to_owned());
        object.metadata.labels = Some([label].into());
        let long = ("shoal.dev/path".to_owned(), "x".repeat(annotation));
        object.metadata.annotations = Some([long].into());
        object
    }

    #[test]
    fn the_objects_of_a_kind_take_so_many_bytes_in_all_namespaces() {
        let one = Object::of(Kind::Service, "v1", &service("team-a", "s0", 500)).unwrap();
        let sources = Sources::of(&KubernetesConfig {
            namespaces: ["team-a", "team-b"].map(str::to_owned).to_vec(),
            ..KubernetesConfig::default()
        });
        let id = |namespace: &str| (Kind::Service, namespace.to_owned());
        let see = |namespace: &str, object: DynamicObject| {
            let room = sources.room(&id(namespace)).min(one.bytes() * 3);
            sources.change(&id(namespace), |source| {
                source.see((Kind::Service, "v1"), Event::Apply(object), &mut None, room)
            });
        };
        let names = || {
            sources
                .objects()
                .iter()
                .map(|it| it.name.clone())
                .collect::<Vec<_>>()
        };
        for name in ["s0", "s1", "s2", "s3"] {
            see("team-a", service("team-a", name, 500));
        }
        assert_eq!(names(), ["s0", "s1", "s2"]);
        see("team-a", service("team-a", "s1", 600));
        assert_eq!(names(), ["s0", "s2"]);
        see("team-a", service("team-a", "s1", 500));
        assert_eq!(names(), ["s0", "s1", "s2"]);
        let all = one.bytes() * 3;
        assert_eq!(sources.room(&id("team-b")), MOST_BYTES - all);
        assert_eq!(sources.room(&id("team-a")), MOST_BYTES);
        let left_out = sources.report().into_iter().find_map(|it| it.trouble);
        assert!(left_out.unwrap().contains("take more than 16 MiB"));
        let long = Object::of(Kind::Service, "v1", &service("team-a", "s4", 10_000_000));
        assert!(long.unwrap().bytes() < 2_000, "an annotation is cut");
    }

    #[test]
    fn an_object_that_is_as_it_was_is_kept_once_while_all_are_listed_again() {
        let mut source = Source::default();
        let mut listing = None;
        let mut list = |source: &mut Source| {
            for event in [
                Event::Init,
                Event::InitApply(service("team-a", "same", 1)),
                Event::InitDone,
            ] {
                source.see((Kind::Service, "v1"), event, &mut listing, MOST_BYTES);
            }
            Arc::clone(&source.objects.known["team-a"]["same"])
        };
        let (first, second) = (list(&mut source), list(&mut source));
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(source.objects.bytes, first.bytes());
    }
}
