use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;
use shoal_policy::TargetKind;
use shoal_protocol::task::TaskSupport;
use shoal_protocol::{RawJson, RawObject};

use super::lists::{CatalogList, Item};
use super::prefixed::prefixed;
use super::{
    Catalog, CatalogLists, CatalogTool, Conflict, Degraded, ExtensionPool, ItemKind, Keepers,
    OfferedPrompt, OfferedTool, Pool, ResourceFilter, ResourceRules, facts,
};
use crate::config::{Config, PoolConfig, PoolSettings};
use crate::shape::Shaping;

impl Catalog {
    /// The catalogs must be sorted by pool name.
    pub(crate) fn merge(
        pools: &[Pool],
        config: &Config,
        settings: &PoolSettings,
        keepers: Keepers,
        audience: Audience,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let server_info = facts::server_info(pools, config);
        let shaping_for_one = Arc::new(Shaping::new(&server_info, config, false));
        let shaping = match audience {
            Audience::Everybody => Arc::new(Shaping::new(&server_info, config, true)),
            Audience::OneCaller => shaping_for_one.clone(),
        };
        let mut merge = Merge::of(keepers);
        for pool in pools {
            merge.add(pool, settings.of(&pool.name));
        }
        let versions = merge.versions();
        let lists = merge.lists(pools, config, &shaping, audience);
        let requires =
            |offered: &OfferedTool| offered.tool.task_support == Some(TaskSupport::Required);
        Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            lists,
            requires_tasks: merge.tools.values().any(requires),
            versions,
            tools: merge.tools,
            prompts: merge.prompts,
            resources: merge.resources,
            templates: merge.templates,
            resource_pools: pools
                .iter()
                .filter(|pool| pool.compiled.has_resources())
                .map(|pool| pool.name.clone())
                .collect(),
            prompt_pools: pools
                .iter()
                .filter(|pool| pool.compiled.has_prompts())
                .map(|pool| pool.name.clone())
                .collect(),
            resource_filters: pools
                .iter()
                .map(|pool| (&pool.name, &settings.of(&pool.name).resources))
                .filter(|(_, rules)| **rules != ResourceRules::default())
                .map(|(pool, rules)| (pool.clone(), ResourceFilter::of(rules)))
                .collect(),
            titles: pools
                .iter()
                .filter_map(|pool| {
                    let info = pool.compiled.source.server_info.as_ref()?;
                    Some((pool.name.clone(), info.member("title")?.string()?))
                })
                .collect(),
            completes: pools
                .iter()
                .any(|pool| pool.compiled.source.declares("completions")),
            extension_pools: ExtensionPool::all(pools, settings),
            conflicts: merge.conflicts,
            degraded: merge.degraded,
            capabilities: facts::capabilities(pools),
            instructions: facts::instructions(pools, config),
            server_info,
            shaping,
            shaping_for_one,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    Everybody,
    OneCaller,
}

#[derive(Default)]
struct Merge {
    keepers: Keepers,
    tools: HashMap<String, OfferedTool, RandomState>,
    prompts: HashMap<String, OfferedPrompt>,
    resources: HashMap<String, Arc<str>>,
    templates: Vec<(super::UriTemplate, Arc<str>)>,
    conflicts: Vec<Conflict>,
    degraded: Vec<Degraded>,
    tool_items: Vec<Item>,
    legacy_only: Vec<usize>,
    prompt_items: Vec<Item>,
    resource_items: Vec<Item>,
    template_items: Vec<Item>,
}

impl Merge {
    fn of(keepers: Keepers) -> Self {
        Self {
            keepers,
            ..Self::default()
        }
    }

    fn add(&mut self, pool: &Pool, config: &PoolConfig) {
        let prefix = &config.prefix;
        for (name, reason) in &pool.compiled.left_out {
            self.degraded.push(Degraded {
                tool: name.clone(),
                pool: pool.name.to_string(),
                reason: reason.clone(),
            });
        }
        for tool in &pool.compiled.tools {
            let name = prefixed(prefix, config.tools.shown(&tool.name));
            self.add_tool(pool, name, tool);
        }
        for (own, raw) in &pool.compiled.prompts {
            let name = format!("{prefix}{}", config.prompts.shown(own));
            let there = self.prompts.get(&name).map(|kept| &kept.pool).cloned();
            if self.is_kept_by_another(ItemKind::Prompt, &name, there, pool) {
                continue;
            }
            let item = Item::new(&name, pool, renamed(raw, own, &name));
            self.prompt_items.push(item);
            let offered = OfferedPrompt {
                pool: pool.name.clone(),
                name: own.clone(),
            };
            self.prompts.insert(name, offered);
        }
        for (uri, raw) in &pool.compiled.resources {
            let there = self.resources.get(uri).cloned();
            if self.is_kept_by_another(ItemKind::Resource, uri, there, pool) {
                continue;
            }
            self.resource_items.push(Item::new(uri, pool, raw.clone()));
            self.resources.insert(uri.clone(), pool.name.clone());
        }
        for (template, raw) in &pool.compiled.templates {
            let same =
                |(earlier, _): &&(super::UriTemplate, _)| earlier.as_str() == template.as_str();
            let there = self
                .templates
                .iter()
                .find(same)
                .map(|(_, pool)| pool.clone());
            let kind = ItemKind::ResourceTemplate;
            if self.is_kept_by_another(kind, template.as_str(), there, pool) {
                continue;
            }
            let item = Item::new(template.as_str(), pool, raw.clone());
            self.template_items.push(item);
            self.templates.push((template.clone(), pool.name.clone()));
        }
    }

    fn add_tool(&mut self, pool: &Pool, name: String, tool: &Arc<CatalogTool>) {
        let there = self.tools.get(&name).map(|kept| &kept.pool).cloned();
        if self.is_kept_by_another(ItemKind::Tool, &name, there, pool) {
            return;
        }
        let mut degraded = |reason: String| {
            self.degraded.push(Degraded {
                tool: name.clone(),
                pool: pool.name.to_string(),
                reason,
            });
        };
        if let Err(error) = &tool.checker {
            degraded(format!("arguments are not validated: {error}"));
        }
        if let Err(error) = &tool.headers {
            degraded(format!("not listed to modern clients: {error}"));
            self.legacy_only.push(self.tool_items.len());
        }
        if tool.takes_anything {
            degraded(
                "listed as taking any object: its inputSchema does not describe one".to_owned(),
            );
        }
        let listed = tool.listed.as_ref().unwrap_or(&tool.raw);
        let item = Item::new(&name, pool, renamed(listed, &tool.name, &name));
        self.tool_items.push(item);
        let offered = OfferedTool {
            pool: pool.name.clone(),
            tool: tool.clone(),
        };
        self.tools.insert(name, offered);
    }

    fn is_kept_by_another(
        &mut self,
        kind: ItemKind,
        name: &str,
        there: Option<Arc<str>>,
        pool: &Pool,
    ) -> bool {
        let keeper = self.keepers.instead_of(&pool.name, kind, name).cloned();
        let Some(kept) = keeper.or(there) else {
            return false;
        };
        self.conflicts.push(Conflict {
            kind,
            name: name.to_owned(),
            kept: kept.to_string(),
            hidden: pool.name.to_string(),
        });
        true
    }

    fn versions(&self) -> [u64; 3] {
        let resources = [&self.resource_items, &self.template_items];
        [
            version(&[&self.tool_items]),
            version(&resources),
            version(&[&self.prompt_items]),
        ]
    }

    fn lists(
        &mut self,
        pools: &[Pool],
        config: &Config,
        shaping: &Arc<Shaping>,
        audience: Audience,
    ) -> CatalogLists {
        let write = |at: usize, kind, member, items: &mut Vec<Item>, legacy_only: &[usize]| {
            let ttls = pools.iter();
            let ttls = ttls.filter_map(|pool| pool.compiled.source.ttl_ms[at]);
            let list = CatalogList {
                kind,
                member,
                items: std::mem::take(items).into(),
                legacy_only: legacy_only.into(),
                page_size: config.catalog.page_size,
                ttl: ttls.min(),
                shaping: shaping.clone(),
                kept: None,
            };
            match audience {
                Audience::Everybody => list.written(),
                Audience::OneCaller => list,
            }
        };
        let any = |has: fn(&Pool) -> bool| pools.iter().any(has);
        let tools = any(|pool| pool.compiled.has_tools());
        let prompts = any(|pool| pool.compiled.has_prompts());
        let resources = any(|pool| pool.compiled.has_resources());
        let legacy_only = std::mem::take(&mut self.legacy_only);
        let mut tool = || {
            write(
                0,
                TargetKind::Tool,
                "tools",
                &mut self.tool_items,
                &legacy_only,
            )
        };
        let tools = tools.then(&mut tool);
        let (all, listed) = (TargetKind::Resource, &mut self.resource_items);
        let resource = resources.then(|| write(1, all, "resources", listed, &[]));
        let (all, listed) = (TargetKind::ResourceTemplate, &mut self.template_items);
        let templates = resources.then(|| write(2, all, "resourceTemplates", listed, &[]));
        let (all, listed) = (TargetKind::Prompt, &mut self.prompt_items);
        let prompts = prompts.then(|| write(3, all, "prompts", listed, &[]));
        CatalogLists {
            tools,
            resources: resource,
            templates,
            prompts,
        }
    }
}

fn version(lists: &[&Vec<Item>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for list in lists {
        hasher.write_usize(list.len());
        for item in *list {
            item.raw.as_bytes().hash(&mut hasher);
        }
    }
    hasher.finish()
}

pub(super) fn renamed(raw: &RawJson, own: &str, name: &str) -> RawJson {
    if own == name {
        return raw.clone();
    }
    let mut item = RawObject::of(raw).unwrap_or_default();
    item.set("name", RawJson::of(name));
    item.to_json()
}
