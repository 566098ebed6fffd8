//! What the pools offer to clients.

use super::definition::{Attribute, Kind, definitions};
use super::instrument::Factory;
use super::known::{Known, NameKind};
use super::labels::{KIND, POOL, label, labels};
use super::observed::{Observed, Registration, float};

definitions! {
    ENTRIES = Kind::UpDownCounter, "shoal.catalog.entries", "{entry}",
        "What a pool offers.",
        [
            Attribute::configured(POOL, "the pools"),
            Attribute::one_of(KIND, EntryKind::VALUES),
        ];
    CONFLICTS = Kind::UpDownCounter, "shoal.catalog.conflicts", "{entry}",
        "Names that more than one pool offers; one of them is hidden.", [];
}

labels! {
    /// What a pool can offer.
    EntryKind {
        /// A tool.
        Tool = "tool",
        /// A prompt.
        Prompt = "prompt",
        /// A resource.
        Resource = "resource",
        /// A resource template.
        ResourceTemplate = "resource_template",
    }
}

/// What the pools offer.
#[derive(Debug)]
pub struct CatalogMetrics {
    entries: Observed,
    conflicts: Observed,
    known: Known,
}

impl CatalogMetrics {
    pub(super) fn new(factory: &Factory, known: &Known) -> Self {
        Self {
            entries: factory.observed(&ENTRIES),
            conflicts: factory.observed(&CONFLICTS),
            known: known.clone(),
        }
    }

    /// How many entries there are, by pool and kind.
    pub fn observe_entries(
        &self,
        read: impl Fn(&mut dyn FnMut(&str, EntryKind, u64)) + Send + Sync + 'static,
    ) -> Registration {
        let known = self.known.clone();
        self.entries.observe(move |to| {
            read(&mut |pool: &str, kind: EntryKind, count| {
                let attributes = vec![
                    known.label(NameKind::Pool, POOL, pool),
                    label(KIND, kind.as_str()),
                ];
                to(float(count), attributes);
            });
        })
    }

    /// How many names are hidden because another pool offers them.
    pub fn observe_conflicts(
        &self,
        read: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Registration {
        self.conflicts.number(move || float(read()))
    }
}
