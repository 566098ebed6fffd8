//! Calls that wait at their workers for a modern client's answers.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use shoal_ports::{AskId, CallControl as _, CallId, Principal, PrincipalCounts, WorkerId};
use tokio::sync::oneshot;

use super::input::KeyedRequest;
use crate::config::Config;
use crate::worker_call::WorkerCall;

pub(crate) struct Parked {
    pub(super) worker_call: WorkerCall,
    pub(super) questions: Vec<Question>,
}

#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) ask: AskId,
    pub(super) request: KeyedRequest,
    pub(super) sequence: u64,
}

/// The sealed state names this place. Another node attaches to the events after `after`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Locator {
    pub(super) call: CallId,
    /// The event number before the first open question.
    pub(super) after: u64,
    /// The number of the last event before the call was parked.
    pub(super) seen: u64,
    pub(super) worker: WorkerId,
}

impl std::fmt::Display for Locator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            call,
            after,
            seen,
            worker,
        } = self;
        write!(f, "{call} {after} {seen} {worker}")
    }
}

#[derive(Debug)]
pub(super) struct NoLocator;

impl std::str::FromStr for Locator {
    type Err = NoLocator;

    fn from_str(text: &str) -> Result<Self, NoLocator> {
        let mut parts = text.splitn(4, ' ');
        let mut part = || parts.next().ok_or(NoLocator);
        Ok(Self {
            call: part()?.parse().map_err(|_| NoLocator)?,
            after: part()?.parse().map_err(|_| NoLocator)?,
            seen: part()?.parse().map_err(|_| NoLocator)?,
            worker: WorkerId::new(part()?),
        })
    }
}

impl Parked {
    pub(super) fn locator(&self) -> Locator {
        let first = self
            .questions
            .iter()
            .map(|question| question.sequence)
            .min();
        Locator {
            call: self.worker_call.call(),
            after: first.unwrap_or_default().saturating_sub(1),
            seen: self.worker_call.position().seen,
            worker: self.worker_call.worker().clone(),
        }
    }
}

pub(crate) struct ParkingLot {
    places: Mutex<ParkedCalls>,
    total: usize,
    per_principal: usize,
    time: Duration,
}

#[derive(Default)]
struct ParkedCalls {
    calls: HashMap<CallId, ParkedCall>,
    by_principal: PrincipalCounts,
}

struct ParkedCall {
    principal: Principal,
    keeper: oneshot::Sender<oneshot::Sender<Parked>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ParkingFull {
    #[error("too many calls wait for input on this node")]
    Node,
    #[error("too many calls of this principal wait for input")]
    Principal,
}

impl ParkingLot {
    pub(crate) fn new(config: &Config) -> Arc<Self> {
        Arc::new(Self {
            places: Mutex::default(),
            total: config.calls.waiting,
            per_principal: config.calls.waiting_per_principal,
            time: config.calls.input_timeout.get(),
        })
    }

    /// Parks a call until a request wakes it, its events break off, or the parking time ends. That end cancels the
    /// call.
    pub(super) fn park(
        self: &Arc<Self>,
        principal: Principal,
        parked: Parked,
    ) -> Result<(), ParkingFull> {
        let id = parked.worker_call.call();
        let (keeper, asked) = oneshot::channel();
        let mut places = self.places.lock();
        if places.calls.len() >= self.total {
            return Err(ParkingFull::Node);
        }
        if places.by_principal.of(&principal) >= self.per_principal {
            return Err(ParkingFull::Principal);
        }
        places.by_principal.add(&principal, 1);
        places.calls.insert(id, ParkedCall { principal, keeper });
        drop(places);
        tokio::spawn(keep(Arc::downgrade(self), self.time, parked, asked));
        Ok(())
    }

    /// The first request that wakes a parked call gets it. If the future is dropped, the call stays at its worker.
    pub(super) async fn wake(&self, id: CallId) -> Option<Parked> {
        let keeper = self.leave(id)?;
        let (give, given) = oneshot::channel();
        keeper.send(give).ok()?;
        given.await.ok()
    }

    pub(crate) fn len(&self) -> usize {
        self.places.lock().calls.len()
    }

    fn leave(&self, id: CallId) -> Option<oneshot::Sender<oneshot::Sender<Parked>>> {
        let mut places = self.places.lock();
        let ParkedCall { principal, keeper } = places.calls.remove(&id)?;
        places.by_principal.subtract(&principal, 1);
        Some(keeper)
    }
}

async fn keep(
    lot: Weak<ParkingLot>,
    time: Duration,
    mut parked: Parked,
    mut asked: oneshot::Receiver<oneshot::Sender<Parked>>,
) {
    let id = parked.worker_call.call();
    let late = tokio::select! {
        give = &mut asked => return give.map_or((), |give| drop(give.send(parked))),
        () = tokio::time::sleep(time) => true,
        () = parked.worker_call.listen() => false,
    };
    let Some(lot) = lot.upgrade() else {
        return;
    };
    if lot.leave(id).is_none() {
        return asked.await.map_or((), |give| drop(give.send(parked)));
    }
    if late {
        tracing::info!(call = %id, "cancelled a parked call: its client did not answer in time");
        parked.worker_call.handle.cancel("no answer came in time");
    } else {
        tracing::debug!(call = %id, "a parked call continues on another node, or is lost");
    }
}

#[cfg(test)]
mod tests {
    use shoal_ports::{CallId, WorkerId};

    use super::Locator;

    #[test]
    fn a_locator_survives_being_sealed() {
        let locator = Locator {
            call: CallId::generate(),
            after: 7,
            seen: 9,
            worker: WorkerId::new("pool a@node 1"),
        };
        assert_eq!(locator.to_string().parse::<Locator>().unwrap(), locator);
        assert!("nonsense".parse::<Locator>().is_err());
    }
}
