use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use shoal_ports::{Call, PoolCatalog, RawObjectOrEmpty, shown};
use shoal_protocol::{Era, Method, RawJson, RawObject, code};

use super::error::RequestError;
use super::link::ServerLink;
use super::params;

/// A server with more pages invents cursors.
const MAX_PAGES: usize = 1000;
/// Maximum bytes of all lists together, which stay in memory.
pub(super) const MAX_BYTES: usize = 16 * 1024 * 1024;
const SHOWN: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Tools,
    Resources,
    Templates,
    Prompts,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Which([bool; 4]);

impl List {
    pub(crate) const ALL: [Self; 4] =
        [Self::Tools, Self::Resources, Self::Templates, Self::Prompts];

    pub(crate) fn of_method(method: &Method) -> Option<Self> {
        Self::ALL.into_iter().find(|list| list.method() == *method)
    }

    pub(super) fn method(self) -> Method {
        match self {
            Self::Tools => Method::ToolsList,
            Self::Resources => Method::ResourcesList,
            Self::Templates => Method::ResourceTemplatesList,
            Self::Prompts => Method::PromptsList,
        }
    }

    /// The index in announcements: tools, resources with templates, prompts.
    pub(super) fn kind(self) -> usize {
        match self {
            Self::Tools => 0,
            Self::Resources | Self::Templates => 1,
            Self::Prompts => 2,
        }
    }

    pub(super) fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources | Self::Templates => "resources",
            Self::Prompts => "prompts",
        }
    }

    pub(super) fn of(self, catalog: &PoolCatalog) -> &[RawJson] {
        match self {
            Self::Tools => &catalog.tools,
            Self::Resources => &catalog.resources,
            Self::Templates => &catalog.resource_templates,
            Self::Prompts => &catalog.prompts,
        }
    }

    fn set(self, catalog: &mut PoolCatalog, items: Vec<RawJson>) {
        *match self {
            Self::Tools => &mut catalog.tools,
            Self::Resources => &mut catalog.resources,
            Self::Templates => &mut catalog.resource_templates,
            Self::Prompts => &mut catalog.prompts,
        } = items;
    }
}

impl Which {
    pub(crate) fn only(list: List) -> Self {
        Self(List::ALL.map(|other| other == list))
    }

    pub(crate) fn announced([tools, resources, prompts]: [bool; 3]) -> Self {
        Self([tools, resources, resources, prompts])
    }

    pub(crate) fn others(self) -> Self {
        Self(self.0.map(|is_in| !is_in))
    }

    pub(super) fn with(mut self, list: List) -> Self {
        self.0[list as usize] = true;
        self
    }

    pub(crate) fn is_empty(self) -> bool {
        self == Self::default()
    }

    pub(super) fn has(self, list: List) -> bool {
        self.0[list as usize]
    }
}

/// An unreadable list keeps its last known items.
#[derive(Clone)]
pub(crate) struct Lists {
    pub(crate) catalog: PoolCatalog,
    missing: [Option<RequestError>; 4],
    remarks: [Option<String>; 4],
    pending: Which,
    /// Whether the server declares no lists. Shoal reads them anyway, as SDK clients do.
    undeclared: bool,
}

pub(crate) type PendingLists =
    FuturesUnordered<BoxFuture<'static, (List, Result<Pages, RequestError>)>>;

pub(crate) struct Pages {
    pub(super) items: Vec<RawJson>,
    pub(super) ttl: Option<u64>,
    pub(super) remark: Option<String>,
}

impl Lists {
    pub(crate) fn of(link: &ServerLink, known: Option<&PoolCatalog>) -> Self {
        let greeting = link.greeting();
        let capabilities = List::ALL.map(List::capability);
        let undeclared = !capabilities.iter().any(|name| greeting.declares(name));
        let mut lists = Self {
            catalog: PoolCatalog {
                server_info: greeting.server_info.clone(),
                instructions: greeting.instructions.clone(),
                capabilities: RawObjectOrEmpty(greeting.capabilities.clone()),
                ..known.cloned().unwrap_or_default()
            },
            missing: Default::default(),
            remarks: Default::default(),
            pending: Which::default(),
            undeclared,
        };
        for list in List::ALL {
            if !lists.is_offered(list) {
                list.set(&mut lists.catalog, Vec::new());
                lists.catalog.ttl_ms[list as usize] = None;
            }
        }
        lists
    }

    pub(crate) fn ask(&mut self, link: &Arc<ServerLink>, which: Which) -> PendingLists {
        let asked: Vec<List> = (List::ALL.into_iter())
            .filter(|list| which.has(*list) && self.is_offered(*list))
            .collect();
        self.pending = Which(List::ALL.map(|list| asked.contains(&list)));
        let kept = List::ALL.iter().filter(|list| !asked.contains(list));
        let kept = kept
            .flat_map(|list| list.of(&self.catalog))
            .map(RawJson::len);
        let room = Arc::new(AtomicUsize::new(MAX_BYTES.saturating_sub(kept.sum())));
        let answers = asked.into_iter().map(|list| {
            let (link, room) = (link.clone(), room.clone());
            async move { (list, pages(&link, list, &room, None).await) }.boxed()
        });
        answers.collect()
    }

    pub(crate) fn take(
        &mut self,
        link: &ServerLink,
        (list, read): (List, Result<Pages, RequestError>),
    ) {
        let at = list as usize;
        self.pending.0[at] = false;
        (self.missing[at], self.remarks[at]) = (None, None);
        match read {
            Ok(mut pages) => {
                if list == List::Tools {
                    link.learn_task_tools(&mut pages.items);
                }
                self.remarks[at] = pages.remark;
                self.catalog.ttl_ms[at] = pages.ttl;
                list.set(&mut self.catalog, pages.items);
            }
            Err(error) if self.undeclared => {
                tracing::debug!(target: "shoal::upstream", server = link.name(), ?list, %error, "the server does not have a list that it does not declare");
            }
            Err(error) => self.missing[at] = Some(error),
        }
    }

    pub(crate) fn give_up_pending(&mut self) {
        for at in 0..self.missing.len() {
            if self.pending.0[at] && !self.undeclared {
                self.missing[at] = Some(RequestError::TimedOut);
            }
        }
    }

    fn is_offered(&self, list: List) -> bool {
        self.undeclared || self.catalog.declares(list.capability())
    }

    pub(crate) fn missing(&self) -> Which {
        Which(std::array::from_fn(|at| self.missing[at].is_some()))
    }

    /// Why the server is useless: its tools are unreadable, and it offers nothing else.
    pub(crate) fn useless(&self) -> Option<&RequestError> {
        let offers_nothing = List::ALL
            .iter()
            .all(|list| list.of(&self.catalog).is_empty());
        self.missing[List::Tools as usize]
            .as_ref()
            .filter(|_| offers_nothing)
    }

    pub(crate) fn degraded(&self) -> Option<String> {
        let lacking: Vec<String> = self.lacking().collect();
        (!lacking.is_empty()).then(|| lacking.join("; "))
    }

    pub(crate) fn wrong(&self) -> impl Iterator<Item = String> {
        self.lacking().chain(self.remarks.iter().flatten().cloned())
    }

    fn lacking(&self) -> impl Iterator<Item = String> {
        List::ALL.into_iter().filter_map(|list| {
            let why = self.missing[list as usize].as_ref()?;
            Some(format!("{} could not be read: {why}", list.method()))
        })
    }
}

/// Reads all pages of a list, and takes their bytes from `room`. A repeated page or cursor ends the
/// list.
pub(super) async fn pages(
    link: &Arc<ServerLink>,
    list: List,
    room: &AtomicUsize,
    call: Option<&Call>,
) -> Result<Pages, RequestError> {
    let (method, member) = (list.method(), list.member());
    let mut pages = Pages {
        items: Vec::new(),
        ttl: None,
        remark: None,
    };
    let mut cursor: Option<RawJson> = None;
    let mut seen: HashSet<Bytes> = HashSet::new();
    for _ in 0..MAX_PAGES {
        let asked = params(link, cursor.take(), call);
        let caller = call.map(|call| &call.caller);
        let page = match link.request_of(caller, method.clone(), asked).await {
            Ok(page) => page,
            // Servers often declare more than they implement, such as `resources` without templates.
            Err(RequestError::Rpc(error)) if error.code == code::METHOD_NOT_FOUND => {
                return Ok(pages);
            }
            Err(error) => return Err(error),
        };
        let less = |room: usize| room.checked_sub(page.len());
        if room.fetch_update(Relaxed, Relaxed, less).is_err() {
            let told = format!("its lists have more than {MAX_BYTES} bytes");
            return Err(RequestError::Unreadable(told));
        }
        let unreadable =
            |what: String| RequestError::Unreadable(format!("in its answer to {method} {what}"));
        let page = RawObject::of(&page)
            .ok_or_else(|| unreadable("the result is not a JSON object".to_owned()))?;
        let own = page.get("ttlMs").and_then(|own| own.read::<u64>().ok());
        pages.ttl = [pages.ttl, own].into_iter().flatten().min();
        if let Some(raw) = page.get(member).filter(|found| found.as_str() != "null") {
            let found = raw.read::<Vec<RawJson>>();
            let found = found.map_err(|_| unreadable(format!("`{member}` is not an array")))?;
            if !found.is_empty() && !seen.insert(raw.to_bytes()) {
                pages.remark = Some(format!("{method} repeats a page: the list ends before it"));
                return Ok(pages);
            }
            pages.items.extend(found);
        }
        cursor = page.get("nextCursor").filter(|c| c.as_str() != "null");
        let Some(next) = &cursor else {
            return Ok(pages);
        };
        // `seen` also holds pages, so a cursor that looks like a page, an array, is not compared.
        if !next.as_str().starts_with('[') && !seen.insert(next.to_bytes()) {
            let next = shown(next.as_str(), SHOWN);
            pages.remark = Some(format!(
                "{method} repeats the cursor {next}: the list ends there"
            ));
            return Ok(pages);
        }
    }
    pages.remark = Some(format!(
        "{method} has more than {MAX_PAGES} pages: the list ends there"
    ));
    Ok(pages)
}

fn params(link: &ServerLink, cursor: Option<RawJson>, call: Option<&Call>) -> Option<RawJson> {
    let mut params = RawObject::default();
    if let Some(cursor) = cursor {
        params.set("cursor", cursor);
    }
    if let Some(call) = call {
        let page = Call {
            params: (!params.is_empty()).then(|| params.to_json()),
            ..call.clone()
        };
        return params::for_server(&page, link.greeting(), 0);
    }
    match link.greeting().era {
        Era::Modern => Some(link.with_own_meta(params)),
        Era::Legacy => (!params.is_empty()).then(|| params.to_json()),
    }
}
