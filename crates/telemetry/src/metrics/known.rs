//! Names that may become attribute values, because the operator chose them.

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::fast::RandomState;
use parking_lot::RwLock;

use super::labels::{Pair, label};

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
///
/// A name that was known once stays in memory: operators choose few.
#[derive(Clone, Debug, Default)]
pub struct Known(Arc<[RwLock<Names>; 4]>);

type Names = HashSet<&'static str, RandomState>;

impl Known {
    /// From now on these names are known, and no others of that kind. Series that were recorded stay.
    pub fn replace<N: AsRef<str>>(&self, kind: NameKind, names: impl IntoIterator<Item = N>) {
        let mut known = self.set(kind).write();
        let names = names.into_iter().map(|name| kept(&known, name.as_ref()));
        let names = names.collect();
        *known = names;
    }

    /// These names are known as well.
    pub fn add<N: AsRef<str>>(&self, kind: NameKind, names: impl IntoIterator<Item = N>) {
        let mut known = self.set(kind).write();
        for name in names {
            let name = kept(&known, name.as_ref());
            known.insert(name);
        }
    }

    /// Whether the name is one of these, and so may also be part of a span's name.
    #[must_use]
    pub fn has(&self, kind: NameKind, name: &str) -> bool {
        self.set(kind).read().contains(name)
    }

    fn set(&self, kind: NameKind) -> &RwLock<Names> {
        let [tools, prompts, pools, quotas] = &*self.0;
        match kind {
            NameKind::Tool => tools,
            NameKind::Prompt => prompts,
            NameKind::Pool => pools,
            NameKind::Quota => quotas,
        }
    }

    /// The name as an attribute, if it is known; copies nothing.
    pub(super) fn label(&self, kind: NameKind, key: &'static str, name: &str) -> Pair {
        let known = self.set(kind).read().get(name).copied();
        label(key, known.unwrap_or(OTHER))
    }
}

/// The name as it is known, or a copy for ever.
fn kept(known: &Names, name: &str) -> &'static str {
    let copy = || &*Box::leak(Box::<str>::from(name));
    known.get(name).copied().unwrap_or_else(copy)
}
