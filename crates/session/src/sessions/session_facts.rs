use std::sync::Arc;

use shoal_ports::SessionTransport;
use shoal_protocol::Revision;

pub(crate) struct SessionFacts {
    pub(crate) client: Option<Arc<str>>,
    pub(crate) revision: Option<Revision>,
    pub(crate) transport: SessionTransport,
    /// Milliseconds since 1970, if known.
    pub(crate) opened_at: Option<u64>,
}
