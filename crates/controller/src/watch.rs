//! Watches the Kubernetes objects at the API server.

mod objects;
mod source;

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

use self::objects::{MOST_BYTES, Objects};
use self::source::Source;
use crate::config::{EVERY_NAMESPACE, KubernetesConfig};
use crate::kind::Kind;
use crate::object::Object;

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
                let other = gone && !(source.listed && source.objects.is_empty());
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
        let taken: usize = others.map(|(_, source)| source.objects.bytes()).sum();
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
        let objects = known.values().flat_map(|source| source.objects.iter());
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
                objects: source.objects.len(),
                missing: source.missing > 0,
                trouble: source.trouble(),
            });
        report.collect()
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

    use super::Sources;
    use super::objects::MOST_BYTES;
    use super::source::Source;
    use crate::config::KubernetesConfig;
    use crate::kind::Kind;
    use crate::object::Object;

    /// Makes a Service with a path of so many characters.
    pub(in crate::watch) fn service(namespace: &str, name: &str, path: usize) -> DynamicObject {
        let resource: &ApiResource = &Kind::Service.resources()[0];
        let mut object = DynamicObject::new(name, resource).within(namespace);
        let label = ("shoal.dev/server".to_owned(), "true".to_owned());
        object.metadata.labels = Some([label].into());
        let long = ("shoal.dev/path".to_owned(), "x".repeat(path));
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
            Arc::clone(source.objects.get("team-a", "same").unwrap())
        };
        let (first, second) = (list(&mut source), list(&mut source));
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(source.objects.bytes(), first.bytes());
    }
}
