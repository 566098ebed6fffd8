//! Reads the handler's lists, again after each announced change.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ErrorCode, PaginatedRequestParams};
use rmcp::{ErrorData, ServerHandler};
use serde::Serialize;
use shoal_ports::{PoolCatalog, RawObjectOrEmpty};
use shoal_protocol::RawJson;
use tokio::sync::watch;

use super::guarded;
use super::host::Host;
use super::hub::{HandlerHub, HandlerList};
use crate::BackendState;

const RETRY: Duration = Duration::from_secs(5);
/// A handler with more pages probably ignores the cursor.
const PAGES: usize = 1000;
const LISTS: [HandlerList; 3] = [
    HandlerList::Tools,
    HandlerList::Resources,
    HandlerList::Prompts,
];

pub(super) struct Lister<H: ServerHandler> {
    pub(super) handler: Arc<H>,
    pub(super) host: Arc<Host<H>>,
    pub(super) hub: Arc<HandlerHub>,
    pub(super) state: watch::Sender<BackendState>,
}

#[derive(Debug, thiserror::Error)]
enum ListError {
    #[error("the handler could not list its {what}: {error}")]
    Refused {
        what: &'static str,
        error: ErrorData,
    },
    #[error("the handler panicked while it listed its {what}")]
    Panicked { what: &'static str },
    #[error("the handler's list of {what} does not end within {PAGES} pages")]
    Endless { what: &'static str },
}

type ListedPage = (Vec<RawJson>, Option<u64>);

type HandlerPage = Result<(ListedPage, Option<String>), ErrorData>;

impl<H: ServerHandler> Lister<H> {
    pub(super) async fn start(&self) -> PoolCatalog {
        let info = self.handler.get_info();
        let mut catalog = PoolCatalog {
            server_info: Some(RawJson::of(&info.server_info)),
            instructions: info.instructions,
            capabilities: RawObjectOrEmpty(RawJson::of(&info.capabilities)),
            ..PoolCatalog::default()
        };
        if !LISTS.iter().any(|list| catalog.declares(list.capability())) {
            tracing::warn!(
                "the handler offers nothing: the capabilities in its get_info name no tools, resources or prompts"
            );
        }
        self.refresh(&mut catalog, None).await;
        catalog
    }

    pub(super) async fn follow(self, mut catalog: PoolCatalog) {
        loop {
            let incomplete = self.state.borrow().detail.is_some();
            tokio::select! {
                () = self.hub.changed() => {}
                () = tokio::time::sleep(RETRY), if incomplete => {}
            }
            let known = (!incomplete).then_some(catalog.generations);
            self.refresh(&mut catalog, known).await;
        }
    }

    /// Reads all lists if `known` is `None`.
    async fn refresh(&self, catalog: &mut PoolCatalog, known: Option<[u64; 3]>) {
        // Taken before the lists are read, so that an announcement meanwhile causes another read.
        let announced = self.hub.announced();
        let due = LISTS.map(|list| {
            let at = list as usize;
            catalog.declares(list.capability()) && known.is_none_or(|it| it[at] != announced[at])
        });
        let [tools_due, resources_due, prompts_due] = due;
        let ttl = &mut catalog.ttl_ms;
        let mut listed = Ok(());
        if tools_due {
            let tools = self.tools().await;
            listed = listed.and(tools.map(|tools| (catalog.tools, ttl[0]) = tools));
        }
        if resources_due {
            let (resources, templates) = (self.resources().await, self.templates().await);
            listed = listed
                .and(resources.map(|resources| (catalog.resources, ttl[1]) = resources))
                .and(templates.map(|templates| (catalog.resource_templates, ttl[2]) = templates));
        }
        if prompts_due {
            let prompts = self.prompts().await;
            listed = listed.and(prompts.map(|prompts| (catalog.prompts, ttl[3]) = prompts));
        }
        let detail = match listed {
            Ok(()) => {
                catalog.generations = announced;
                None
            }
            Err(error) => {
                tracing::warn!("{error}; trying again in {} s", RETRY.as_secs());
                Some(error.to_string())
            }
        };
        self.state.send_modify(|state| {
            if detail.is_none() {
                state.catalog = Some(Arc::new(catalog.clone()));
            }
            state.detail = detail;
        });
    }

    async fn tools(&self) -> Result<ListedPage, ListError> {
        pages("tools", |cursor| async {
            let page = self.handler.list_tools(cursor, self.host.context()).await?;
            Ok(((raw(&page.tools), page.ttl_ms), page.next_cursor))
        })
        .await
    }

    async fn resources(&self) -> Result<ListedPage, ListError> {
        pages("resources", |cursor| async {
            let page = self
                .handler
                .list_resources(cursor, self.host.context())
                .await?;
            Ok(((raw(&page.resources), page.ttl_ms), page.next_cursor))
        })
        .await
    }

    async fn templates(&self) -> Result<ListedPage, ListError> {
        pages("resource templates", |cursor| async {
            let listed = self
                .handler
                .list_resource_templates(cursor, self.host.context());
            let page = listed.await?;
            Ok((
                (raw(&page.resource_templates), page.ttl_ms),
                page.next_cursor,
            ))
        })
        .await
    }

    async fn prompts(&self) -> Result<ListedPage, ListError> {
        pages("prompts", |cursor| async {
            let page = self
                .handler
                .list_prompts(cursor, self.host.context())
                .await?;
            Ok(((raw(&page.prompts), page.ttl_ms), page.next_cursor))
        })
        .await
    }
}

async fn pages<R>(
    what: &'static str,
    mut page: impl FnMut(Option<PaginatedRequestParams>) -> R,
) -> Result<ListedPage, ListError>
where
    R: Future<Output = HandlerPage>,
{
    let (mut all, mut ttl) = (Vec::new(), None);
    let mut cursor = None;
    for _ in 0..PAGES {
        let request = cursor.map(|it| PaginatedRequestParams::default().with_cursor(Some(it)));
        let listed = guarded(page(request)).await;
        let ((items, own), next) = match listed.map_err(|_| ListError::Panicked { what })? {
            Ok(page) => page,
            // Handlers often declare capabilities without implementing all lists.
            Err(error) if error.code == ErrorCode::METHOD_NOT_FOUND => return Ok((all, ttl)),
            Err(error) => return Err(ListError::Refused { what, error }),
        };
        all.extend(items);
        ttl = [ttl, own].into_iter().flatten().min();
        cursor = next;
        if cursor.is_none() {
            return Ok((all, ttl));
        }
    }
    Err(ListError::Endless { what })
}

fn raw<T: Serialize>(items: &[T]) -> Vec<RawJson> {
    items.iter().map(RawJson::of).collect()
}
