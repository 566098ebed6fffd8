//! How much an edge is carrying, and the bounds on it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use shoal_ports::Principal;
use shoal_telemetry::metrics::{QuotaOutcome, StreamKind, metrics};

use crate::config::Limits;
use crate::recorder::RequestRecord;
use crate::refusal::Refusal;
use crate::room::Held;

/// The quota of streams that one principal may hold open, as metrics name it.
pub(crate) const STREAMS_PER_PRINCIPAL: &str = "streams_per_principal";

const KINDS: [StreamKind; 3] = [
    StreamKind::Call,
    StreamKind::Session,
    StreamKind::Subscription,
];

/// Counts what is under way on an edge. A cheap handle: clones count together.
#[derive(Clone, Debug, Default)]
pub struct Load(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    requests: AtomicUsize,
    body_bytes: AtomicUsize,
    streams: AtomicUsize,
    open: [AtomicU64; KINDS.len()],
    streams_of: Mutex<HashMap<Principal, usize>>,
}

impl Load {
    /// POSTs under way, those included whose answer is being streamed.
    pub fn requests_in_flight(&self) -> usize {
        self.0.requests.load(Ordering::Relaxed)
    }

    /// Streams that clients hold open: GET, HTTP+SSE and `subscriptions/listen`.
    pub fn open_streams(&self) -> usize {
        self.0.streams.load(Ordering::Relaxed)
    }

    /// Bytes held for large bodies: requests from before they are read until their answer is sent, and answers.
    pub fn body_bytes(&self) -> usize {
        self.0.body_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn add_body_bytes(&self, bytes: usize) {
        self.0.body_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn subtract_body_bytes(&self, bytes: usize) {
        self.0.body_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn admit_request(&self, limits: &Limits) -> Result<RequestPermit, Refusal> {
        let limit = limits.requests_in_flight;
        let permit = RequestPermit {
            counts: Arc::clone(&self.0),
            record: None,
            room: None,
        };
        if self.0.requests.fetch_add(1, Ordering::Relaxed) < limit {
            Ok(permit)
        } else {
            Err(Refusal::TooManyRequests { limit })
        }
    }

    /// Event streams that are written now, by kind: also those that answer a POST.
    pub(crate) fn open_by_kind(&self) -> [(StreamKind, u64); KINDS.len()] {
        KINDS.map(|kind| (kind, self.0.open[kind as usize].load(Ordering::Relaxed)))
    }

    /// Counts an event stream until the answer is dropped.
    pub(crate) fn open(&self, kind: StreamKind) -> OpenStream {
        let counts = Arc::clone(&self.0);
        counts.open[kind as usize].fetch_add(1, Ordering::Relaxed);
        OpenStream { counts, kind }
    }

    pub(crate) fn admit_stream(
        &self,
        principal: &Principal,
        limits: &Limits,
    ) -> Result<StreamPermit, Refusal> {
        let mut permit = StreamPermit {
            counts: Arc::clone(&self.0),
            principal: None,
        };
        let limit = limits.streams;
        if self.0.streams.fetch_add(1, Ordering::Relaxed) >= limit {
            return Err(Refusal::TooManyStreams { limit });
        }
        if *principal != Principal::anonymous() {
            let quota = &metrics().security;
            let limit = limits.streams_per_principal;
            let mut streams_of = self.0.streams_of.lock();
            let count = streams_of.entry(principal.clone()).or_default();
            if *count >= limit {
                // Dropping the permit takes the node's count back; nothing was added here.
                drop(streams_of);
                quota.quota(STREAMS_PER_PRINCIPAL, QuotaOutcome::Refused);
                return Err(Refusal::TooManyStreamsOfPrincipal { limit });
            }
            *count += 1;
            drop(streams_of);
            quota.quota(STREAMS_PER_PRINCIPAL, QuotaOutcome::Allowed);
            permit.principal = Some(principal.clone());
        }
        Ok(permit)
    }
}

/// Counts one POST until it is dropped.
pub(crate) struct RequestPermit {
    counts: Arc<Counts>,
    /// What is recorded of it, if it asks for something.
    pub(crate) record: Option<RequestRecord>,
    /// What its body holds, if that is large.
    pub(crate) room: Option<Held>,
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        self.counts.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts one event stream by its kind until it is dropped.
pub(crate) struct OpenStream {
    counts: Arc<Counts>,
    kind: StreamKind,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.counts.open[self.kind as usize].fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts one stream until it is dropped.
pub(crate) struct StreamPermit {
    counts: Arc<Counts>,
    principal: Option<Principal>,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.counts.streams.fetch_sub(1, Ordering::Relaxed);
        let Some(principal) = self.principal.take() else {
            return;
        };
        let mut streams_of = self.counts.streams_of.lock();
        if let Some(count) = streams_of.get_mut(&principal) {
            *count -= 1;
            if *count == 0 {
                streams_of.remove(&principal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use shoal_ports::Principal;

    use super::Load;
    use crate::config::Limits;

    #[test]
    fn permits_are_given_back() {
        let load = Load::default();
        let limits = Limits {
            requests_in_flight: 1,
            ..Limits::default()
        };
        let first = load.admit_request(&limits).ok().unwrap();
        assert!(load.admit_request(&limits).is_err());
        drop(first);
        assert_eq!(load.requests_in_flight(), 0);
        assert!(load.admit_request(&limits).is_ok());
    }

    #[test]
    fn one_principal_cannot_take_every_stream() {
        let load = Load::default();
        let limits = Limits {
            streams: 3,
            streams_per_principal: 1,
            ..Limits::default()
        };
        let (alice, bob) = (Principal::new("alice"), Principal::new("bob"));
        let first = load.admit_stream(&alice, &limits).ok().unwrap();
        assert!(load.admit_stream(&alice, &limits).is_err());
        let second = load.admit_stream(&bob, &limits).ok().unwrap();
        assert_eq!(load.open_streams(), 2);
        drop((first, second));
        assert_eq!(load.open_streams(), 0);
        assert!(load.0.streams_of.lock().is_empty());
        assert!(load.admit_stream(&alice, &limits).is_ok());
    }
}
