use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use shoal_ports::PoolCatalog;
use shoal_protocol::RawObject;
use tokio::time::Instant;

/// A pool's catalog versions, in the order of their first announcement. Clients see the newest
/// version of any ready worker.
///
/// A repeated announcement keeps this order, so an unstable connection does not change the lists.
#[derive(Default)]
pub(super) struct Versions {
    known: Vec<CatalogVersion>,
}

struct CatalogVersion {
    catalog: Arc<PoolCatalog>,
    tools: Arc<HashSet<String>>,
    unused_since: Option<Instant>,
}

impl Versions {
    pub(super) fn update(
        &mut self,
        announced: &[&Arc<PoolCatalog>],
        linger: Duration,
        now: Instant,
    ) {
        for version in &mut self.known {
            if announced
                .iter()
                .any(|catalog| same(catalog, &version.catalog))
            {
                version.unused_since = None;
            } else {
                version.unused_since.get_or_insert(now);
            }
        }
        self.known.retain(|version| {
            version
                .unused_since
                .is_none_or(|since| now < since + linger)
        });
        for catalog in announced {
            if self.age(catalog).is_none() {
                self.known.push(CatalogVersion {
                    catalog: Arc::clone(catalog),
                    tools: Arc::new(names(catalog)),
                    unused_since: None,
                });
            }
        }
    }

    pub(super) fn newest(&self) -> Option<&Arc<PoolCatalog>> {
        let mut newest_first = self.known.iter().rev();
        let used = newest_first.find(|version| version.unused_since.is_none())?;
        Some(&used.catalog)
    }

    /// `None` for the newest or an unknown version.
    pub(super) fn tools(&self, catalog: &PoolCatalog) -> Option<Arc<HashSet<String>>> {
        let newest = self.newest()?;
        if same(catalog, newest) {
            return None;
        }
        let at = self.age(catalog)?;
        Some(Arc::clone(&self.known[at].tools))
    }

    fn age(&self, catalog: &PoolCatalog) -> Option<usize> {
        let is_it = |version: &CatalogVersion| same(catalog, &version.catalog);
        self.known.iter().position(is_it)
    }
}

pub(super) fn same(one: &PoolCatalog, other: &PoolCatalog) -> bool {
    if std::ptr::eq(one, other) {
        return true;
    }
    let PoolCatalog {
        server_info,
        instructions,
        capabilities,
        tools,
        resources,
        resource_templates,
        prompts,
        ttl_ms,
        generations: _,
        // Each worker has its own headers.
        headers: _,
        lists,
        // Clients do not see these two.
        left_out: _,
        cut: _,
    } = one;
    *tools == other.tools
        && *resources == other.resources
        && *resource_templates == other.resource_templates
        && *prompts == other.prompts
        && *ttl_ms == other.ttl_ms
        && *lists == other.lists
        && *capabilities == other.capabilities
        && *server_info == other.server_info
        && *instructions == other.instructions
}

fn names(catalog: &PoolCatalog) -> HashSet<String> {
    let name = |tool| RawObject::of(tool)?.get("name")?.string();
    catalog.tools.iter().filter_map(name).collect()
}
