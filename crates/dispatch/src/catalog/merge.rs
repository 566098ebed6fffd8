//! Merging the pools' catalogs into one.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use foldhash::fast::RandomState;
use shoal_protocol::task::TaskSupport;
use shoal_protocol::{RawJson, RawObject};

use super::{
    Catalog, Conflict, Degraded, ItemKind, Lists, OfferedPrompt, OfferedTool, Pages, Pool,
    ResourceFilter, ResourceRules, Tool, facts,
};
use crate::config::{Config, PoolConfig, PoolSettings};
use crate::shape::Shaping;

impl Catalog {
    /// Merges pools, which come sorted by name. Logs nothing: the caller knows what is new.
    pub(crate) fn merge(pools: &[Pool], config: &Config, settings: &PoolSettings) -> Self {
        let server_info = facts::server_info(pools, config);
        let shaping = Arc::new(Shaping::new(&server_info, config));
        let mut merge = Merge::default();
        for pool in pools {
            merge.add(pool, settings.of(&pool.name));
        }
        let lists = merge.lists(pools, config, &shaping);
        let requires = |offered: &OfferedTool| offered.tool.task_support == TaskSupport::Required;
        Self {
            lists,
            requires_tasks: merge.tools.values().any(requires),
            versions: merge.versions(),
            tools: merge.tools,
            prompts: merge.prompts,
            resources: merge.resources,
            templates: merge.templates,
            resource_pools: pools
                .iter()
                .filter(|pool| pool.compiled.has_resources())
                .map(|pool| pool.name.clone())
                .collect(),
            resource_filters: pools
                .iter()
                .map(|pool| (&pool.name, &settings.of(&pool.name).resources))
                .filter(|(_, rules)| **rules != ResourceRules::default())
                .map(|(pool, rules)| (pool.clone(), ResourceFilter::of(rules)))
                .collect(),
            completes: pools
                .iter()
                .any(|pool| pool.compiled.source.declares("completions")),
            conflicts: merge.conflicts,
            degraded: merge.degraded,
            capabilities: facts::capabilities(pools),
            instructions: facts::instructions(pools, config),
            server_info,
            shaping,
        }
    }
}

/// A catalog in the making: who has what, and the items in their order.
#[derive(Default)]
struct Merge {
    tools: HashMap<String, OfferedTool, RandomState>,
    prompts: HashMap<String, OfferedPrompt>,
    resources: HashMap<String, Arc<str>>,
    templates: Vec<(super::UriTemplate, Arc<str>)>,
    conflicts: Vec<Conflict>,
    degraded: Vec<Degraded>,
    tool_items: Vec<RawJson>,
    /// Positions in `tool_items` that modern clients do not get.
    legacy_only: Vec<usize>,
    prompt_items: Vec<RawJson>,
    resource_items: Vec<RawJson>,
    template_items: Vec<RawJson>,
}

impl Merge {
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
            let name = format!("{prefix}{}", config.tools.shown(&tool.name));
            self.add_tool(pool, name, tool);
        }
        for (own, raw) in &pool.compiled.prompts {
            let name = format!("{prefix}{}", config.prompts.shown(own));
            if let Some(kept) = self.prompts.get(&name) {
                let kept = kept.pool.clone();
                self.conflict(ItemKind::Prompt, &name, &kept, pool);
                continue;
            }
            self.prompt_items.push(renamed(raw, own, &name));
            let offered = OfferedPrompt {
                pool: pool.name.clone(),
                name: own.clone(),
            };
            self.prompts.insert(name, offered);
        }
        for (uri, raw) in &pool.compiled.resources {
            if let Some(kept) = self.resources.get(uri).cloned() {
                self.conflict(ItemKind::Resource, uri, &kept, pool);
                continue;
            }
            self.resource_items.push(raw.clone());
            self.resources.insert(uri.clone(), pool.name.clone());
        }
        for (template, raw) in &pool.compiled.templates {
            let same =
                |(earlier, _): &&(super::UriTemplate, _)| earlier.as_str() == template.as_str();
            if let Some((_, kept)) = self.templates.iter().find(same).cloned() {
                self.conflict(ItemKind::ResourceTemplate, template.as_str(), &kept, pool);
                continue;
            }
            self.template_items.push(raw.clone());
            self.templates.push((template.clone(), pool.name.clone()));
        }
    }

    fn add_tool(&mut self, pool: &Pool, name: String, tool: &Arc<Tool>) {
        if let Some(kept) = self.tools.get(&name) {
            let kept = kept.pool.clone();
            self.conflict(ItemKind::Tool, &name, &kept, pool);
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
        if tool.listed.is_some() {
            degraded(
                "listed as taking any object: its inputSchema is not of type object, or is malformed"
                    .to_owned(),
            );
        }
        let listed = tool.listed.as_ref().unwrap_or(&tool.raw);
        self.tool_items.push(renamed(listed, &tool.name, &name));
        let offered = OfferedTool {
            pool: pool.name.clone(),
            tool: tool.clone(),
        };
        self.tools.insert(name, offered);
    }

    fn conflict(&mut self, kind: ItemKind, name: &str, kept: &Arc<str>, hidden: &Pool) {
        self.conflicts.push(Conflict {
            kind,
            name: name.to_owned(),
            kept: kept.to_string(),
            hidden: hidden.name.to_string(),
        });
    }

    /// What the lists say, as numbers.
    fn versions(&self) -> [u64; 3] {
        let resources = [&self.resource_items, &self.template_items];
        [
            version(&[&self.tool_items]),
            version(&resources),
            version(&[&self.prompt_items]),
        ]
    }

    fn lists(&self, pools: &[Pool], config: &Config, shaping: &Shaping) -> Lists {
        let write = |offered: bool, at: usize, member, items: &[RawJson], legacy_only: &[usize]| {
            let ttl = pools
                .iter()
                .filter_map(|pool| pool.compiled.source.ttl_ms[at]);
            let page = |page: &RawJson| shaping.list(page, ttl.clone().min());
            offered.then(|| Pages::write(member, items, legacy_only, config.page_size, page))
        };
        let tools = pools.iter().any(|pool| pool.compiled.has_tools());
        let prompts = pools.iter().any(|pool| pool.compiled.has_prompts());
        let resources = pools.iter().any(|pool| pool.compiled.has_resources());
        Lists {
            tools: write(tools, 0, "tools", &self.tool_items, &self.legacy_only),
            resources: write(resources, 1, "resources", &self.resource_items, &[]),
            templates: write(resources, 2, "resourceTemplates", &self.template_items, &[]),
            prompts: write(prompts, 3, "prompts", &self.prompt_items, &[]),
        }
    }
}

fn version(lists: &[&Vec<RawJson>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for list in lists {
        hasher.write_usize(list.len());
        for item in *list {
            item.as_bytes().hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// The item under another name than its own; untouched under the same.
pub(super) fn renamed(raw: &RawJson, own: &str, name: &str) -> RawJson {
    if own == name {
        return raw.clone();
    }
    let mut item = RawObject::of(raw).unwrap_or_default();
    item.set("name", RawJson::of(name));
    item.to_json()
}
