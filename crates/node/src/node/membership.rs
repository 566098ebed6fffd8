use shoal_cluster::{Members, RoutedGateway};
use shoal_session::Sessions;

/// Membership in the cluster, and the way to legacy sessions.
pub(crate) struct ClusterMembership {
    pub(crate) members: Members,
    pub(crate) gateway: RoutedGateway,
    pub(crate) sessions: Option<Sessions>,
    /// Whether only this process can own sessions.
    pub(crate) alone: bool,
}
