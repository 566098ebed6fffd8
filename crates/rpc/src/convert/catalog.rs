use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use shoal_ports::{
    Announcement, LedgerNumber, ListOwner, ListScope, OwnLists, PoolCatalog, Principal,
    RawObjectOrEmpty, SessionId, WorkerId, WorkerLoad, changed_owners,
};
use shoal_protocol::RawJson;

use super::{checked, count};
use crate::error::Malformed;
use crate::proto::worker::v1 as wire;
use crate::proto::worker::v1::own_lists::Owner;
use crate::proto::worker::v1::own_lists::owner::Who;

const OWNERS: usize = 1_000;

/// Omits the catalog while the worker drains.
pub(crate) fn announcement_out(said: &Announcement, draining: bool) -> wire::Announce {
    wire::Announce {
        pool: said.pool.to_string(),
        catalog: (said.catalog.as_deref().filter(|_| !draining)).map(catalog_out),
        detail: said.detail.clone(),
        draining,
    }
}

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

/// Encodes a pool's catalog for [`decode_catalog`].
#[must_use]
pub fn encode_catalog(catalog: &PoolCatalog) -> Vec<u8> {
    catalog_out(catalog).encode_to_vec()
}

/// Decodes a pool's catalog; `None` if the bytes are invalid.
#[must_use]
pub fn decode_catalog(bytes: &[u8]) -> Option<PoolCatalog> {
    catalog_in(wire::Catalog::decode(bytes).ok()?).ok()
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
        lists: match catalog.lists {
            ListScope::Shared => wire::catalog::Lists::Unspecified,
            ListScope::Principal => wire::catalog::Lists::Principal,
        }
        .into(),
        left_out: catalog.left_out.clone(),
        cut: catalog.cut.clone(),
    }
}

fn catalog_in(catalog: wire::Catalog) -> Result<PoolCatalog, Malformed> {
    let lists = match catalog.lists() {
        wire::catalog::Lists::Unspecified => ListScope::Shared,
        wire::catalog::Lists::Principal => ListScope::Principal,
    };
    let server_info = catalog.server_info.map(|text| checked(text, "server info"));
    let capabilities = match catalog.capabilities {
        empty if empty.is_empty() => RawObjectOrEmpty::default(),
        text => RawObjectOrEmpty(checked(text, "capabilities")?),
    };
    Ok(PoolCatalog {
        lists,
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
        left_out: catalog.left_out,
        cut: catalog.cut,
    })
}

fn list_in(items: Vec<Bytes>, what: &'static str) -> Result<Vec<RawJson>, Malformed> {
    // Copied, because a slice would keep the whole frame alive.
    let own = |item: Bytes| Bytes::copy_from_slice(&item);
    items
        .into_iter()
        .map(|item| checked(own(item), what))
        .collect()
}

/// Returns changed owners, or all owners without `before`.
pub(crate) fn own_lists_out(before: Option<&OwnLists>, now: &OwnLists) -> Vec<wire::OwnLists> {
    let owner = |owner: &ListOwner| {
        let [tools, resources, prompts] = now.get(owner).copied().unwrap_or_default();
        Owner {
            who: Some(match owner {
                ListOwner::Session(session) => Who::Session(session.to_string()),
                ListOwner::Principal(principal) => Who::Principal(principal.to_string()),
                ListOwner::Sessionless(principal) => Who::Sessionless(principal.to_string()),
            }),
            tools,
            resources,
            prompts,
        }
    };
    let owners: Vec<Owner> = match before {
        Some(before) => changed_owners(before, now)
            .map(|(it, _)| owner(it))
            .collect(),
        None => now.keys().map(owner).collect(),
    };
    let mut frames: Vec<_> = (owners.chunks(OWNERS))
        .map(|owners| wire::OwnLists {
            owners: owners.to_vec(),
            whole: false,
        })
        .collect();
    if before.is_none() {
        if frames.is_empty() {
            frames.push(wire::OwnLists::default());
        }
        frames[0].whole = true;
    }
    frames
}

pub(crate) fn own_lists_in(before: &OwnLists, said: wire::OwnLists) -> OwnLists {
    let mut own = match said.whole {
        true => OwnLists::default(),
        false => OwnLists::clone(before),
    };
    let all = Arc::make_mut(&mut own);
    for owner in said.owners {
        let numbers = [owner.tools, owner.resources, owner.prompts];
        let who = match owner.who {
            Some(Who::Session(session)) => ListOwner::Session(SessionId::new(session)),
            Some(Who::Principal(principal)) => ListOwner::Principal(Principal::new(principal)),
            Some(Who::Sessionless(principal)) => ListOwner::Sessionless(Principal::new(principal)),
            None => continue,
        };
        match numbers {
            [0, 0, 0] => drop(all.remove(&who)),
            numbers => drop(all.insert(who, numbers)),
        }
    }
    own
}

pub(crate) fn load_out(load: WorkerLoad, ledger: Option<LedgerNumber>) -> wire::Load {
    wire::Load {
        ledger: ledger.map(|ledger| ledger.number),
        running: load.running as u64,
        queued: load.queued as u64,
        capacity: load.capacity as u64,
    }
}

pub(crate) fn load_in(load: wire::Load) -> WorkerLoad {
    WorkerLoad {
        running: count(load.running),
        queued: count(load.queued),
        capacity: count(load.capacity),
    }
}
