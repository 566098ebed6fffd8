use std::sync::Arc;

use crate::{ClusterBus, Directory, EventLog, Journal, Membership};

/// The storage traits of one engine. When the directory raises a session's epoch, the log and the
/// journal also refuse writes of an older epoch.
#[derive(Clone)]
pub struct Store {
    /// Sessions' owners and records.
    pub directory: Arc<dyn Directory>,
    /// Streams' events.
    pub log: Arc<dyn EventLog>,
    /// Running calls.
    pub journal: Arc<dyn Journal>,
    /// The cluster's nodes and pools.
    pub membership: Arc<dyn Membership>,
    /// The cluster bus.
    pub bus: Arc<dyn ClusterBus>,
}
