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
use shoal_ports::kubernetes::{EVERY_NAMESPACE, KubernetesSettings, ServerKind};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use self::objects::{MOST_BYTES, Objects};
use self::source::Source;
use crate::kind::resources;
use crate::object::Object;

/// Maximum objects in a page of the API server's list. One object may have 1.5 MiB.
const PAGE: u32 = 50;
/// How often the API server may refuse to list a kind before a starting controller continues without it.
const REFUSALS: usize = 3;

/// How long the controller waits before it lists a kind again if limits left out some of its objects, or if reading
/// them failed.
const LIST_AGAIN: Duration = Duration::from_secs(600);

/// All objects that the controller knows, by kind and namespace.
#[derive(Default)]
pub(crate) struct Sources {
    known: Mutex<BTreeMap<(ServerKind, String), Source>>,
    pub(crate) changed: Notify,
}

/// A source (a kind in one namespace, or in all) in the report for operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceReport {
    /// The kind of object.
    pub kind: ServerKind,
    /// The namespace; `*` for all.
    pub namespace: String,
    /// The kind's API version in use.
    pub version: String,
    /// Number of objects in the source.
    pub objects: usize,
    /// Whether the cluster lacks this kind.
    pub missing: bool,
    /// Why objects of the source cannot be read, or were left out, if so.
    pub trouble: Option<String>,
}

/// Why a source's events ended.
#[derive(Debug, PartialEq)]
enum End {
    /// The cluster lacks the kind.
    Missing,
    /// Limits left out objects that may fit by now, or the last event was an error.
    ListAgain,
}

impl Sources {
    pub(crate) fn of(config: &KubernetesSettings) -> Arc<Self> {
        let sources = Self::default();
        {
            let mut known = sources.known.lock();
            for namespace in &config.namespaces {
                for kind in &config.kinds {
                    known.insert((*kind, namespace.clone()), Source::default());
                    // Services are always watched, because the URLs of other kinds lead to them.
                    known.insert((ServerKind::Service, namespace.clone()), Source::default());
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

    async fn follow_one(
        &self,
        client: Client,
        kind: ServerKind,
        namespace: String,
        retry: Duration,
    ) {
        let id = (kind, namespace);
        loop {
            for resource in resources(kind) {
                let api = api(&client, &id.1, &resource);
                let events = || {
                    watcher(api.clone(), watcher::Config::default().page_size(PAGE))
                        .default_backoff()
                };
                self.change(&id, |source| {
                    source.version = resource.version.clone();
                    false
                });
                while self.take(&id, &resource.api_version, events()).await == End::ListAgain {}
            }
            self.change(&id, |source| {
                source.missing += 1;
                // A kind that was listed is gone only after a second failure, because an API server that starts may
                // lack it for a moment.
                let gone = source.missing > 1 || !source.listed;
                let other = gone && !(source.listed && source.objects.is_empty());
                if gone {
                    source.objects = Objects::default();
                    source.listed = true;
                }
                source.trouble = None;
                other
            });
            sleep(retry).await;
        }
    }

    /// Applies a source's events until the cluster lacks its kind, or until it is time to list again.
    async fn take(
        &self,
        id: &(ServerKind, String),
        api_version: &str,
        events: impl Stream<Item = watcher::Result<Event<DynamicObject>>>,
    ) -> End {
        let mut events = pin!(events);
        let mut again = pin!(sleep(LIST_AGAIN));
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = &mut again => {
                    if self.wants_list(id) {
                        return End::ListAgain;
                    }
                    again.as_mut().reset(Instant::now() + LIST_AGAIN);
                    continue;
                }
            };
            let Some(event) = event else {
                return End::Missing;
            };
            match event {
                Ok(event) => self.apply(id, api_version, event),
                Err(error) => {
                    // After an error, the watcher begins an unfinished list again, from the first page.
                    self.change(id, |source| {
                        source.listing = None;
                        false
                    });
                    if code(&error) == Some(404) {
                        return End::Missing;
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
    }

    /// Whether limits left out objects of the last complete list or of later changes, or reading failed. After a failed
    /// request, a watch of objects that do not change gives no sign that it works again, but a list does. Returns
    /// `false` while a list is in progress.
    fn wants_list(&self, id: &(ServerKind, String)) -> bool {
        let known = self.known.lock();
        known.get(id).is_some_and(|it| {
            it.listing.is_none() && (it.trouble.is_some() || !it.objects.left_out().is_empty())
        })
    }

    /// Applies an event to a source. The source's objects may take the bytes that the kind's other sources leave.
    fn apply(&self, id: &(ServerKind, String), api_version: &str, event: Event<DynamicObject>) {
        let mut known = self.known.lock();
        let others = known
            .iter()
            .filter(|(other, _)| other.0 == id.0 && *other != id);
        let taken: usize = others.map(|(_, source)| source.bytes()).sum();
        let room = MOST_BYTES.saturating_sub(taken);
        let source = known.get_mut(id);
        if source.is_some_and(|source| source.see((id.0, api_version), event, room)) {
            self.changed.notify_one();
        }
    }

    /// Applies `change` to a source, and wakes the controller if `change` returns `true`.
    fn change(&self, id: &(ServerKind, String), change: impl FnOnce(&mut Source) -> bool) {
        if self.known.lock().get_mut(id).is_some_and(change) {
            self.changed.notify_one();
        }
    }

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
    use std::time::Duration;

    use futures::stream::{self, StreamExt as _};
    use kube::core::{ApiResource, DynamicObject};
    use kube::runtime::watcher::{self, Event};
    use shoal_ports::kubernetes::{KubernetesSettings, ServerKind};
    use tokio::time::timeout;

    use super::{End, Sources};
    use crate::kind::resources;
    use crate::object::Object;

    /// Makes a Service with a path of so many characters.
    pub(in crate::watch) fn service(namespace: &str, name: &str, path: usize) -> DynamicObject {
        let resource: &ApiResource = &resources(ServerKind::Service)[0];
        let mut object = DynamicObject::new(name, resource).within(namespace);
        let label = ("shoal.dev/server".to_owned(), "true".to_owned());
        object.metadata.labels = Some([label].into());
        let long = ("shoal.dev/path".to_owned(), "x".repeat(path));
        object.metadata.annotations = Some([long].into());
        object
    }

    fn id(namespace: &str) -> (ServerKind, String) {
        (ServerKind::Service, namespace.to_owned())
    }

    fn sources(namespaces: &[&str]) -> Arc<Sources> {
        Sources::of(&KubernetesSettings {
            namespaces: namespaces.iter().map(|it| (*it).to_owned()).collect(),
            ..KubernetesSettings::default()
        })
    }

    /// Adds objects until one is left out. Returns the number of objects that fitted.
    fn fill(
        sources: &Sources,
        namespace: &str,
        event: impl Fn(DynamicObject) -> Event<DynamicObject>,
    ) -> usize {
        for at in 0.. {
            let object = service(namespace, &format!("s{at}"), 1000);
            sources.apply(&id(namespace), "v1", event(object));
            let known = sources.known.lock();
            let source = &known[&id(namespace)];
            let objects = source.listing.as_ref().unwrap_or(&source.objects);
            if !objects.left_out().is_empty() {
                return at;
            }
        }
        unreachable!("no limit");
    }

    #[test]
    fn the_objects_of_a_kind_take_so_many_bytes_in_all_namespaces() {
        let namespaces = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        let sources = sources(&namespaces);
        let fitted = namespaces.map(|namespace| fill(&sources, namespace, Event::Apply));
        assert!(
            fitted[..8].iter().all(|fitted| *fitted > 1000),
            "{fitted:?}"
        );
        assert!(fitted[8] < 10, "{fitted:?}");
        assert_eq!(sources.objects().len(), fitted.iter().sum::<usize>());
        let told: Vec<String> = sources
            .report()
            .into_iter()
            .filter_map(|it| it.trouble)
            .collect();
        assert_eq!(told.len(), 9);
        assert!(
            told[0].contains("the namespace a has more than 2000"),
            "{told:?}"
        );
        assert!(told[8].contains("take more than 16 MiB"), "{told:?}");
    }

    #[test]
    fn lists_in_progress_take_their_bytes() {
        let namespaces = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        let sources = sources(&namespaces);
        let fitted = namespaces.map(|namespace| {
            sources.apply(&id(namespace), "v1", Event::Init);
            fill(&sources, namespace, Event::InitApply)
        });
        assert!(
            fitted[..8].iter().all(|fitted| *fitted > 1000),
            "{fitted:?}"
        );
        assert!(fitted[8] < 10, "{fitted:?}");
        for namespace in namespaces {
            sources.apply(&id(namespace), "v1", Event::InitDone);
        }
        assert_eq!(sources.objects().len(), fitted.iter().sum::<usize>());
    }

    #[test]
    fn an_object_that_is_as_it_was_is_kept_once_while_all_are_listed_again() {
        let sources = sources(&["a"]);
        let list = || {
            for event in [
                Event::Init,
                Event::InitApply(service("a", "same", 1)),
                Event::InitDone,
            ] {
                sources.apply(&id("a"), "v1", event);
            }
            sources.objects().remove(0)
        };
        let (first, second) = (list(), list());
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(sources.known.lock()[&id("a")].bytes(), first.bytes());
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_is_listed_again_while_objects_are_left_out() {
        let sources = sources(&["a"]);
        let long = Duration::from_secs(24 * 3600);
        let of_a = id("a");
        let quiet = || sources.take(&of_a, "v1", stream::pending());
        let ended = timeout(long, quiet()).await;
        assert!(ended.is_err(), "no object is left out");

        fill(&sources, "a", Event::Apply);
        assert_eq!(timeout(long, quiet()).await, Ok(End::ListAgain));
        let whole = [
            Event::Init,
            Event::InitApply(service("a", "s0", 1)),
            Event::InitDone,
        ];
        let whole = stream::iter(whole.map(Ok)).chain(stream::pending());
        let ended = timeout(long, sources.take(&id("a"), "v1", whole)).await;
        assert!(ended.is_err(), "every object has room");
        assert!(sources.report().iter().all(|it| it.trouble.is_none()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_trouble_that_is_over_is_forgotten() {
        let failed = || Err(watcher::Error::NoResourceVersion);
        let whole = || [Ok(Event::Init), Ok(Event::InitDone)];
        let long = Duration::from_secs(24 * 3600);
        let of_a = id("a");
        let trouble = |sources: &Sources| sources.known.lock()[&id("a")].trouble.clone();

        let quiet = sources(&["a"]);
        let events = stream::iter(whole().into_iter().chain([failed()]));
        let ended = quiet.take(&of_a, "v1", events.chain(stream::pending()));
        assert_eq!(timeout(long, ended).await, Ok(End::ListAgain));
        assert!(trouble(&quiet).is_some());
        let events = stream::iter(whole()).chain(stream::pending());
        let ended = timeout(long, quiet.take(&of_a, "v1", events)).await;
        assert!(ended.is_err(), "nothing is left to list again for");
        assert_eq!(trouble(&quiet), None);

        let deleting = sources(&["a"]);
        let deleted = Ok(Event::Delete(service("a", "s", 0)));
        let events = stream::iter(whole().into_iter().chain([failed(), deleted]));
        let ended = deleting.take(&of_a, "v1", events).await;
        assert_eq!(ended, End::Missing);
        assert_eq!(trouble(&deleting), None);
    }

    #[test]
    fn a_long_annotation_is_cut() {
        let long = Object::of(ServerKind::Service, "v1", &service("a", "s", 10_000_000));
        assert!(long.unwrap().bytes() < 2_000);
    }
}
