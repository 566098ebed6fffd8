//! Requests on their way: each is known by its id until it is answered.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shoal_protocol::{RequestId, RpcError, code};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Requests that one client may have in flight; each holds a connection to the server.
const MOST: usize = 1024;

/// The requests in flight; a cheap handle.
#[derive(Clone)]
pub(super) struct Flights {
    all: Arc<Mutex<HashMap<RequestId, CancellationToken>>>,
    count: Arc<watch::Sender<usize>>,
}

/// One request in flight, until it is dropped.
pub(super) struct Flight {
    flights: Flights,
    id: RequestId,
    cancelled: CancellationToken,
}

impl Flights {
    pub(super) fn new() -> Self {
        Self {
            all: Arc::default(),
            count: Arc::new(watch::Sender::new(0)),
        }
    }

    /// Takes a request in.
    ///
    /// # Errors
    /// What to answer when its id is in use, or too many are in flight.
    pub(super) fn begin(&self, id: &RequestId) -> Result<Flight, RpcError> {
        let mut all = self.all.lock();
        if all.contains_key(id) {
            return Err(RpcError::invalid_request(format!(
                "a request with the id {id} is still in flight"
            )));
        }
        if all.len() >= MOST {
            return Err(RpcError::new(
                code::OVERLOADED,
                format!("{MOST} requests are in flight; try again later"),
            ));
        }
        let cancelled = CancellationToken::new();
        all.insert(id.clone(), cancelled.clone());
        self.count.send_replace(all.len());
        Ok(Flight {
            flights: self.clone(),
            id: id.clone(),
            cancelled,
        })
    }

    /// Marks a request as cancelled by its client. Returns whether it is in flight.
    pub(super) fn cancel(&self, id: &RequestId) -> bool {
        let all = self.all.lock();
        let flight = all.get(id);
        if let Some(cancelled) = flight {
            cancelled.cancel();
        }
        flight.is_some()
    }

    /// Takes all of them back.
    pub(super) fn cancel_all(&self) {
        for cancelled in self.all.lock().values() {
            cancelled.cancel();
        }
    }

    /// Waits until none is left, at most for `limit`; returns how many are.
    pub(super) async fn wait(&self, limit: Duration) -> usize {
        let mut count = self.count.subscribe();
        let _ = timeout(limit, count.wait_for(|count| *count == 0)).await;
        self.all.lock().len()
    }
}

impl Flight {
    /// Fires when the client takes the request back.
    pub(super) fn cancelled(&self) -> &CancellationToken {
        &self.cancelled
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut all = self.flights.all.lock();
        all.remove(&self.id);
        self.flights.count.send_replace(all.len());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use shoal_protocol::RequestId;

    use super::Flights;

    #[tokio::test]
    async fn an_id_is_free_again_when_its_request_is_answered() {
        let flights = Flights::new();
        let id = RequestId::from_number(1);
        let first = flights.begin(&id).ok().unwrap();
        let twice = flights.begin(&id).err().unwrap();
        assert!(twice.message.contains("still in flight"));
        assert_eq!(flights.wait(Duration::ZERO).await, 1);
        assert!(flights.cancel(&id) && first.cancelled().is_cancelled());
        drop(first);
        assert_eq!(flights.wait(Duration::from_secs(60)).await, 0);
        assert!(!flights.cancel(&id) && flights.begin(&id).is_ok());
    }
}
