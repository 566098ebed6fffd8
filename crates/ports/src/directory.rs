use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{Epoch, Evidence, NodeId, Principal, SessionId, StoreError};

/// Stores the owner, epoch and record of each session.
///
/// Each method is one atomic step, except that [`Directory::claim`] may read first and then compare
/// and set. A session has at most one owner, whose lease must live. The store refuses writes with
/// an old epoch ([`StoreError::Stale`]), which fences off former owners. Records expire after
/// `idle` time without use.
///
/// Methods repeated after [`StoreError::Unavailable`] have no second effect. `save`, `release` and,
/// in engines that outlive nodes, `claim` restart the idle time. Owners therefore save their
/// records periodically.
#[async_trait]
pub trait Directory: Send + Sync + 'static {
    /// Renews or begins a lease. Returns whether others may have claimed the node's sessions since
    /// the last confirmed renewal.
    async fn renew_lease(&self, node: &NodeId, lease: Duration) -> Result<Renewal, StoreError>;

    /// Ends a lease, so that other nodes can claim the node's sessions.
    async fn end_lease(&self, node: &NodeId) -> Result<(), StoreError>;

    /// Creates a session and returns its first epoch. A repetition by the same owner succeeds.
    ///
    /// # Errors
    /// `Held` if the session exists.
    async fn create(&self, new: NewSession) -> Result<Epoch, StoreError>;

    /// Returns a session's owner and epoch.
    async fn lookup(&self, session: &SessionId) -> Result<Option<Placement>, StoreError>;

    /// Makes `node` the owner and raises the epoch, if the owner released the session, the owner's
    /// lease has ended, or `node` is the owner.
    ///
    /// # Errors
    /// `NotFound`; `Held` while another owner's lease lives, or if another node claimed first.
    async fn claim(&self, session: &SessionId, node: &NodeId) -> Result<Claim, StoreError>;

    /// Claims like [`Directory::claim`], but also from the owner that the evidence is against. That
    /// owner's next renewal is [contested](Renewal::Contested).
    ///
    /// # Errors
    /// As for a claim. Also `Held` until that owner has had the session for one lease, by the
    /// store's clock, so that two separated nodes do not claim in turns. An owner that [has missed
    /// a renewal](Evidence::has_missed_a_renewal) is not protected.
    async fn claim_on_evidence(
        &self,
        session: &SessionId,
        node: &NodeId,
        evidence: &Evidence,
    ) -> Result<Claim, StoreError>;

    /// Enters a session's claim and record again after [`StoreError::Forgotten`].
    ///
    /// Only engines that can lose data implement this.
    ///
    /// # Errors
    /// `Stale` if the store has a newer claim; `NotFound`.
    async fn restore(
        &self,
        _session: &SessionId,
        _claim: Claim,
        _owner: &NodeId,
        _idle: Duration,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns, in order, whether each session's owner still holds it under the epoch.
    async fn held(&self, sessions: &[(SessionId, Epoch)]) -> Result<Vec<bool>, StoreError>;

    /// Replaces the record and restarts the idle time.
    async fn save(
        &self,
        session: &SessionId,
        epoch: Epoch,
        record: Bytes,
        idle: Duration,
    ) -> Result<(), StoreError>;

    /// Stores the record and releases the session for any node's claim.
    async fn release(
        &self,
        session: &SessionId,
        epoch: Epoch,
        record: Bytes,
        idle: Duration,
    ) -> Result<(), StoreError>;

    /// Removes the session, its streams and its journal.
    async fn remove(&self, session: &SessionId, epoch: Epoch) -> Result<(), StoreError>;

    /// Adds sessions to the node's list for `life`. The node renews the list. Other nodes take over
    /// the listed sessions if the node dies. Single-node engines need no lists.
    async fn enlist(
        &self,
        _node: &NodeId,
        _sessions: &[(SessionId, Principal)],
        _life: Duration,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    /// Removes sessions from a node's list.
    async fn delist(&self, _node: &NodeId, _sessions: &[SessionId]) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns the nodes with a list, including dead ones.
    async fn listing(&self) -> Result<Vec<NodeId>, StoreError> {
        Ok(Vec::new())
    }

    /// Returns random entries of a node's list; none only if the list is empty.
    async fn enlisted(
        &self,
        _node: &NodeId,
        _at_most: usize,
    ) -> Result<Vec<(SessionId, Principal)>, StoreError> {
        Ok(Vec::new())
    }

    /// Removes a node's list if it is empty.
    async fn forget_list(&self, _node: &NodeId) -> Result<(), StoreError> {
        Ok(())
    }

    /// Removes expired data. Returns the number of removed sessions; 0 if the store expires data
    /// itself.
    async fn sweep(&self) -> Result<usize, StoreError>;
}

/// A session to create.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// The session's id.
    pub session: SessionId,
    /// The owning principal, which never changes.
    pub principal: Principal,
    /// The first owner.
    pub owner: NodeId,
    /// The first record.
    pub record: Bytes,
    /// How long the session lives without use.
    pub idle: Duration,
}

/// The owner and epoch of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The owning principal.
    pub principal: Principal,
    /// The owner, while its lease lives.
    pub owner: Option<NodeId>,
    /// The newest epoch.
    pub epoch: Epoch,
}

/// The result of renewing a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The lease continues without other nodes' claims.
    Kept,
    /// The lease continues, but another node has claimed a session on [`Evidence`].
    Contested,
    /// A new lease began.
    Begun,
}

/// A successful claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The new epoch.
    pub epoch: Epoch,
    /// The session's record.
    pub record: Bytes,
}
