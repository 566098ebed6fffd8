use std::sync::Arc;

use foldhash::fast::RandomState;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};
use shoal_policy::TargetKind;
use shoal_protocol::RawJson;

use super::{ListPages, Pool};
use crate::access::Access;
use crate::shape::Shaping;

/// Maximum bytes of one list's cached pages for callers that see only a part of the list.
const FILTERED_BYTES: u64 = 32 << 20;
/// Maximum bytes of the cache that tells which items each caller may see.
const SEEN_BYTES: u64 = 4 << 20;

#[derive(Debug)]
pub(super) struct CatalogList {
    pub(super) kind: TargetKind,
    pub(super) member: &'static str,
    pub(super) items: Box<[Item]>,
    /// Positions of items that modern clients do not get.
    pub(super) legacy_only: Box<[usize]>,
    pub(super) page_size: usize,
    pub(super) ttl: Option<u64>,
    pub(super) shaping: Arc<Shaping>,
    /// `None` for one caller's list, whose pages Shoal writes on demand.
    pub(super) kept: Option<CachedPages>,
}

#[derive(Debug, Default)]
pub(super) struct CachedPages {
    all: Arc<ListPages>,
    filtered: Filtered,
}

#[derive(Debug)]
pub(super) struct Item {
    name: Box<str>,
    pool: Arc<str>,
    pub(super) raw: RawJson,
}

/// One bit for each item: whether the caller may see it.
type VisibleItems = Arc<[u64]>;

#[derive(Debug)]
struct Filtered {
    seen: Cache<u64, VisibleItems, SeenWeight, RandomState>,
    pages: Cache<VisibleItems, Arc<ListPages>, PagesWeight, RandomState>,
}

impl Item {
    pub(super) fn new(name: &str, pool: &Pool, raw: RawJson) -> Self {
        Self {
            name: name.into(),
            pool: pool.name.clone(),
            raw,
        }
    }
}

impl CatalogList {
    pub(super) fn written(mut self) -> Self {
        self.kept = Some(CachedPages {
            all: Arc::new(self.write(|_| true)),
            filtered: Filtered::default(),
        });
        self
    }

    pub(super) fn pages(&self, access: &Access, catalog: u64) -> Arc<ListPages> {
        let Some(CachedPages { all, filtered }) = &self.kept else {
            return Arc::new(match access.has_rules() {
                true => self.write_seen(&self.seen(access, catalog)),
                false => self.write(|_| true),
            });
        };
        let Some(subject) = access.subject() else {
            return all.clone();
        };
        let seen = match filtered.seen.get(&subject) {
            Some(seen) => seen,
            None => {
                let seen = self.seen(access, catalog);
                filtered.seen.insert(subject, seen.clone());
                seen
            }
        };
        let bits: u32 = seen.iter().map(|word| word.count_ones()).sum();
        if bits as usize == self.items.len() {
            return all.clone();
        }
        if let Some(pages) = filtered.pages.get(&seen) {
            return pages;
        }
        let pages = Arc::new(self.write_seen(&seen));
        filtered.pages.insert(seen, pages.clone());
        pages
    }

    fn write_seen(&self, seen: &VisibleItems) -> ListPages {
        self.write(|at| seen[at / 64] & (1 << (at % 64)) != 0)
    }

    fn seen(&self, access: &Access, catalog: u64) -> VisibleItems {
        let mut seen = vec![0; self.items.len().div_ceil(64)];
        for (at, item) in self.items.iter().enumerate() {
            let Item { name, pool, raw } = item;
            if access.shows(catalog, self.kind, name, pool, raw) {
                seen[at / 64] |= 1 << (at % 64);
            }
        }
        seen.into()
    }

    fn write(&self, shows: impl Fn(usize) -> bool) -> ListPages {
        let items = self.items.iter().enumerate();
        let shown: Vec<(usize, &RawJson)> = items
            .filter(|(at, _)| shows(*at))
            .map(|(at, item)| (at, &item.raw))
            .collect();
        let page = |page: &RawJson| self.shaping.list(page, self.ttl);
        ListPages::write(self.member, &shown, &self.legacy_only, self.page_size, page)
    }
}

impl Default for Filtered {
    fn default() -> Self {
        let (state, lifecycle) = (RandomState::default, DefaultLifecycle::default);
        Self {
            seen: Cache::with(1024, SEEN_BYTES, SeenWeight, state(), lifecycle()),
            pages: Cache::with(
                16,
                FILTERED_BYTES,
                PagesWeight,
                state(),
                DefaultLifecycle::default(),
            ),
        }
    }
}

#[derive(Clone, Debug)]
struct SeenWeight;

impl Weighter<u64, VisibleItems> for SeenWeight {
    fn weight(&self, _: &u64, seen: &VisibleItems) -> u64 {
        8 * seen.len() as u64 + 64
    }
}

#[derive(Clone, Debug)]
struct PagesWeight;

impl Weighter<VisibleItems, Arc<ListPages>> for PagesWeight {
    fn weight(&self, seen: &VisibleItems, pages: &Arc<ListPages>) -> u64 {
        8 * seen.len() as u64 + pages.bytes() as u64 + 256
    }
}
