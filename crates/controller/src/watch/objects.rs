//! The objects of a source, within limits.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::mem;
use std::sync::Arc;

use crate::object::Object;

/// Maximum objects of one kind in one namespace.
pub(super) const MOST_OBJECTS: usize = 2000;
/// Maximum bytes of all objects of one kind: about 40,000 Services.
pub(super) const MOST_BYTES: usize = 16 << 20;
/// Maximum bytes of the objects of one kind in one namespace, so that one namespace cannot displace objects of
/// another.
pub(super) const MOST_NAMESPACE_BYTES: usize = MOST_BYTES / 8;

#[derive(Default)]
pub(super) struct Objects {
    namespaces: BTreeMap<String, Namespace>,
    bytes: usize,
    left_out: BTreeSet<LeftOut>,
}

#[derive(Default)]
struct Namespace {
    objects: BTreeMap<String, Entry>,
    bytes: usize,
}

struct Entry {
    object: Arc<Object>,
    /// Whether the list in progress contains the object.
    listed: bool,
}

/// The limit that left out objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LeftOut {
    Namespace(String),
    Kind,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Namespace(namespace) => {
                let most = MOST_NAMESPACE_BYTES >> 20;
                write!(
                    f,
                    "objects are left out: the namespace {namespace} has more than {MOST_OBJECTS} of this kind, or they take more than {most} MiB. Spread them over several namespaces"
                )
            }
            Self::Kind => {
                let most = MOST_BYTES >> 20;
                write!(
                    f,
                    "objects are left out: those of this kind take more than {most} MiB. Name fewer namespaces"
                )
            }
        }
    }
}

impl Objects {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Object>> {
        let namespaces = self.namespaces.values();
        let entries = namespaces.flat_map(|namespace| namespace.objects.values());
        entries.map(|entry| &entry.object)
    }

    pub(super) fn len(&self) -> usize {
        let namespaces = self.namespaces.values();
        namespaces.map(|namespace| namespace.objects.len()).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.namespaces.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The limits that left out objects since these objects were listed.
    pub(super) fn left_out(&self) -> &BTreeSet<LeftOut> {
        &self.left_out
    }

    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<&Arc<Object>> {
        let entry = self.namespaces.get(namespace)?.objects.get(name)?;
        Some(&entry.object)
    }

    /// Adds an object or replaces its old version, if all objects then fit into `room` bytes and into the limits of the
    /// namespace. Otherwise, the old version stays. Returns whether the object fitted.
    pub(super) fn keep(&mut self, object: Arc<Object>, room: usize) -> bool {
        match self.place(object, room) {
            Ok(()) => true,
            Err(why) => {
                self.left_out.insert(why);
                false
            }
        }
    }

    /// Adds or replaces an object as [`keep`](Self::keep) does, but does not record the limit that leaves it out.
    ///
    /// # Errors
    ///
    /// Returns the limit if the object does not fit.
    pub(super) fn place(&mut self, object: Arc<Object>, room: usize) -> Result<(), LeftOut> {
        let old = self.get(&object.namespace, &object.name);
        let (is_new, old) = (old.is_none(), old.map_or(0, |old| old.bytes()));
        let bytes = object.bytes();
        // A version that is not larger than the old one always fits, even if the room has become smaller meanwhile.
        if bytes > old {
            let namespace = self.namespaces.get(&object.namespace);
            let (count, taken) = namespace.map_or((0, 0), |it| (it.objects.len(), it.bytes));
            let is_full = is_new && count >= MOST_OBJECTS;
            if is_full || taken - old + bytes > MOST_NAMESPACE_BYTES {
                return Err(LeftOut::Namespace(object.namespace.clone()));
            }
            if self.bytes - old + bytes > room {
                return Err(LeftOut::Kind);
            }
        }
        let namespace = self.namespaces.entry(object.namespace.clone()).or_default();
        let name = object.name.clone();
        let entry = Entry {
            object,
            listed: true,
        };
        namespace.objects.insert(name, entry);
        namespace.bytes = namespace.bytes - old + bytes;
        self.bytes = self.bytes - old + bytes;
        Ok(())
    }

    pub(super) fn remove(&mut self, namespace: &str, name: &str) {
        let Some(of) = self.namespaces.get_mut(namespace) else {
            return;
        };
        if let Some(removed) = of.objects.remove(name) {
            of.bytes -= removed.object.bytes();
            self.bytes -= removed.object.bytes();
        }
        if of.objects.is_empty() {
            self.namespaces.remove(namespace);
        }
    }

    /// Begins a list. All objects stay until [`end_list`](Self::end_list), so that no listed object takes the place of
    /// a known one.
    pub(super) fn begin_list(&mut self) {
        let namespaces = self.namespaces.values_mut();
        for entry in namespaces.flat_map(|namespace| namespace.objects.values_mut()) {
            entry.listed = false;
        }
    }

    /// Marks a known object as listed and returns it.
    pub(super) fn mark_listed(&mut self, namespace: &str, name: &str) -> Option<&Arc<Object>> {
        let namespace = self.namespaces.get_mut(namespace)?;
        let entry = namespace.objects.get_mut(name)?;
        entry.listed = true;
        Some(&entry.object)
    }

    /// Ends a list. Removes the objects that were not listed, then adds the waiting objects within `room` bytes:
    /// new versions of known objects first, then new objects. Returns the limits that left out objects before.
    pub(super) fn end_list(&mut self, waiting: Self, room: usize) -> BTreeSet<LeftOut> {
        self.remove_unlisted();
        let before = mem::replace(&mut self.left_out, waiting.left_out);
        let waiting = waiting.namespaces.into_values();
        let waiting = waiting.flat_map(|namespace| namespace.objects.into_values());
        let (known, new): (Vec<_>, Vec<_>) = waiting
            .map(|entry| entry.object)
            .partition(|it| self.get(&it.namespace, &it.name).is_some());
        for object in known.into_iter().chain(new) {
            self.keep(object, room);
        }
        before
    }

    fn remove_unlisted(&mut self) {
        let mut removed = 0;
        self.namespaces.retain(|_, namespace| {
            let bytes = namespace.bytes;
            let left = &mut namespace.bytes;
            namespace.objects.retain(|_, entry| {
                if !entry.listed {
                    *left -= entry.object.bytes();
                }
                entry.listed
            });
            removed += bytes - *left;
            !namespace.objects.is_empty()
        });
        self.bytes -= removed;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{LeftOut, MOST_BYTES, MOST_NAMESPACE_BYTES, MOST_OBJECTS, Objects};
    use crate::object::Object;
    use crate::watch::tests::service;

    fn object(namespace: &str, name: &str, path: usize) -> Arc<Object> {
        Object::of(
            shoal_ports::kubernetes::ServerKind::Service,
            "v1",
            &service(namespace, name, path),
        )
        .unwrap()
        .into()
    }

    fn of_team_a() -> LeftOut {
        LeftOut::Namespace("team-a".to_owned())
    }

    #[test]
    fn a_namespace_with_many_objects_pushes_out_those_of_no_other() {
        let mut objects = Objects::default();
        for at in 0..=MOST_OBJECTS {
            let fitted = objects.keep(object("team-a", &format!("s{at}"), 0), MOST_BYTES);
            assert_eq!(fitted, at < MOST_OBJECTS, "{at}");
        }
        assert!(objects.keep(object("team-b", "weather", 0), MOST_BYTES));
        assert_eq!(objects.len(), MOST_OBJECTS + 1);
        assert!(objects.left_out().iter().eq([&of_team_a()]));
        objects.remove("team-b", "weather");
        assert!(!objects.namespaces.contains_key("team-b"));
        assert_eq!(objects.bytes, objects.namespaces["team-a"].bytes);
    }

    #[test]
    fn a_namespace_with_long_objects_pushes_out_those_of_no_other() {
        let mut objects = Objects::default();
        let mut at = 0;
        while objects.keep(object("team-a", &format!("s{at}"), 1000), MOST_BYTES) {
            at += 1;
        }
        assert!(at < MOST_OBJECTS, "the bytes are the limit");
        assert!(objects.left_out().iter().eq([&of_team_a()]));
        assert!(objects.bytes() <= MOST_NAMESPACE_BYTES);
        assert!(objects.keep(object("team-b", "weather", 1000), MOST_BYTES));
    }

    #[test]
    fn an_object_whose_next_form_does_not_fit_stays_as_it_was() {
        let old = object("team-a", "weather", 100);
        let mut objects = Objects::default();
        let room = old.bytes();
        assert!(objects.keep(Arc::clone(&old), room));
        assert!(!objects.keep(object("team-a", "weather", 101), room));
        assert!(Arc::ptr_eq(objects.get("team-a", "weather").unwrap(), &old));
        assert_eq!(objects.bytes(), old.bytes());
        assert!(objects.left_out().iter().eq([&LeftOut::Kind]));
        assert!(objects.keep(object("team-a", "weather", 99), room - 1));
        assert_eq!(objects.bytes(), room - 1);
    }
}
