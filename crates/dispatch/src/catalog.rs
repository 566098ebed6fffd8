mod budget;
mod checker;
mod compiled;
mod conflict;
mod extensions;
mod facts;
mod fitting;
#[cfg(fuzzing)]
pub(crate) mod fuzz;
mod keepers;
mod key;
mod lenient;
mod lists;
mod merge;
mod metered;
mod pages;
mod pattern_text;
mod prefixed;
mod reports;
mod resource_filter;
mod resource_uri;
mod rules;
mod schema;
mod schema_repair;
mod search_cost;
mod template;
mod tool;

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use shoal_protocol::{Method, RawJson};

pub(crate) use budget::Budget;
pub(crate) use checker::ArgumentVerdict;
pub(crate) use compiled::CompiledPool;
pub use conflict::{Conflict, Degraded, ItemKind};
use extensions::ExtensionPool;
pub(crate) use keepers::{AgreedNames, Keepers, contested};
use lists::CatalogList;
pub(crate) use merge::Audience;
pub(crate) use pages::ListPages;
use resource_filter::ResourceFilter;
use resource_uri::ResourceUri;
pub use rules::{MethodRules, PromptRules, ResourceRules, ToolHints, ToolRules};
use template::UriTemplate;
pub(crate) use tool::CatalogTool;

use crate::access::Access;
use crate::shape::Shaping;

pub(crate) struct Readings {
    pub(crate) whole: Vec<String>,
    /// The spellings with folded case and repeated slashes.
    pub(crate) loose: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub(crate) name: Arc<str>,
    pub(crate) compiled: Arc<CompiledPool>,
}

/// The catalog is immutable and replaced as a whole.
#[derive(Debug)]
pub(crate) struct Catalog {
    /// Unique in the process.
    number: u64,
    tools: HashMap<String, OfferedTool, RandomState>,
    prompts: HashMap<String, OfferedPrompt>,
    resources: HashMap<String, Arc<str>>,
    templates: Vec<(UriTemplate, Arc<str>)>,
    /// Pools that list resources or declare the capability.
    resource_pools: Vec<Arc<str>>,
    /// Pools that list prompts or declare the capability.
    prompt_pools: Vec<Arc<str>>,
    resource_filters: HashMap<Arc<str>, ResourceFilter>,
    titles: HashMap<Arc<str>, String>,
    completes: bool,
    extension_pools: Vec<ExtensionPool>,
    pub(crate) requires_tasks: bool,
    lists: CatalogLists,
    /// Digests of the lists, equal on every node whose pools offer the same.
    pub(crate) versions: [u64; 3],
    pub(crate) conflicts: Vec<Conflict>,
    pub(crate) degraded: Vec<Degraded>,
    pub(crate) shaping: Arc<Shaping>,
    /// Adapts the results of callers that have lists of their own.
    pub(crate) shaping_for_one: Arc<Shaping>,
    pub(crate) server_info: RawJson,
    pub(crate) capabilities: RawJson,
    pub(crate) instructions: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct OfferedTool {
    pub(crate) pool: Arc<str>,
    pub(crate) tool: Arc<CatalogTool>,
}

#[derive(Clone, Debug)]
pub(crate) struct OfferedPrompt {
    pub(crate) pool: Arc<str>,
    pub(crate) name: String,
}

#[derive(Debug, Default)]
struct CatalogLists {
    tools: Option<CatalogList>,
    resources: Option<CatalogList>,
    templates: Option<CatalogList>,
    prompts: Option<CatalogList>,
}

impl Catalog {
    pub(crate) fn tool(&self, name: &str) -> Option<&OfferedTool> {
        self.tools.get(name)
    }

    pub(crate) fn title_of_tool(&self, name: &str) -> Option<String> {
        self.tool(name)?.tool.raw.member("title")?.string()
    }

    pub(crate) fn title_of_pool(&self, pool: &str) -> Option<&str> {
        self.titles.get(pool).map(String::as_str)
    }

    pub(crate) fn prompt(&self, name: &str) -> Option<&OfferedPrompt> {
        self.prompts.get(name)
    }

    /// A pool that alone has prompts may have unlisted prompts.
    pub(crate) fn only_pool_of_prompts(&self) -> Option<&Arc<str>> {
        match self.prompt_pools.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Finds the pool that lists a URI, else the first with a matching template, else the pool with resources if it
    /// is the only one.
    pub(crate) fn resource(&self, uri: &str) -> Option<&Arc<str>> {
        let of_template = || {
            self.template_pool(|template, pool| template.matches(uri) && self.offers_of(pool, uri))
        };
        let only = || match self.resource_pools.as_slice() {
            [only] => self.offers_of(only, uri).then_some(only),
            _ => None,
        };
        self.resources.get(uri).or_else(of_template).or_else(only)
    }

    pub(crate) fn offers_of(&self, pool: &str, uri: &str) -> bool {
        let filter = self.resource_filters.get(pool);
        filter.is_none_or(|filter| filter.admits(uri))
    }

    pub(crate) fn resource_reference(&self, reference: &str) -> Option<&Arc<str>> {
        self.template(reference)
            .or_else(|| self.resource(reference))
    }

    fn template_pool(&self, fits: impl Fn(&UriTemplate, &Arc<str>) -> bool) -> Option<&Arc<str>> {
        let mut templates = self.templates.iter();
        let found = templates.find(|(template, pool)| fits(template, pool));
        found.map(|(_, pool)| pool)
    }

    pub(crate) fn lister(&self, method: &Method, named: &str) -> Option<&Arc<str>> {
        match method {
            Method::ToolsCall => Some(&self.tool(named)?.pool),
            Method::PromptsGet => Some(&self.prompt(named)?.pool),
            Method::ResourcesRead => self.resources.get(named),
            _ => None,
        }
    }

    /// Excludes the data that the catalog shares with its pools.
    pub(crate) fn bytes(&self) -> usize {
        const EACH: usize = 256;
        let tools = self.tools.keys().map(|name| 3 * name.len() + EACH);
        let prompts = self.prompts.iter();
        let prompts = prompts.map(|(name, it)| 3 * name.len() + it.name.len() + EACH);
        let resources = self.resources.keys().map(|uri| 3 * uri.len() + EACH);
        let templates = self.templates.iter();
        let templates = templates.map(|(template, _)| 4 * template.as_str().len() + EACH);
        let told = self.degraded.iter().map(|it| it.reason.len() + EACH);
        let conflicts = self.conflicts.iter().map(|it| it.name.len() + EACH);
        tools.sum::<usize>()
            + prompts.sum::<usize>()
            + resources.sum::<usize>()
            + templates.sum::<usize>()
            + told.sum::<usize>()
            + conflicts.sum::<usize>()
    }

    pub(crate) fn list(&self, method: &Method, access: &Access) -> Option<Arc<ListPages>> {
        let list = match method {
            Method::ToolsList => self.lists.tools.as_ref(),
            Method::ResourcesList => self.lists.resources.as_ref(),
            Method::ResourceTemplatesList => self.lists.templates.as_ref(),
            Method::PromptsList => self.lists.prompts.as_ref(),
            _ => None,
        };
        Some(list?.pages(access, self.number))
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn is_listed(&self, uri: &str) -> bool {
        self.resources.contains_key(uri)
    }

    /// `None` if the spellings lead to different resources.
    pub(crate) fn readings(uri: &str) -> Option<Readings> {
        let ResourceUri { whole, loose, .. } = ResourceUri::read(uri)?;
        Some(Readings { whole, loose })
    }

    pub(crate) fn template(&self, reference: &str) -> Option<&Arc<str>> {
        self.template_pool(|template, _| template.as_str() == reference)
    }

    fn holder(&self, kind: ItemKind, name: &str) -> Option<&str> {
        let pool = match kind {
            ItemKind::Tool => &self.tool(name)?.pool,
            ItemKind::Prompt => &self.prompt(name)?.pool,
            ItemKind::Resource => self.resources.get(name)?,
            ItemKind::ResourceTemplate => self.template(name)?,
        };
        Some(pool)
    }

    pub(crate) fn is_empty(&self) -> bool {
        let CatalogLists {
            tools,
            resources,
            templates,
            prompts,
        } = &self.lists;
        let lists = [tools, resources, templates, prompts];
        lists.iter().all(|list| list.is_none()) && !self.completes
    }

    pub(crate) fn supports(&self, method: &Method) -> bool {
        match method {
            Method::ToolsCall => self.lists.tools.is_some(),
            Method::ResourcesRead => self.lists.resources.is_some(),
            Method::PromptsGet => self.lists.prompts.is_some(),
            Method::Complete => self.completes,
            _ => method.may_be_of_extension() && !self.extension_pools.is_empty(),
        }
    }

    pub(crate) fn tool_names(&self) -> impl Iterator<Item = &str> {
        let tools = self.tools.iter();
        tools.flat_map(|(name, offered)| [name.as_str(), &offered.tool.name])
    }

    pub(crate) fn prompt_names(&self) -> impl Iterator<Item = &str> {
        let prompts = self.prompts.iter();
        prompts.flat_map(|(name, offered)| [name.as_str(), &offered.name])
    }

    pub(crate) fn counts(&self, pool: &str) -> [usize; 4] {
        let of = |name: &Arc<str>| name.as_ref() == pool;
        [
            self.tools.values().filter(|t| of(&t.pool)).count(),
            self.prompts.values().filter(|p| of(&p.pool)).count(),
            self.resources.values().filter(|p| of(p)).count(),
            self.templates.iter().filter(|(_, p)| of(p)).count(),
        ]
    }
}
