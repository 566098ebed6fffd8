use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shoal_protocol::{RequestId, RpcError, code};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::exchange::SendError;

/// Maximum requests in flight, because each holds a connection to the server.
const MOST: usize = 1024;

#[derive(Clone)]
pub(super) struct InFlightRequests {
    all: Arc<Mutex<All>>,
    changed: Arc<watch::Sender<()>>,
}

#[derive(Default)]
struct All {
    next: u64,
    known: HashMap<RequestId, RequestEntry>,
}

struct RequestEntry {
    number: u64,
    cancelled: CancellationToken,
    unreached: Option<Unreached>,
}

#[derive(Clone)]
pub(super) struct Unreached {
    pub(super) error: SendError,
    pub(super) was_sent: bool,
}

pub(super) struct InFlightRequest {
    requests: InFlightRequests,
    id: RequestId,
    number: u64,
    cancelled: CancellationToken,
}

impl InFlightRequests {
    pub(super) fn new() -> Self {
        Self {
            all: Arc::default(),
            changed: Arc::new(watch::Sender::new(())),
        }
    }

    /// # Errors
    /// The error to send to the client: the id is in use, or too many requests are in flight.
    pub(super) fn begin(&self, id: &RequestId) -> Result<InFlightRequest, RpcError> {
        let mut all = self.all.lock();
        if all.known.contains_key(id) {
            return Err(RpcError::invalid_request(format!(
                "a request with the id {id} is still in flight"
            )));
        }
        if all.known.len() >= MOST {
            return Err(RpcError::new(
                code::OVERLOADED,
                format!("{MOST} requests are in flight; try again later"),
            ));
        }
        let cancelled = CancellationToken::new();
        let number = all.next;
        all.next += 1;
        let known = RequestEntry {
            number,
            cancelled: cancelled.clone(),
            unreached: None,
        };
        all.known.insert(id.clone(), known);
        Ok(InFlightRequest {
            requests: self.clone(),
            id: id.clone(),
            number,
            cancelled,
        })
    }

    pub(super) fn cancel(&self, id: &RequestId) -> bool {
        let known = self.all.lock().known.remove(id);
        if let Some(known) = &known {
            known.cancelled.cancel();
            self.changed.send_replace(());
        }
        known.is_some()
    }

    pub(super) fn cancel_all(&self) {
        for (_, known) in self.all.lock().known.drain() {
            known.cancelled.cancel();
        }
        self.changed.send_replace(());
    }

    pub(super) fn unreached(&self, id: &RequestId) -> Option<Unreached> {
        self.all.lock().known.get(id)?.unreached.clone()
    }

    pub(super) async fn until_gone(&self, id: &RequestId) {
        self.until(|all| !all.known.contains_key(id)).await;
    }

    /// Returns how many requests are left when all have ended or `limit` is over.
    pub(super) async fn wait(&self, limit: Duration) -> usize {
        let _ = timeout(limit, self.until(|all| all.known.is_empty())).await;
        self.all.lock().known.len()
    }

    async fn until(&self, done: impl Fn(&All) -> bool) {
        let mut changed = self.changed.subscribe();
        let _ = changed.wait_for(|()| done(&self.all.lock())).await;
    }
}

impl InFlightRequest {
    pub(super) fn cancelled(&self) -> &CancellationToken {
        &self.cancelled
    }

    pub(super) fn attempted(&self, unreached: Option<Unreached>) {
        let mut all = self.requests.all.lock();
        let known = all.known.get_mut(&self.id);
        if let Some(known) = known.filter(|known| known.number == self.number) {
            known.unreached = unreached;
        }
    }
}

impl Unreached {
    /// `None` if the attempt may have reached the server.
    pub(super) fn of(error: &SendError, was_sent: bool) -> Option<Self> {
        matches!(error, SendError::NotSent(_)).then(|| Self {
            error: error.clone(),
            was_sent,
        })
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        let mut all = self.requests.all.lock();
        let known = all.known.get(&self.id);
        if known.is_some_and(|known| known.number == self.number) {
            all.known.remove(&self.id);
        }
        drop(all);
        self.requests.changed.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use shoal_protocol::RequestId;

    use super::InFlightRequests;

    #[tokio::test]
    async fn an_id_is_free_again_when_its_request_is_answered() {
        let in_flight = InFlightRequests::new();
        let id = RequestId::from_number(1);
        let first = in_flight.begin(&id).ok().unwrap();
        let twice = in_flight.begin(&id).err().unwrap();
        assert!(twice.message.contains("still in flight"));
        assert_eq!(in_flight.wait(Duration::ZERO).await, 1);
        drop(first);
        assert_eq!(in_flight.wait(Duration::from_secs(60)).await, 0);
        in_flight.until_gone(&id).await;
        assert!(!in_flight.cancel(&id) && in_flight.begin(&id).is_ok());
    }

    #[tokio::test]
    async fn a_cancelled_request_is_not_waited_for_and_does_not_touch_the_next() {
        let in_flight = InFlightRequests::new();
        let id = RequestId::from_number(1);
        let first = in_flight.begin(&id).ok().unwrap();
        assert!(in_flight.cancel(&id) && first.cancelled().is_cancelled());
        assert_eq!(in_flight.wait(Duration::ZERO).await, 0);
        let second = in_flight.begin(&id).ok().unwrap();
        drop(first);
        assert_eq!(in_flight.wait(Duration::ZERO).await, 1);
        assert!(!second.cancelled().is_cancelled());
        in_flight.cancel_all();
        assert!(second.cancelled().is_cancelled());
    }
}
