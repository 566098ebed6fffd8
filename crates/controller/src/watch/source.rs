//! The objects of one kind in one namespace, or in all, and whether they can be read.

use std::sync::Arc;

use kube::core::DynamicObject;
use kube::runtime::watcher::Event;
use shoal_ports::kubernetes::ServerKind;

use super::objects::Objects;
use crate::object::Object;

#[derive(Default)]
pub(super) struct Source {
    pub(super) objects: Objects,
    /// The listed objects that wait for the end of the list in progress.
    pub(super) listing: Option<Objects>,
    pub(super) version: String,
    /// Whether the objects were listed once, or the kind is missing, or the API server refuses to list it.
    pub(super) listed: bool,
    /// Number of consecutive times that the cluster lacked the kind.
    pub(super) missing: usize,
    /// Number of times that the API server refused to list the kind since the last complete list.
    pub(super) refused: usize,
    pub(super) trouble: Option<String>,
}

impl Source {
    pub(super) fn trouble(&self) -> Option<String> {
        let left_out = self.objects.left_out().iter().map(ToString::to_string);
        let told: Vec<String> = self.trouble.iter().cloned().chain(left_out).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    /// Returns the bytes that count for the kind: those of the objects, or of the objects that wait for the end of the
    /// list, whichever are more.
    pub(super) fn bytes(&self) -> usize {
        let waiting = self.listing.as_ref().map_or(0, Objects::bytes);
        self.objects.bytes().max(waiting)
    }

    /// Applies an event within `room` bytes. Returns whether the objects may have changed.
    pub(super) fn see(
        &mut self,
        (kind, api_version): (ServerKind, &str),
        event: Event<DynamicObject>,
        room: usize,
    ) -> bool {
        let before = match event {
            Event::Init => {
                self.objects.begin_list();
                self.listing = Some(Objects::default());
                return false;
            }
            Event::InitApply(object) => {
                let object = Object::of(kind, api_version, &object);
                return object.is_some_and(|object| self.see_listed(object, room));
            }
            Event::InitDone => {
                let Some(waiting) = self.listing.take() else {
                    return false;
                };
                self.listed = true;
                (self.missing, self.refused) = (0, 0);
                self.trouble = None;
                self.objects.end_list(waiting, room)
            }
            Event::Apply(object) => {
                self.trouble = None;
                let Some(object) = Object::of(kind, api_version, &object) else {
                    return false;
                };
                let before = self.objects.left_out().clone();
                self.objects.keep(object.into(), room);
                before
            }
            Event::Delete(object) => {
                let metadata = object.metadata;
                let (namespace, name) = (metadata.namespace, metadata.name);
                let (namespace, name) = (namespace.unwrap_or_default(), name.unwrap_or_default());
                self.objects.remove(&namespace, &name);
                self.trouble = None;
                return true;
            }
        };
        for limit in self.objects.left_out().difference(&before) {
            tracing::warn!(kind = kind.as_str(), "{limit}");
        }
        true
    }

    /// Sees an object of the list in progress. A new version of a known object replaces the old one if it fits beside
    /// the other known objects. Otherwise, the version waits for the end of the list, as all new objects do. Returns
    /// whether the known objects changed.
    fn see_listed(&mut self, object: Object, room: usize) -> bool {
        let Some(waiting) = &mut self.listing else {
            return false;
        };
        let known = self.objects.mark_listed(&object.namespace, &object.name);
        let is_new = known.is_none();
        if known.is_some_and(|known| **known == object) {
            return false;
        }
        let object = Arc::new(object);
        if is_new || self.objects.place(Arc::clone(&object), room).is_err() {
            waiting.keep(object, room);
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests;
