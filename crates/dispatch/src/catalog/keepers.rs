//! A pool keeps a contested name until it withdraws the item or leaves for good. The store has these decisions, so
//! that a starting node does not serve another pool's item before the keeper joins.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::prefixed::prefixed;
use super::{Catalog, Conflict, ItemKind, Pool};
use crate::config::PoolSettings;

/// Maximum names on which nodes agree in the store. For other names, each node keeps the pool that it saw first.
const MOST_NAMES: usize = 1_000;

/// The pool of each name on which the nodes agree. Names are written by [`key`].
pub(crate) type AgreedNames = BTreeMap<String, String>;

#[derive(Default)]
pub(crate) struct Keepers(HashMap<(ItemKind, String), Arc<str>>);

impl Keepers {
    /// `before` is the replaced catalog. `is_missing` tells whether other nodes know a pool that
    /// has yet to join here.
    pub(crate) fn of(
        pools: &[Pool],
        settings: &PoolSettings,
        before: &Catalog,
        agreed: &AgreedNames,
        is_missing: &dyn Fn(&str) -> bool,
    ) -> Self {
        let mut offers: HashMap<(ItemKind, String), Vec<&Arc<str>>> = HashMap::new();
        for pool in pools {
            for offer in offered(pool, settings) {
                let by = offers.entry(offer).or_default();
                if by.last() != Some(&&pool.name) {
                    by.push(&pool.name);
                }
            }
        }
        let keeper = |((kind, name), by): ((ItemKind, String), Vec<&Arc<str>>)| {
            let agreed = agreed.get(&key(kind, &name));
            let keeper = match agreed {
                Some(pool) if is_missing(pool) => Arc::from(pool.as_str()),
                _ if by.len() < 2 => return None,
                agreed => {
                    let offers = |pool: &str| by.iter().copied().find(|by| ***by == *pool);
                    let holder = || offers(before.holder(kind, &name)?);
                    let agreed = agreed.and_then(|pool| offers(pool));
                    Arc::clone(agreed.or_else(holder).unwrap_or(by[0]))
                }
            };
            Some(((kind, name), keeper))
        };
        Self(offers.into_iter().filter_map(keeper).collect())
    }

    pub(super) fn instead_of(&self, pool: &str, kind: ItemKind, name: &str) -> Option<&Arc<str>> {
        if self.0.is_empty() {
            return None;
        }
        let keeper = self.0.get(&(kind, name.to_owned()))?;
        (**keeper != *pool).then_some(keeper)
    }
}

fn offered(pool: &Pool, settings: &PoolSettings) -> impl Iterator<Item = (ItemKind, String)> {
    let config = settings.of(&pool.name);
    let named = move |shown: &str| format!("{}{shown}", config.prefix);
    let compiled = &pool.compiled;
    let tools = compiled.tools.iter();
    let tools = tools.map(move |tool| {
        let shown = config.tools.shown(&tool.name);
        (ItemKind::Tool, prefixed(&config.prefix, shown))
    });
    let prompts = compiled.prompts.iter();
    let prompts = prompts.map(move |(own, _)| (ItemKind::Prompt, named(config.prompts.shown(own))));
    let resources = compiled.resources.iter();
    let resources = resources.map(|(uri, _)| (ItemKind::Resource, uri.clone()));
    let templates = compiled.templates.iter();
    let templates = templates.map(|(it, _)| (ItemKind::ResourceTemplate, it.as_str().to_owned()));
    tools.chain(prompts).chain(resources).chain(templates)
}

fn key(kind: ItemKind, name: &str) -> String {
    format!("{kind}: {name}")
}

pub(crate) fn contested(conflicts: &[Conflict]) -> AgreedNames {
    let between_pools = conflicts.iter().filter(|it| it.kept != it.hidden);
    let named = between_pools.map(|it| (key(it.kind, &it.name), it.kept.clone()));
    let all: AgreedNames = named.collect();
    all.into_iter().take(MOST_NAMES).collect()
}
