//! One pool's catalog, compiled once for all of its workers.

use std::collections::HashMap;
use std::sync::Arc;

use shoal_ports::{ListScope, PoolCatalog};
use shoal_protocol::RawJson;

use super::conflict::ItemKind;
use super::fitting;
use super::key;
use super::resource_filter::ResourceFilter;
use super::template::UriTemplate;
use super::tool::CatalogTool;
use crate::config::PoolConfig;

#[derive(Debug)]
pub(crate) struct CompiledPool {
    /// The catalog that was compiled. If the pool's workers announce an equal one, nothing is compiled.
    pub(crate) source: Arc<PoolCatalog>,
    pub(crate) tools: Vec<Arc<CatalogTool>>,
    pub(crate) prompts: Vec<(String, RawJson)>,
    pub(crate) resources: Vec<(String, RawJson)>,
    pub(crate) templates: Vec<(UriTemplate, RawJson)>,
    /// Hidden or changed items, with the reason.
    pub(crate) left_out: Vec<(String, String)>,
}

impl CompiledPool {
    /// Leaves out unsafe names, and reuses unchanged tools.
    pub(crate) fn new(
        pool: &str,
        source: Arc<PoolCatalog>,
        before: Option<&Self>,
        config: &PoolConfig,
    ) -> Self {
        Self::read(pool, source, before, config, true)
    }

    /// Compiles one caller's catalog, without logging. An unused name in `config` is no mistake here, because another
    /// caller's item may have it.
    pub(crate) fn of_caller(
        pool: &str,
        source: Arc<PoolCatalog>,
        shared: &Self,
        config: &PoolConfig,
    ) -> Self {
        Self::read(pool, source, Some(shared), config, false)
    }

    fn read(
        pool: &str,
        source: Arc<PoolCatalog>,
        before: Option<&Self>,
        config: &PoolConfig,
        is_news: bool,
    ) -> Self {
        let known: HashMap<&[u8], &Arc<CatalogTool>> = before
            .iter()
            .flat_map(|before| &before.tools)
            .map(|tool| (tool.raw.as_bytes(), tool))
            .collect();
        let mut left_out = Vec::new();
        let mut keyed = |kind, items: &[RawJson]| -> Vec<(String, RawJson)> {
            let named = items.iter().filter_map(|raw| match key::of(kind, raw) {
                Ok(key) => {
                    let (raw, lost) = fitting::item(kind, &key, raw.clone());
                    if !lost.is_empty() {
                        key::tell_lost(pool, kind, &key, &lost, is_news, &mut left_out);
                    }
                    Some((key, raw))
                }
                Err(unfit) => {
                    unfit.tell(pool, kind, is_news, &mut left_out);
                    None
                }
            });
            named.collect()
        };
        let tools = keyed(ItemKind::Tool, &source.tools);
        let prompts = keyed(ItemKind::Prompt, &source.prompts);
        let mut resources = keyed(ItemKind::Resource, &source.resources);
        let mut templates = keyed(ItemKind::ResourceTemplate, &source.resource_templates);
        if is_news && source.lists == ListScope::Shared {
            tell_unused(pool, ItemKind::Tool, config.tools.unused(&names(&tools)));
            let prompts = names(&prompts);
            tell_unused(pool, ItemKind::Prompt, config.prompts.unused(&prompts));
        }
        let tools = tools.into_iter();
        let tools = tools.filter(|(name, _)| config.tools.admits(name));
        let tools = tools.map(|(name, raw)| config.tools.applied(&name, raw));
        let tools = tools.filter_map(|raw| match known.get(raw.as_bytes()) {
            Some(tool) => Some(Arc::clone(tool)),
            None => read_tool(pool, &raw, is_news),
        });
        let tools = tools.collect();
        let prompts = prompts.into_iter();
        let prompts = prompts.filter(|(name, _)| config.prompts.admits(name));
        let prompts = prompts.map(|(name, raw)| {
            let raw = config.prompts.applied(&name, raw);
            (name, raw)
        });
        let prompts = prompts.collect();
        let filter = ResourceFilter::of(&config.resources);
        resources.retain(|(uri, _)| filter.admits_listed(uri));
        templates.retain(|(template, _)| filter.admits_template(template));
        let templates = templates.into_iter();
        let templates = templates.map(|(template, raw)| (UriTemplate::parse(&template), raw));
        let templates = templates.collect();
        Self {
            prompts,
            resources,
            templates,
            tools,
            left_out,
            source,
        }
    }

    pub(crate) fn has_tools(&self) -> bool {
        !self.tools.is_empty() || self.source.declares("tools")
    }

    pub(crate) fn has_prompts(&self) -> bool {
        !self.prompts.is_empty() || self.source.declares("prompts")
    }

    pub(crate) fn has_resources(&self) -> bool {
        !self.resources.is_empty()
            || !self.templates.is_empty()
            || self.source.declares("resources")
    }
}

fn names(items: &[(String, RawJson)]) -> Vec<&str> {
    items.iter().map(|(name, _)| name.as_str()).collect()
}

/// Logs configured names without an item, which are probably mistyped.
fn tell_unused<'a>(pool: &str, kind: ItemKind, unused: impl Iterator<Item = &'a str>) {
    for word in unused {
        tracing::warn!(pool, %kind, word, "a name or pattern in the pool's configuration matches none of its items");
    }
}

fn read_tool(pool: &str, raw: &RawJson, is_news: bool) -> Option<Arc<CatalogTool>> {
    let tool = CatalogTool::read(raw)?;
    if is_news {
        tell_of(pool, &tool);
    }
    Some(Arc::new(tool))
}

fn tell_of(pool: &str, tool: &CatalogTool) {
    if let Err(error) = &tool.checker {
        tracing::warn!(pool, tool = &*tool.name, %error, "arguments of a tool are not validated");
    }
    if let Err(error) = &tool.headers {
        tracing::warn!(pool, tool = &*tool.name, %error, "a tool is hidden from modern clients");
    }
    if tool.takes_anything {
        tracing::warn!(
            pool,
            tool = &*tool.name,
            "a tool is listed as taking any object: its inputSchema does not describe one"
        );
    }
    if !tool.repairs.is_empty() {
        let repairs = tool.repairs.join("; ");
        tracing::info!(
            pool,
            tool = &*tool.name,
            repairs,
            "changed the inputSchema of a tool because clients would refuse it"
        );
    }
}
