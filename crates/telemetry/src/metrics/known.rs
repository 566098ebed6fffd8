//! Names that may become attribute values, because the operator chose them.

use std::collections::HashSet;
use std::sync::Arc;

use opentelemetry::{Key, KeyValue, StringValue};
use parking_lot::RwLock;

/// What is recorded in place of a value that nobody configured.
pub const OTHER: &str = "_OTHER";

/// Whose names they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameKind {
    /// Tools of the catalog.
    Tool,
    /// Prompts of the catalog.
    Prompt,
    /// Pools of the configuration, and those that workers brought.
    Pool,
    /// Quotas of the configuration.
    Quota,
}

/// The names that may become attribute values. Unknown until [`replace`](Self::replace)d, and then recorded as
/// [`OTHER`].
#[derive(Clone, Debug, Default)]
pub struct Known(Arc<[RwLock<HashSet<Arc<str>>>; 4]>);

impl Known {
    /// From now on these names are known, and no others of that kind. Series that were recorded stay.
    pub fn replace<N: Into<Arc<str>>>(&self, kind: NameKind, names: impl IntoIterator<Item = N>) {
        let names = names.into_iter().map(Into::into).collect();
        *self.set(kind).write() = names;
    }

    /// These names are known as well.
    pub fn add<N: Into<Arc<str>>>(&self, kind: NameKind, names: impl IntoIterator<Item = N>) {
        (self.set(kind).write()).extend(names.into_iter().map(Into::into));
    }

    /// Whether the name is one of these, and so may also be part of a span's name.
    #[must_use]
    pub fn has(&self, kind: NameKind, name: &str) -> bool {
        self.set(kind).read().contains(name)
    }

    fn set(&self, kind: NameKind) -> &RwLock<HashSet<Arc<str>>> {
        let [tools, prompts, pools, quotas] = &*self.0;
        match kind {
            NameKind::Tool => tools,
            NameKind::Prompt => prompts,
            NameKind::Pool => pools,
            NameKind::Quota => quotas,
        }
    }

    /// The name as an attribute, if it is known; copies nothing.
    pub(super) fn label(&self, kind: NameKind, key: &'static str, name: &str) -> KeyValue {
        let known = self.set(kind).read().get(name).cloned();
        let value = known.map_or(StringValue::from(OTHER), StringValue::from);
        KeyValue::new(Key::from_static_str(key), value)
    }
}
