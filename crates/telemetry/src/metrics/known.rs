//! Names that may become attribute values, because the operator chose them.

use std::collections::HashSet;
use std::sync::LazyLock;

use foldhash::fast::RandomState;
use parking_lot::RwLock;

use super::area::Label;
use super::definition::Attribute;
use super::labels::{POOL, Pair, label};

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
#[derive(Debug, Default)]
pub struct Known(());

type Names = HashSet<&'static str, RandomState>;

static NAMES: LazyLock<[RwLock<Names>; 4]> = LazyLock::new(Default::default);

impl Known {
    /// From now on these names are known, and no others of that kind. Series that were recorded stay.
    pub fn replace<N: AsRef<str>>(&self, kind: NameKind, names: impl IntoIterator<Item = N>) {
        let mut known = names_of(kind).write();
        let names = names.into_iter().map(|name| kept(&known, name.as_ref()));
        let names = names.collect();
        *known = names;
    }

    /// These names are known as well.
    pub fn add<N: AsRef<str>>(&self, kind: NameKind, names: impl IntoIterator<Item = N>) {
        let mut known = names_of(kind).write();
        for name in names {
            let name = kept(&known, name.as_ref());
            known.insert(name);
        }
    }

    /// Whether the name is one of these, and so may also be part of a span's name.
    #[must_use]
    pub fn has(&self, kind: NameKind, name: &str) -> bool {
        names_of(kind).read().contains(name)
    }

    /// The name as an attribute, if it is known; copies nothing.
    pub(super) fn label(kind: NameKind, key: &'static str, name: &str) -> Pair {
        let known = names_of(kind).read().get(name).copied();
        label(key, known.unwrap_or(OTHER))
    }
}

fn names_of(kind: NameKind) -> &'static RwLock<Names> {
    &NAMES[kind as usize]
}

/// The name as it is known, or a copy for ever.
fn kept(known: &Names, name: &str) -> &'static str {
    let copy = || &*Box::leak(Box::<str>::from(name));
    known.get(name).copied().unwrap_or_else(copy)
}

/// A pool, by its name.
pub enum Pool {}

impl Label for Pool {
    type Given<'a> = &'a str;

    const ATTRIBUTE: Attribute = Attribute::configured(POOL, "the pools");

    fn pair(given: &str) -> Pair {
        Known::label(NameKind::Pool, POOL, given)
    }
}
