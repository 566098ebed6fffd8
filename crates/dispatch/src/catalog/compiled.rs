//! One pool's catalog, read and compiled once for all its workers.

use std::collections::HashMap;
use std::sync::Arc;

use shoal_ports::PoolCatalog;
use shoal_protocol::{RawJson, RawObject};

use super::template::UriTemplate;
use super::tool::Tool;

/// What a pool offers, by name.
#[derive(Debug)]
pub(crate) struct CompiledPool {
    /// What it was made from; an equal catalog needs no second compilation.
    pub(crate) source: Arc<PoolCatalog>,
    pub(crate) tools: Vec<Arc<Tool>>,
    pub(crate) prompts: Vec<(String, RawJson)>,
    /// By URI.
    pub(crate) resources: Vec<(String, RawJson)>,
    pub(crate) templates: Vec<(UriTemplate, RawJson)>,
}

impl CompiledPool {
    /// Reads a catalog and logs what is wrong with it; an item without its name is left out. A tool that
    /// was there `before`, word for word, is not compiled again.
    pub(crate) fn new(pool: &str, source: Arc<PoolCatalog>, before: Option<&Self>) -> Self {
        let known: HashMap<&[u8], &Arc<Tool>> = before
            .iter()
            .flat_map(|before| &before.tools)
            .map(|tool| (tool.raw.as_bytes(), tool))
            .collect();
        let tools = source
            .tools
            .iter()
            .filter_map(|raw| match known.get(raw.as_bytes()) {
                Some(tool) => Some(Arc::clone(tool)),
                None => read_tool(pool, raw),
            })
            .collect();
        Self {
            prompts: keyed(pool, "name", &source.prompts),
            resources: keyed(pool, "uri", &source.resources),
            templates: keyed(pool, "uriTemplate", &source.resource_templates)
                .into_iter()
                .map(|(template, raw)| (UriTemplate::parse(&template), raw))
                .collect(),
            tools,
            source,
        }
    }

    /// Whether it has tools, or says that it may have some.
    pub(crate) fn has_tools(&self) -> bool {
        !self.tools.is_empty() || self.source.declares("tools")
    }

    /// Whether it has prompts, or says that it may have some.
    pub(crate) fn has_prompts(&self) -> bool {
        !self.prompts.is_empty() || self.source.declares("prompts")
    }

    /// Whether it has resources, or says that it may have some.
    pub(crate) fn has_resources(&self) -> bool {
        !self.resources.is_empty()
            || !self.templates.is_empty()
            || self.source.declares("resources")
    }
}

fn read_tool(pool: &str, raw: &RawJson) -> Option<Arc<Tool>> {
    let Some(tool) = Tool::read(raw) else {
        tracing::warn!(pool, "a tool without a name was left out");
        return None;
    };
    if let Err(error) = &tool.checker {
        tracing::warn!(pool, tool = tool.name, %error, "arguments of a tool are not validated");
    }
    if let Err(error) = &tool.headers {
        tracing::warn!(pool, tool = tool.name, %error, "a tool is hidden from modern clients");
    }
    Some(Arc::new(tool))
}

fn keyed(pool: &str, key: &str, items: &[RawJson]) -> Vec<(String, RawJson)> {
    items
        .iter()
        .filter_map(|raw| {
            let name = RawObject::of(raw).and_then(|item| item.get(key)?.string());
            if name.is_none() {
                tracing::warn!(pool, key, "an item without its key was left out");
            }
            Some((name?, raw.clone()))
        })
        .collect()
}
