//! The objects of one kind in one namespace, or in all, and whether they can be read.

use std::sync::Arc;

use kube::core::DynamicObject;
use kube::runtime::watcher::Event;

use super::objects::Objects;
use crate::kind::Kind;
use crate::object::Object;

#[derive(Default)]
pub(super) struct Source {
    pub(super) objects: Objects,
    /// A list in progress, which replaces all objects when it is complete.
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

    /// The bytes that count for the kind: those of the objects or of the list that will replace them, whichever are
    /// more.
    pub(super) fn bytes(&self) -> usize {
        let listing = self.listing.as_ref().map_or(0, Objects::bytes);
        self.objects.bytes().max(listing)
    }

    /// Applies an event within `room` bytes. Returns whether the objects may have changed.
    pub(super) fn see(
        &mut self,
        (kind, api_version): (Kind, &str),
        event: Event<DynamicObject>,
        room: usize,
    ) -> bool {
        let before = self.objects.left_out().clone();
        match event {
            Event::Init => {
                self.listing = Some(Objects::default());
                return false;
            }
            Event::InitApply(object) => {
                let object = Object::of(kind, api_version, &object);
                if let (Some(listing), Some(object)) = (&mut self.listing, object) {
                    let old = self.objects.get(&object.namespace, &object.name);
                    let same = old.filter(|old| ***old == object);
                    let object = same.map_or_else(|| object.into(), Arc::clone);
                    if !listing.keep(object, room)
                        && let Some(old) = old
                    {
                        listing.keep(Arc::clone(old), room);
                    }
                }
                return false;
            }
            Event::InitDone => {
                self.objects = self.listing.take().unwrap_or_default();
                self.listed = true;
                (self.missing, self.refused) = (0, 0);
                self.trouble = None;
            }
            Event::Apply(object) => {
                if let Some(object) = Object::of(kind, api_version, &object) {
                    self.objects.keep(object.into(), room);
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
        for limit in self.objects.left_out().difference(&before) {
            tracing::warn!(kind = kind.as_str(), "{limit}");
        }
        true
    }
}
