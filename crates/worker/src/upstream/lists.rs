//! Reading what a server offers.

use std::sync::Arc;

use shoal_ports::{PoolCatalog, RawObjectOrEmpty};
use shoal_protocol::{Era, Method, RawJson, RawObject, code};

use super::error::RequestError;
use super::link::Link;

/// A list of more pages has gone wrong: a server that repeats its cursor for ever.
const MAX_PAGES: usize = 1000;
/// The pages of all lists, in bytes: they are kept for as long as the server runs.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Reads every list that the server declares; the generations are left at zero.
pub(crate) async fn read(link: &Arc<Link>) -> Result<PoolCatalog, RequestError> {
    let greeting = link.greeting();
    let mut catalog = PoolCatalog {
        server_info: greeting.server_info.clone(),
        instructions: greeting.instructions.clone(),
        capabilities: RawObjectOrEmpty(greeting.capabilities.clone()),
        ..PoolCatalog::default()
    };
    let mut room = MAX_BYTES;
    let room = &mut room;
    let [tools_ttl, resources_ttl, templates_ttl, prompts_ttl] = &mut catalog.ttl_ms;
    if greeting.declares("tools") {
        catalog.tools = list(link, Method::ToolsList, "tools", tools_ttl, room).await?;
    }
    if greeting.declares("resources") {
        let method = Method::ResourcesList;
        catalog.resources = list(link, method, "resources", resources_ttl, room).await?;
        let method = Method::ResourceTemplatesList;
        let templates = list(link, method, "resourceTemplates", templates_ttl, room);
        catalog.resource_templates = templates.await?;
    }
    if greeting.declares("prompts") {
        catalog.prompts = list(link, Method::PromptsList, "prompts", prompts_ttl, room).await?;
    }
    Ok(catalog)
}

/// All pages of a list; `ttl` becomes the shortest of theirs, and their bytes are taken from `room`.
async fn list(
    link: &Arc<Link>,
    method: Method,
    member: &str,
    ttl: &mut Option<u64>,
    room: &mut usize,
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
        *room = room.checked_sub(page.as_bytes().len()).ok_or_else(|| {
            RequestError::Unreadable(format!("its lists have more than {MAX_BYTES} bytes"))
        })?;
        let unreadable =
            |what: String| RequestError::Unreadable(format!("in its answer to {method} {what}"));
        let page = RawObject::of(&page)
            .ok_or_else(|| unreadable("the result is not a JSON object".to_owned()))?;
        let own = page.get("ttlMs").and_then(|own| own.read::<u64>().ok());
        *ttl = [*ttl, own].into_iter().flatten().min();
        if let Some(found) = page.get(member) {
            let found = found.read::<Vec<RawJson>>();
            items.extend(found.map_err(|_| unreadable(format!("`{member}` is not an array")))?);
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
