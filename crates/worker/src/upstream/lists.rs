//! Reading what a server offers.

use std::sync::Arc;

use shoal_ports::{PoolCatalog, RawObjectOrEmpty};
use shoal_protocol::{Era, Method, RawJson, RawObject, code};

use super::error::RequestError;
use super::link::Link;

/// A list of more pages has gone wrong: a server that repeats its cursor for ever.
const MAX_PAGES: usize = 1000;

/// Reads every list that the server declares; the generations are left at zero.
pub(crate) async fn read(link: &Arc<Link>) -> Result<PoolCatalog, RequestError> {
    let greeting = link.greeting();
    let mut catalog = PoolCatalog {
        server_info: greeting.server_info.clone(),
        instructions: greeting.instructions.clone(),
        capabilities: RawObjectOrEmpty(greeting.capabilities.clone()),
        ..PoolCatalog::default()
    };
    let [tools_ttl, resources_ttl, templates_ttl, prompts_ttl] = &mut catalog.ttl_ms;
    if greeting.declares("tools") {
        catalog.tools = list(link, Method::ToolsList, "tools", tools_ttl).await?;
    }
    if greeting.declares("resources") {
        catalog.resources = list(link, Method::ResourcesList, "resources", resources_ttl).await?;
        let method = Method::ResourceTemplatesList;
        let templates = list(link, method, "resourceTemplates", templates_ttl);
        catalog.resource_templates = templates.await?;
    }
    if greeting.declares("prompts") {
        catalog.prompts = list(link, Method::PromptsList, "prompts", prompts_ttl).await?;
    }
    Ok(catalog)
}

/// All pages of a list; `ttl` becomes the shortest of theirs.
async fn list(
    link: &Arc<Link>,
    method: Method,
    member: &str,
    ttl: &mut Option<u64>,
) -> Result<Vec<RawJson>, RequestError> {
    let mut items = Vec::new();
    let mut cursor: Option<RawJson> = None;
    for _ in 0..MAX_PAGES {
        let page = match link
            .request(method.clone(), params(link, cursor.take()))
            .await
        {
            Ok(page) => page,
            // Servers declare capabilities more generously than they implement their lists
            // (`resources` without templates is common).
            Err(RequestError::Rpc(error)) if error.code == code::METHOD_NOT_FOUND => break,
            Err(error) => return Err(error),
        };
        let page = RawObject::of(&page).unwrap_or_default();
        let own = page.get("ttlMs").and_then(|own| own.read::<u64>().ok());
        *ttl = [*ttl, own].into_iter().flatten().min();
        if let Some(found) = page.get(member) {
            items.extend(found.read::<Vec<RawJson>>().unwrap_or_default());
        }
        cursor = page.get("nextCursor").filter(|c| c.as_str() != "null");
        if cursor.is_none() {
            return Ok(items);
        }
    }
    Ok(items)
}

fn params(link: &Link, cursor: Option<RawJson>) -> Option<RawJson> {
    let mut params = RawObject::default();
    if let Some(cursor) = cursor {
        params.set("cursor", cursor);
    }
    match link.greeting().era {
        Era::Modern => Some(link.with_own_meta(params)),
        Era::Legacy => (!params.is_empty()).then(|| params.to_json()),
    }
}
