//! The seam for session ownership and session records.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{Epoch, Evidence, NodeId, Principal, SessionId, StoreError};

/// The owner, epoch and record of each session.
///
/// Each method is one atomic step, except that [`Directory::claim`] may read first and then compare and set. A session
/// has at most one owner, while its lease lives. The store refuses writes with an old epoch ([`StoreError::Stale`]),
/// which fences off former owners. Records expire after `idle` time without use.
///
/// Every method may be repeated after [`StoreError::Unavailable`] without a second effect. `save`, `release` and, in
/// engines that outlive nodes, `claim` restart the idle time, so owners save periodically.
#[async_trait]
pub trait Directory: Send + Sync + 'static {
    /// Renews or begins a lease. Returns whether others may have claimed sessions since the last renewal.
    async fn renew_lease(&self, node: &NodeId, lease: Duration) -> Result<Renewal, StoreError>;

    /// Ends a lease, so that others can claim.
    async fn end_lease(&self, node: &NodeId) -> Result<(), StoreError>;

    /// Creates a session.
    async fn create(&self, new: NewSession) -> Result<Epoch, StoreError>;

    /// Returns a session's placement, if the session exists.
    async fn lookup(&self, session: &SessionId) -> Result<Option<Placement>, StoreError>;

    /// Makes `node` the owner and raises the epoch, if the session is released, its lease has ended, or `node` owned
    /// it.
    ///
    /// # Errors
    /// `NotFound`; `Held` while another owner's lease lives, or if another claim was faster.
    async fn claim(&self, session: &SessionId, node: &NodeId) -> Result<Claim, StoreError>;

    /// Claims like [`Directory::claim`], also from an owner with a live lease that the evidence is against. Its next
    /// renewal is [contested](Renewal::Contested).
    ///
    /// # Errors
    /// As for a claim. Also `Held` until the owner has had the session for one lease, unless it [has missed a
    /// renewal](Evidence::has_missed_a_renewal): separated nodes must not take it in turns.
    async fn claim_on_evidence(
        &self,
        session: &SessionId,
        node: &NodeId,
        evidence: &Evidence,
    ) -> Result<Claim, StoreError>;

    /// Enters a claim and its record again after [`StoreError::Forgotten`].
    ///
    /// Only engines that can lose data implement this.
    ///
    /// # Errors
    /// `Stale` if there is a newer claim; `NotFound`.
    async fn restore(
        &self,
        _session: &SessionId,
        _claim: Claim,
        _owner: &NodeId,
        _idle: Duration,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns, in order, whether each session is held under its epoch.
    async fn held(&self, sessions: &[(SessionId, Epoch)]) -> Result<Vec<bool>, StoreError>;

    /// Replaces the record and restarts the idle time.
    async fn save(
        &self,
        session: &SessionId,
        epoch: Epoch,
        record: Bytes,
        idle: Duration,
    ) -> Result<(), StoreError>;

    /// Releases the session, so that the next claim need not wait.
    async fn release(
        &self,
        session: &SessionId,
        epoch: Epoch,
        record: Bytes,
        idle: Duration,
    ) -> Result<(), StoreError>;

    /// Removes the session with its streams and journal.
    async fn remove(&self, session: &SessionId, epoch: Epoch) -> Result<(), StoreError>;

    /// Lists sessions to continue without their node, for `life`. The node repeats this. Single-node engines need not
    /// keep lists.
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

    /// Returns the nodes with a list, dead ones included.
    async fn listing(&self) -> Result<Vec<NodeId>, StoreError> {
        Ok(Vec::new())
    }

    /// Returns some random entries of a list; empty only if it is.
    async fn enlisted(
        &self,
        _node: &NodeId,
        _at_most: usize,
    ) -> Result<Vec<(SessionId, Principal)>, StoreError> {
        Ok(Vec::new())
    }

    /// Forgets an empty list.
    async fn forget_list(&self, _node: &NodeId) -> Result<(), StoreError> {
        Ok(())
    }

    /// Removes expired data. Returns the number of sessions, or 0 if the store expires data itself.
    async fn sweep(&self) -> Result<usize, StoreError>;
}

/// A session to create.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// The id.
    pub session: SessionId,
    /// The owning principal, which is fixed.
    pub principal: Principal,
    /// The first owner.
    pub owner: NodeId,
    /// The record.
    pub record: Bytes,
    /// How long the session lives without use.
    pub idle: Duration,
}

/// The location of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The owning principal.
    pub principal: Principal,
    /// The owner, while its lease lives.
    pub owner: Option<NodeId>,
    /// The newest epoch.
    pub epoch: Epoch,
}

/// The result of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The lease continued without a claim against it.
    Kept,
    /// The lease continued, but another node claims sessions on [`Evidence`].
    Contested,
    /// A lease began, because there was no live one.
    Begun,
}

/// A successful claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The new epoch.
    pub epoch: Epoch,
    /// The record.
    pub record: Bytes,
}
