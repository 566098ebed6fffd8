//! The parking lot: calls that wait, on their workers, for a modern client's answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shoal_ports::{AskId, CallControl as _, CallId, Principal, WorkerId};
use tokio::task::AbortHandle;

use super::input::InputRequest;
use crate::config::Config;
use crate::line::Line;

/// A call that waits.
pub(crate) struct Parked {
    pub(super) line: Line,
    /// What it has asked and not been told.
    pub(super) questions: Vec<Question>,
}

/// A request that a call put to its client.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) ask: AskId,
    pub(super) request: InputRequest,
    /// The worker's sequence number of the question.
    pub(super) sequence: u64,
}

/// Where a parked call is, as its sealed state says it: whoever opens the state on another node can
/// find the worker and attach there, from before the questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Locator {
    pub(super) call: CallId,
    /// The worker's sequence number of the last event before the first open question.
    pub(super) after: u64,
    pub(super) worker: Option<WorkerId>,
}

impl std::fmt::Display for Locator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.call, self.after)?;
        match &self.worker {
            Some(worker) => write!(f, " {worker}"),
            None => Ok(()),
        }
    }
}

/// A sealed state that is not a locator; only another version of Shoal could have written it.
#[derive(Debug)]
pub(super) struct NoLocator;

impl std::str::FromStr for Locator {
    type Err = NoLocator;

    fn from_str(text: &str) -> Result<Self, NoLocator> {
        let mut parts = text.splitn(3, ' ');
        let mut part = || parts.next().ok_or(NoLocator);
        Ok(Self {
            call: part()?.parse().map_err(|_| NoLocator)?,
            after: part()?.parse().map_err(|_| NoLocator)?,
            worker: parts.next().map(WorkerId::new),
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
            call: self.line.call(),
            after: first.unwrap_or_default().saturating_sub(1),
            worker: self.line.worker().cloned(),
        }
    }
}

/// Holds parked calls, bounded in number and in time.
pub(crate) struct ParkingLot {
    places: Mutex<Places>,
    total: usize,
    per_principal: usize,
    time: Duration,
}

#[derive(Default)]
struct Places {
    calls: HashMap<CallId, Place>,
    by_principal: HashMap<Principal, usize>,
}

struct Place {
    parked: Parked,
    principal: Principal,
    expiry: AbortHandle,
}

/// There is no place left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Full {
    #[error("too many calls wait for input on this node")]
    Node,
    #[error("too many calls of this principal wait for input")]
    Principal,
}

impl ParkingLot {
    pub(crate) fn new(config: &Config) -> Arc<Self> {
        Arc::new(Self {
            places: Mutex::default(),
            total: config.max_parked,
            per_principal: config.max_parked_per_principal,
            time: config.parking_time(),
        })
    }

    /// Parks a call; after the parking time it is cancelled.
    pub(super) fn park(self: &Arc<Self>, principal: Principal, parked: Parked) -> Result<(), Full> {
        let id = parked.line.call();
        let mut places = self.places.lock();
        if places.calls.len() >= self.total {
            return Err(Full::Node);
        }
        let of_principal = places.by_principal.get(&principal).copied().unwrap_or(0);
        if of_principal >= self.per_principal {
            return Err(Full::Principal);
        }
        places
            .by_principal
            .insert(principal.clone(), of_principal + 1);
        let (lot, time) = (Arc::downgrade(self), self.time);
        let expiry = tokio::spawn(async move {
            tokio::time::sleep(time).await;
            if let Some(parked) = lot.upgrade().and_then(|lot| lot.leave(id)) {
                tracing::info!(call = %id, "no answer came for a parked call: cancelled");
                parked.line.steering.cancel("no answer came in time");
            }
        });
        let place = Place {
            parked,
            principal,
            expiry: expiry.abort_handle(),
        };
        places.calls.insert(id, place);
        Ok(())
    }

    /// Wakes a call; only one waker gets it.
    pub(super) fn wake(&self, id: CallId) -> Option<Parked> {
        self.leave(id)
    }

    /// How many calls are parked.
    pub(crate) fn len(&self) -> usize {
        self.places.lock().calls.len()
    }

    fn leave(&self, id: CallId) -> Option<Parked> {
        let mut places = self.places.lock();
        let Place {
            parked,
            principal,
            expiry,
        } = places.calls.remove(&id)?;
        if let Some(count) = places.by_principal.get_mut(&principal) {
            *count -= 1;
            if *count == 0 {
                places.by_principal.remove(&principal);
            }
        }
        expiry.abort();
        Some(parked)
    }
}

#[cfg(test)]
mod tests {
    use shoal_ports::{CallId, WorkerId};

    use super::Locator;

    #[test]
    fn a_locator_survives_being_sealed() {
        for worker in [None, Some(WorkerId::new("pool a/node 1"))] {
            let locator = Locator {
                call: CallId::generate(),
                after: 7,
                worker,
            };
            assert_eq!(locator.to_string().parse::<Locator>().unwrap(), locator);
        }
        assert!("nonsense".parse::<Locator>().is_err());
    }
}
