use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shoal_policy::TargetKind;
use shoal_ports::{CallOutcome, PoolCatalog};
use shoal_protocol::{Method, RawJson};
use tokio::time::Instant;

use super::sight::OwnSight;
use crate::access::Access;
use crate::catalog::{Audience, Catalog, CompiledPool, Pool};
use crate::config::Config;
use crate::pools::View;

/// How long Shoal remembers a refusal of a caller's lists, or a pool's absence.
pub(crate) const BRIEFLY: Duration = Duration::from_secs(1);
const EACH: usize = 1024;

/// The list methods, in the order of [`PoolCatalog::ttl_ms`].
pub(super) const LISTS: [Method; 4] = [
    Method::ToolsList,
    Method::ResourcesList,
    Method::ResourceTemplatesList,
    Method::PromptsList,
];

pub(super) struct ListAnswer {
    pub(super) pool: Arc<str>,
    /// As in [`OwnPart::numbers`](super::sight::OwnPart).
    pub(super) numbers: [u64; 3],
    pub(super) source: Arc<PoolCatalog>,
    pub(super) missing: [Option<CallOutcome>; 4],
    pub(super) was_vacant: bool,
    pub(super) read: Instant,
}

pub(super) struct MissingList<'a> {
    pub(super) pool: &'a Arc<str>,
    pub(super) why: &'a CallOutcome,
}

pub(crate) struct KnownLists {
    pub(super) answers: Vec<Arc<ListAnswer>>,
    merged: Mutex<Option<(u64, Arc<Catalog>)>>,
}

impl ListAnswer {
    pub(super) fn fits(&self, pool: &str, numbers: [u64; 3]) -> bool {
        *self.pool == *pool && self.numbers == numbers
    }

    pub(super) fn is_older(&self, than: Duration) -> bool {
        let believed = match self.missing.iter().any(Option::is_some) {
            true => BRIEFLY,
            false => Duration::MAX,
        };
        let ttl = self.source.ttl_ms.iter().flatten().min();
        let ttl = ttl.map_or(Duration::MAX, |ttl| {
            Duration::from_millis(*ttl).max(BRIEFLY)
        });
        self.read.elapsed() > than.min(believed).min(ttl)
    }

    fn why_missing(&self, at: usize) -> Option<MissingList<'_>> {
        let why = self.missing[at].as_ref()?;
        Some(MissingList {
            pool: &self.pool,
            why,
        })
    }

    fn bytes(&self) -> usize {
        let source = &self.source;
        let items = [
            &source.tools,
            &source.resources,
            &source.resource_templates,
            &source.prompts,
        ];
        let items = items.into_iter().flatten();
        // Doubled, because the compiled items need as much again.
        2 * items.map(|item| item.len() + 64).sum::<usize>() + EACH
    }
}

impl KnownLists {
    pub(super) fn new(answers: Vec<Arc<ListAnswer>>) -> Self {
        Self {
            answers,
            merged: Mutex::default(),
        }
    }

    pub(super) fn fits(&self, sight: &OwnSight) -> bool {
        let told = |pool: &str, numbers| self.answers.iter().any(|it| it.fits(pool, numbers));
        let mut parts = sight.parts.iter();
        self.answers.len() == sight.parts.len() && parts.all(|it| told(&it.pool, it.numbers))
    }

    pub(super) fn is_older(&self, than: Duration) -> bool {
        self.answers.iter().any(|answer| answer.is_older(than))
    }

    pub(super) fn bytes(&self) -> usize {
        let merged = self.merged.lock().clone();
        let merged = merged.map_or(0, |(_, catalog)| catalog.bytes());
        self.answers.iter().map(|it| it.bytes()).sum::<usize>() + merged
    }

    pub(super) fn view(&self, all: &View, config: &Config) -> View {
        let base = all.catalog.number();
        let merged = self.merged.lock().clone();
        if let Some((_, catalog)) = merged.filter(|(of, _)| *of == base) {
            return all.with(catalog);
        }
        let catalog = Arc::new(self.merge(all, config));
        *self.merged.lock() = Some((base, catalog.clone()));
        all.with(catalog)
    }

    fn merge(&self, all: &View, config: &Config) -> Catalog {
        let pools: Vec<Pool> = (all.offered.iter())
            .map(|pool| {
                let Some(answer) = self.answers.iter().find(|it| it.pool == pool.name) else {
                    return pool.clone();
                };
                let settings = all.settings.of(&pool.name);
                let (source, shared) = (answer.source.clone(), &pool.compiled);
                let compiled = CompiledPool::of_caller(&pool.name, source, shared, settings);
                Pool {
                    name: pool.name.clone(),
                    compiled: Arc::new(compiled),
                }
            })
            .collect();
        let keepers = all.keepers_of(&pools);
        Catalog::merge(&pools, config, &all.settings, keepers, Audience::OneCaller)
    }

    /// If every pool that has items of `method`'s kind failed to list them for the caller, returns the first pool's
    /// reason.
    pub(super) fn instead_of_list(&self, view: &View, method: &Method) -> Option<MissingList<'_>> {
        let at = LISTS.iter().position(|list| list == method)?;
        let missing = |pool: &Arc<str>| {
            let answer = self.answers.iter().find(|it| it.pool == *pool)?;
            answer.why_missing(at)
        };
        let has = |pool: &&Pool| match at {
            0 => pool.compiled.has_tools(),
            3 => pool.compiled.has_prompts(),
            _ => pool.compiled.has_resources(),
        };
        let mut having = view.offered.iter().filter(has);
        if having.clone().any(|pool| missing(&pool.name).is_none()) {
            return None;
        }
        having.find_map(|pool| missing(&pool.name))
    }

    pub(super) fn instead_of_unknown(
        &self,
        access: &Access,
        view: &View,
        method: &Method,
        name: &str,
    ) -> Option<MissingList<'_>> {
        let (at, kind) = match method {
            Method::ToolsCall => (0, TargetKind::Tool),
            Method::ResourcesRead => (1, TargetKind::Resource),
            Method::PromptsGet => (3, TargetKind::Prompt),
            _ => return None,
        };
        // Looks only at pools that may show the name, because hidden names must look unknown.
        let nothing = RawJson::from_static("{}");
        let number = view.catalog.number();
        let may_have = |pool: &str| {
            let settings = view.settings.of(pool);
            let own = name.strip_prefix(&*settings.prefix);
            match kind {
                TargetKind::Tool => own.is_some_and(|own| settings.tools.may_show(own)),
                TargetKind::Prompt => own.is_some_and(|own| settings.prompts.may_show(own)),
                _ => view.catalog.offers_of(pool, name),
            }
        };
        let shows = |pool: &str| may_have(pool) && access.shows(number, kind, name, pool, &nothing);
        let mut refusing = self.answers.iter().filter(|it| shows(&it.pool));
        refusing.find_map(|answer| answer.why_missing(at))
    }
}
