//! The names that telemetry may use.

use std::sync::Arc;

use shoal_telemetry::metrics::{NameKind, metrics};

use crate::catalog::Catalog;
use crate::pools::View;

/// Old names stay allowed in telemetry, because some reports come late and a process may have
/// several dispatchers.
pub(crate) fn allow_names(view: &View, before: &Arc<Catalog>) {
    let known = &metrics().known;
    known.add(NameKind::Pool, view.pools.keys().map(Arc::clone));
    if !Arc::ptr_eq(&view.catalog, before) {
        known.add(NameKind::Tool, view.catalog.tool_names());
        known.add(NameKind::Prompt, view.catalog.prompt_names());
    }
}
