//! What workers offer, and how busy they are.

use std::sync::Arc;

use bytes::Bytes;
use shoal_ports::{
    Announcement, LedgerNumber, PoolCatalog, RawObjectOrEmpty, WorkerId, WorkerLoad,
};
use shoal_protocol::RawJson;

use super::{checked, count};
use crate::error::Malformed;
use crate::proto::worker::v1 as wire;

/// An announcement. A worker that drains offers nothing any more.
pub(crate) fn announcement_out(said: &Announcement, draining: bool) -> wire::Announce {
    wire::Announce {
        pool: said.pool.to_string(),
        catalog: (said.catalog.as_deref().filter(|_| !draining)).map(catalog_out),
        detail: said.detail.clone(),
        draining,
    }
}

/// An announcement.
pub(crate) fn announcement_in(
    worker: &WorkerId,
    said: wire::Announce,
) -> Result<Announcement, Malformed> {
    let catalog = said.catalog.filter(|_| !said.draining);
    let leaving = said.draining.then(|| Announcement::LEAVING.to_owned());
    Ok(Announcement {
        worker: worker.clone(),
        pool: Arc::from(said.pool),
        catalog: catalog.map(catalog_in).transpose()?.map(Arc::new),
        detail: said.detail.or(leaving),
    })
}

fn catalog_out(catalog: &PoolCatalog) -> wire::Catalog {
    let list = |items: &[RawJson]| items.iter().map(RawJson::to_bytes).collect();
    let [tools, resources, prompts] = catalog.generations;
    let [tools_ttl, resources_ttl, templates_ttl, prompts_ttl] = catalog.ttl_ms;
    wire::Catalog {
        server_info: catalog.server_info.as_ref().map(RawJson::to_bytes),
        instructions: catalog.instructions.clone(),
        capabilities: catalog.capabilities.0.to_bytes(),
        tools: list(&catalog.tools),
        resources: list(&catalog.resources),
        resource_templates: list(&catalog.resource_templates),
        prompts: list(&catalog.prompts),
        tools_generation: tools,
        resources_generation: resources,
        prompts_generation: prompts,
        tools_ttl_ms: tools_ttl,
        resources_ttl_ms: resources_ttl,
        resource_templates_ttl_ms: templates_ttl,
        prompts_ttl_ms: prompts_ttl,
        headers: catalog.headers.iter().map(ToString::to_string).collect(),
    }
}

fn catalog_in(catalog: wire::Catalog) -> Result<PoolCatalog, Malformed> {
    let server_info = catalog.server_info.map(|text| checked(text, "server info"));
    let capabilities = match catalog.capabilities {
        empty if empty.is_empty() => RawObjectOrEmpty::default(),
        text => RawObjectOrEmpty(checked(text, "capabilities")?),
    };
    Ok(PoolCatalog {
        server_info: server_info.transpose()?,
        instructions: catalog.instructions,
        capabilities,
        tools: list_in(catalog.tools, "tool")?,
        resources: list_in(catalog.resources, "resource")?,
        resource_templates: list_in(catalog.resource_templates, "resource template")?,
        prompts: list_in(catalog.prompts, "prompt")?,
        ttl_ms: [
            catalog.tools_ttl_ms,
            catalog.resources_ttl_ms,
            catalog.resource_templates_ttl_ms,
            catalog.prompts_ttl_ms,
        ],
        generations: [
            catalog.tools_generation,
            catalog.resources_generation,
            catalog.prompts_generation,
        ],
        headers: catalog.headers.into_iter().map(Arc::from).collect(),
    })
}

fn list_in(items: Vec<Bytes>, what: &'static str) -> Result<Vec<RawJson>, Malformed> {
    // Cut loose from the frame, which is long and otherwise lives as long as any of its items.
    let own = |item: Bytes| Bytes::copy_from_slice(&item);
    items
        .into_iter()
        .map(|item| checked(own(item), what))
        .collect()
}

/// How busy a worker is, and how far its ledger.
pub(crate) fn load_out(load: WorkerLoad, ledger: Option<LedgerNumber>) -> wire::Load {
    wire::Load {
        ledger: ledger.map(|ledger| ledger.number),
        running: load.running as u64,
        queued: load.queued as u64,
        capacity: load.capacity as u64,
    }
}

/// How busy a worker is.
pub(crate) fn load_in(load: wire::Load) -> WorkerLoad {
    WorkerLoad {
        running: count(load.running),
        queued: count(load.queued),
        capacity: count(load.capacity),
    }
}
