//! Limits the bytes of large requests per edge and per principal.
//!
//! A body of up to [`SMALL`] bytes needs no room, so large bodies do not delay small calls. A
//! larger one takes room before Shoal reads it: first from its principal's share, then from the
//! node's, each in one step, so that requests cannot deadlock. Without room, TCP slows the sender
//! down, and Shoal refuses the request after `EdgeConfig::body_wait`.
//!
//! The room is held until the request is answered.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shoal_ports::{NodeLimits, Principal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::load::Load;
use crate::refusal::Refusal;

pub(crate) const SMALL: usize = 16 << 10;

const PIECE: usize = 1024;

pub(crate) struct BodyBudget {
    limit: usize,
    per_principal: usize,
    wait: Duration,
    free: Arc<Semaphore>,
    shares: Mutex<HashMap<Principal, Arc<Semaphore>>>,
    load: Load,
}

pub(crate) struct BodyPermit {
    budget: Arc<BodyBudget>,
    share: Option<BodyShare>,
    node: OwnedSemaphorePermit,
    pieces: usize,
}

struct BodyShare {
    budget: Arc<BodyBudget>,
    principal: Principal,
    share: Arc<Semaphore>,
    taken: Option<OwnedSemaphorePermit>,
}

impl BodyBudget {
    pub(crate) fn new(limits: &NodeLimits, wait: Duration, load: Load) -> Arc<Self> {
        let limit = limits.bodies_in_flight_bytes.max(limits.body_bytes);
        let per_principal = limits.bodies_in_flight_bytes_per_principal;
        Arc::new(Self {
            limit,
            per_principal: per_principal.max(limits.body_bytes),
            wait,
            free: semaphore(limit),
            shares: Mutex::default(),
            load,
        })
    }

    /// First come, first served. Cancel safe: a dropped future holds no room. Fails if no room is
    /// free in time.
    pub(crate) async fn take(
        self: &Arc<Self>,
        principal: &Principal,
        bytes: usize,
    ) -> Result<BodyPermit, Refusal> {
        let pieces = pieces(bytes);
        let until = Instant::now() + self.wait;
        let mut share = None;
        if *principal != Principal::anonymous() {
            let mut own = self.share_of(principal);
            own.taken = take(&own.share, pieces, until).await;
            if own.taken.is_none() {
                return Err(Refusal::NoRoomOfPrincipal {
                    limit: self.per_principal,
                    small: SMALL,
                });
            }
            share = Some(own);
        }
        let Some(node) = take(&self.free, pieces, until).await else {
            return Err(Refusal::NoRoom {
                limit: self.limit,
                small: SMALL,
            });
        };
        self.load.add_body_bytes(pieces * PIECE);
        Ok(BodyPermit {
            budget: Arc::clone(self),
            share,
            node,
            pieces,
        })
    }

    fn share_of(self: &Arc<Self>, principal: &Principal) -> BodyShare {
        let mut shares = self.shares.lock();
        let share = shares
            .entry(principal.clone())
            .or_insert_with(|| semaphore(self.per_principal));
        BodyShare {
            budget: Arc::clone(self),
            principal: principal.clone(),
            share: Arc::clone(share),
            taken: None,
        }
    }
}

impl BodyPermit {
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let spare = self.pieces.saturating_sub(pieces(bytes));
        drop(self.node.split(spare));
        if let Some(taken) = self.share.as_mut().and_then(|share| share.taken.as_mut()) {
            drop(taken.split(spare));
        }
        self.budget.load.subtract_body_bytes(spare * PIECE);
        self.pieces -= spare;
    }
}

impl Drop for BodyPermit {
    fn drop(&mut self) {
        self.budget.load.subtract_body_bytes(self.pieces * PIECE);
    }
}

impl Drop for BodyShare {
    fn drop(&mut self) {
        drop(self.taken.take());
        let mut shares = self.budget.shares.lock();
        // The map and this handle have the two references, so no permit is left.
        if Arc::strong_count(&self.share) == 2 {
            shares.remove(&self.principal);
        }
    }
}

fn semaphore(bytes: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(pieces(bytes).min(Semaphore::MAX_PERMITS)))
}

async fn take(
    from: &Arc<Semaphore>,
    pieces: usize,
    until: Instant,
) -> Option<OwnedSemaphorePermit> {
    let wanted = u32::try_from(pieces).unwrap_or(u32::MAX);
    if let Ok(taken) = Arc::clone(from).try_acquire_many_owned(wanted) {
        return Some(taken);
    }
    let taking = Arc::clone(from).acquire_many_owned(wanted);
    tokio::time::timeout_at(until, taking).await.ok()?.ok()
}

fn pieces(bytes: usize) -> usize {
    bytes.div_ceil(PIECE)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use shoal_ports::{NodeLimits, Principal};

    use super::{BodyBudget, PIECE};
    use crate::load::Load;
    use crate::refusal::Refusal;

    const LARGE: usize = 64 * PIECE;

    fn budget(bytes: usize) -> (Arc<BodyBudget>, Load) {
        let (limits, load) = (
            NodeLimits {
                body_bytes: LARGE,
                bodies_in_flight_bytes: bytes,
                bodies_in_flight_bytes_per_principal: 2 * LARGE,
                ..NodeLimits::default()
            },
            Load::default(),
        );
        (
            BodyBudget::new(&limits, Duration::from_secs(1), load.clone()),
            load,
        )
    }

    fn somebody() -> Principal {
        Principal::anonymous()
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_too_late_is_refused_and_leaves_nothing() {
        let (budget, load) = budget(2 * LARGE);
        let (first, second) = (
            budget.take(&somebody(), LARGE).await.unwrap(),
            budget.take(&somebody(), LARGE).await.unwrap(),
        );
        assert_eq!(load.body_bytes(), 2 * LARGE);
        assert!(budget.take(&somebody(), 1).await.is_err(), "it is full");
        assert_eq!(load.body_bytes(), 2 * LARGE);
        drop(first);
        let third = budget.take(&somebody(), LARGE).await.unwrap();
        drop((second, third));
        assert_eq!(load.body_bytes(), 0);
        assert_eq!(budget.free.available_permits() * PIECE, 2 * LARGE);
    }

    #[tokio::test(start_paused = true)]
    async fn one_principal_cannot_take_it_all() {
        let (budget, load) = budget(8 * LARGE);
        let (alice, bob) = (Principal::new("alice"), Principal::new("bob"));
        let mut held = Vec::new();
        for _ in 0..2 {
            held.push(budget.take(&alice, LARGE).await.unwrap());
        }
        let refused = budget.take(&alice, LARGE).await.err().unwrap();
        assert!(matches!(refused, Refusal::NoRoomOfPrincipal { .. }));
        held.push(budget.take(&bob, LARGE).await.unwrap());
        held[0].shrink(LARGE / 2);
        held.push(budget.take(&alice, LARGE / 2).await.unwrap());
        let mut waiting = Box::pin(budget.take(&alice, LARGE));
        assert!(futures::poll!(&mut waiting).is_pending());
        drop(waiting);
        drop(held);
        assert_eq!(load.body_bytes(), 0);
        assert!(budget.shares.lock().is_empty());
        assert_eq!(budget.free.available_permits() * PIECE, 8 * LARGE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_body_is_not_overtaken() {
        let (budget, _) = budget(2 * LARGE);
        let held = budget.take(&somebody(), LARGE + PIECE).await.unwrap();
        let everybody = somebody();
        let mut large = Box::pin(budget.take(&everybody, LARGE));
        assert!(futures::poll!(&mut large).is_pending());
        let mut later = Box::pin(budget.take(&everybody, PIECE));
        assert!(
            futures::poll!(&mut later).is_pending(),
            "there is room for it, but it is not its turn"
        );
        drop(held);
        let large = large.await.unwrap();
        let later = later.await.unwrap();
        drop((large, later));
        assert_eq!(budget.free.available_permits() * PIECE, 2 * LARGE);
    }

    #[tokio::test(start_paused = true)]
    async fn who_goes_away_while_waiting_is_forgotten() {
        let (budget, _) = budget(LARGE);
        let held = budget.take(&somebody(), LARGE - PIECE).await.unwrap();
        let everybody = somebody();
        let mut gone = Box::pin(budget.take(&everybody, LARGE));
        assert!(futures::poll!(&mut gone).is_pending());
        drop(gone);
        let last = budget.take(&somebody(), PIECE).await.unwrap();
        drop((held, last));
        assert_eq!(budget.free.available_permits() * PIECE, LARGE);
    }

    #[tokio::test]
    async fn a_body_that_may_be_sent_fits() {
        let (budget, _) = budget(1);
        assert!(budget.take(&somebody(), LARGE).await.is_ok());
    }
}
