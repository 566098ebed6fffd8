//! The seam that says who owns a session, and keeps its record.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{Epoch, Evidence, NodeId, Principal, SessionId, StoreError};

/// Who owns which session, under which epoch, and what the session's record says.
///
/// Each method is one atomic step, but for [`Directory::claim`], which may look first and then compare and
/// set. A session has at most one owner; a node owns while its lease lives. Every write carries an epoch
/// and is refused ([`StoreError::Stale`]) if it is not the newest, which is what keeps a former owner from
/// harm; leases only say when somebody else may claim. Records expire when nothing has touched them for
/// their `idle` time.
///
/// Every method may be called again after [`StoreError::Unavailable`], which leaves open whether the step
/// was done: a step that was done is not done twice. `save` and `release` restart the idle time, and so does `claim` in an engine
/// that outlives nodes; calls do not, so an owner saves the sessions that it keeps now and then.
#[async_trait]
pub trait Directory: Send + Sync + 'static {
    /// Renews (or begins) the lease of a node, and says whether others may have claimed the node's sessions since
    /// the last renewal that was confirmed.
    async fn renew_lease(&self, node: &NodeId, lease: Duration) -> Result<Renewal, StoreError>;

    /// Ends the lease of a node at once, which lets others claim its sessions.
    async fn end_lease(&self, node: &NodeId) -> Result<(), StoreError>;

    /// Enters a new session, owned by `owner`.
    async fn create(&self, new: NewSession) -> Result<Epoch, StoreError>;

    /// Who owns the session now; `None` when there is no such session.
    async fn lookup(&self, session: &SessionId) -> Result<Option<Placement>, StoreError>;

    /// Makes `node` the owner and raises the epoch, if nobody holds the session: it was released, its
    /// owner's lease is gone, or `node` itself held it.
    ///
    /// # Errors
    /// `NotFound`; `Held` while another owner's lease lives, or when another claim was quicker.
    async fn claim(&self, session: &SessionId, node: &NodeId) -> Result<Claim, StoreError>;

    /// As [`Directory::claim`], and also from an owner whose lease lives, if it is the one that there is evidence
    /// against. Its next renewal says so ([`Renewal::Contested`]).
    ///
    /// # Errors
    /// As for a claim. `Held` also while a lease has not passed, by the store's clock, since the session came to its
    /// owner, unless that one [has missed a renewal](Evidence::has_missed_a_renewal) since: two nodes that work and do not
    /// reach each other would take it from one another for ever.
    async fn claim_on_evidence(
        &self,
        session: &SessionId,
        node: &NodeId,
        evidence: &Evidence,
    ) -> Result<Claim, StoreError>;

    /// Enters a claim again, with the record, after [`StoreError::Forgotten`].
    ///
    /// For engines that lose nothing there is nothing to do.
    ///
    /// # Errors
    /// `Stale` when there is a newer claim; `NotFound`.
    async fn restore(
        &self,
        _session: &SessionId,
        _claim: Claim,
        _owner: &NodeId,
        _idle: Duration,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    /// Which of these sessions are still held under these epochs, in the same order.
    async fn held(&self, sessions: &[(SessionId, Epoch)]) -> Result<Vec<bool>, StoreError>;

    /// Replaces the record and restarts the idle time of everything that the session has.
    async fn save(
        &self,
        session: &SessionId,
        epoch: Epoch,
        record: Bytes,
        idle: Duration,
    ) -> Result<(), StoreError>;

    /// Gives the session up, with its last record: the next claim need not wait for a lease.
    async fn release(
        &self,
        session: &SessionId,
        epoch: Epoch,
        record: Bytes,
        idle: Duration,
    ) -> Result<(), StoreError>;

    /// Removes the session with its streams and journal.
    async fn remove(&self, session: &SessionId, epoch: Epoch) -> Result<(), StoreError>;

    /// Lists sessions that run at a node and must go on without it, for `life`; said again before that is over. What of it is
    /// there already stays. For engines that end with their only node there is nothing to do, here and below.
    async fn enlist(
        &self,
        _node: &NodeId,
        _sessions: &[(SessionId, Principal)],
        _life: Duration,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    /// Takes sessions off a node's list.
    async fn delist(&self, _node: &NodeId, _sessions: &[SessionId]) -> Result<(), StoreError> {
        Ok(())
    }

    /// The nodes that have a list, those that are gone included, in no order.
    async fn listing(&self) -> Result<Vec<NodeId>, StoreError> {
        Ok(Vec::new())
    }

    /// Some of a node's list, in no order and others each time; none only where the list is empty.
    async fn enlisted(
        &self,
        _node: &NodeId,
        _at_most: usize,
    ) -> Result<Vec<(SessionId, Principal)>, StoreError> {
        Ok(Vec::new())
    }

    /// Forgets that a node has a list, whose last session was taken off.
    async fn forget_list(&self, _node: &NodeId) -> Result<(), StoreError> {
        Ok(())
    }

    /// Removes what has expired and returns how many sessions that were. Engines whose store expires
    /// by itself return 0.
    async fn sweep(&self) -> Result<usize, StoreError>;
}

/// A session to enter.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Its id.
    pub session: SessionId,
    /// Whose it is; never changes.
    pub principal: Principal,
    /// Who owns it first.
    pub owner: NodeId,
    /// What another node needs to be the session.
    pub record: Bytes,
    /// How long it lives untouched.
    pub idle: Duration,
}

/// Where a session is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Whose it is.
    pub principal: Principal,
    /// The owner, while one holds it and its lease lives.
    pub owner: Option<NodeId>,
    /// The newest epoch.
    pub epoch: Epoch,
}

/// What a renewal has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The lease has lived on, and nobody has claimed from it.
    Kept,
    /// It has lived on, and somebody has claimed from it on [`Evidence`] that its node is gone, or is about to.
    Contested,
    /// There was no lease: it has lapsed, or this is the first.
    Begun,
}

/// A won claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The new epoch.
    pub epoch: Epoch,
    /// The session's record.
    pub record: Bytes,
}
