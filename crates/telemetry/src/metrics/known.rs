use std::collections::HashSet;
use std::sync::LazyLock;

use foldhash::fast::RandomState;
use parking_lot::RwLock;

use super::area::Label;
use super::definition::Attribute;
use super::labels::{POOL, Pair, label};

/// Replaces every name that was not configured.
pub const OTHER: &str = "_OTHER";

/// The kind of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameKind {
    /// Tools of the catalog.
    Tool,
    /// Prompts of the catalog.
    Prompt,
    /// Pools of the configuration, and pools that workers bring.
    Pool,
    /// Quotas of the configuration.
    Quota,
}

/// The names that may become attribute values, because the operator chose them.
///
/// Known names stay in memory, because operators choose few.
#[derive(Debug, Default)]
pub struct Known(());

type KnownNames = HashSet<&'static str, RandomState>;

static NAMES: LazyLock<[RwLock<KnownNames>; 4]> = LazyLock::new(Default::default);

impl Known {
    /// Replaces the known names of a kind.
    pub fn replace<N: AsRef<str>>(&self, kind: NameKind, names: impl IntoIterator<Item = N>) {
        let mut known = names_of(kind).write();
        let names = names.into_iter().map(|name| kept(&known, name.as_ref()));
        let names = names.collect();
        *known = names;
    }

    /// Adds known names.
    pub fn add<N: AsRef<str>>(&self, kind: NameKind, names: impl IntoIterator<Item = N>) {
        let mut known = names_of(kind).write();
        for name in names {
            let name = kept(&known, name.as_ref());
            known.insert(name);
        }
    }

    /// Whether the name is known. Span names may contain known names too.
    #[must_use]
    pub fn has(&self, kind: NameKind, name: &str) -> bool {
        names_of(kind).read().contains(name)
    }

    pub(super) fn label(kind: NameKind, key: &'static str, name: &str) -> Pair {
        let known = names_of(kind).read().get(name).copied();
        label(key, known.unwrap_or(OTHER))
    }
}

fn names_of(kind: NameKind) -> &'static RwLock<KnownNames> {
    &NAMES[kind as usize]
}

/// A new copy is never freed.
fn kept(known: &KnownNames, name: &str) -> &'static str {
    let copy = || &*Box::leak(Box::<str>::from(name));
    known.get(name).copied().unwrap_or_else(copy)
}

/// A pool's name.
pub enum Pool {}

impl Label for Pool {
    type Given<'a> = &'a str;

    const ATTRIBUTE: Attribute = Attribute::configured(POOL, "the pools");

    fn pair(given: &str) -> Pair {
        Known::label(NameKind::Pool, POOL, given)
    }
}
