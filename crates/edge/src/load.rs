use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use shoal_ports::{NodeLimits, Principal};
use shoal_protocol::{Body, Message};
use shoal_telemetry::metrics::{QuotaOutcome, StreamKind, metrics};
use tokio_util::sync::CancellationToken;

use crate::places::{PrincipalPlaces, TakenPlace};
use crate::refusal::Refusal;
use crate::single_streams::SingleStreams;

pub(crate) const STREAMS_PER_PRINCIPAL: &str = "streams_per_principal";
pub(crate) const REQUESTS_PER_PRINCIPAL: &str = "requests_per_principal";

const KINDS: [StreamKind; 4] = [
    StreamKind::Call,
    StreamKind::Session,
    StreamKind::Subscription,
    StreamKind::WebSocket,
];

/// Counts and limits an edge's running work. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct Load(Arc<LoadCounts>);

#[derive(Debug, Default)]
struct LoadCounts {
    requests: AtomicUsize,
    requests_of: PrincipalPlaces,
    body_bytes: AtomicUsize,
    answer_bytes: AtomicUsize,
    streams: AtomicUsize,
    open: [AtomicU64; KINDS.len()],
    streams_of: PrincipalPlaces,
    single_streams: SingleStreams,
    closed: AtomicBool,
    waits_end: CancellationToken,
}

impl Load {
    /// Counts POSTs, including those with a streamed answer.
    pub fn requests_in_flight(&self) -> usize {
        self.0.requests.load(Ordering::Relaxed)
    }

    /// Counts open streams: GET, HTTP+SSE, WebSocket and `subscriptions/listen`.
    pub fn open_streams(&self) -> usize {
        self.0.streams.load(Ordering::Relaxed)
    }

    /// Counts the WebSockets among [`open_streams`](Self::open_streams).
    pub fn open_websockets(&self) -> u64 {
        self.0.open[StreamKind::WebSocket as usize].load(Ordering::Relaxed)
    }

    /// Returns [`open_streams`](Self::open_streams) that clients cannot resume: HTTP+SSE, and
    /// WebSocket without ids. A drain ends each one when its session has no running work.
    pub fn single_streams(&self) -> &SingleStreams {
        &self.0.single_streams
    }

    /// Refuses new calls, because the node ends before they could end. Running calls and other
    /// requests continue.
    pub fn stop_calls(&self) {
        self.0.closed.store(true, Ordering::Relaxed);
    }

    /// Ends waits for tasks and for sessions' calls. The waiting clients get an answer.
    pub fn end_waits(&self) {
        self.0.waits_end.cancel();
    }

    pub(crate) fn waits_end(&self) -> CancellationToken {
        self.0.waits_end.clone()
    }

    /// Fails if the body has a call after [`stop_calls`](Self::stop_calls).
    pub(crate) fn expect_open(&self, body: &Body) -> Result<(), Refusal> {
        let closed = self.0.closed.load(Ordering::Relaxed);
        match closed && begins_call(body) {
            true => Err(Refusal::ShuttingDown),
            false => Ok(()),
        }
    }

    /// Returns the bytes of unanswered large requests.
    pub fn body_bytes(&self) -> usize {
        self.0.body_bytes.load(Ordering::Relaxed)
    }

    /// Returns the unread bytes of large answers.
    pub fn answer_bytes(&self) -> usize {
        self.0.answer_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn set_answer_bytes(&self, bytes: usize) {
        self.0.answer_bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_body_bytes(&self, bytes: usize) {
        self.0.body_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn subtract_body_bytes(&self, bytes: usize) {
        self.0.body_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn admit_request(
        &self,
        principal: &Principal,
        limits: &NodeLimits,
    ) -> Result<RequestCount, Refusal> {
        let limit = limits.requests;
        let mut count = RequestCount {
            counts: Arc::clone(&self.0),
            _place: None,
        };
        if self.0.requests.fetch_add(1, Ordering::Relaxed) >= limit {
            return Err(Refusal::TooManyRequests { limit });
        }
        if *principal != Principal::anonymous() {
            let limit = limits.requests_per_principal;
            let place = self.0.requests_of.take(principal, limit);
            if place.is_none() {
                let quota = &metrics().security;
                quota.quota(REQUESTS_PER_PRINCIPAL, QuotaOutcome::Refused);
                return Err(Refusal::TooManyRequestsOfPrincipal { limit });
            }
            count._place = place;
        }
        Ok(count)
    }

    pub(crate) fn open_by_kind(&self) -> [(StreamKind, u64); KINDS.len()] {
        KINDS.map(|kind| (kind, self.0.open[kind as usize].load(Ordering::Relaxed)))
    }

    pub(crate) fn open(&self, kind: StreamKind) -> OpenStreamCount {
        let counts = Arc::clone(&self.0);
        counts.open[kind as usize].fetch_add(1, Ordering::Relaxed);
        OpenStreamCount { counts, kind }
    }

    pub(crate) fn admit_stream(
        &self,
        principal: &Principal,
        limits: &NodeLimits,
    ) -> Result<StreamPermit, Refusal> {
        let mut permit = StreamPermit {
            counts: Arc::clone(&self.0),
            _place: None,
        };
        let limit = limits.streams;
        if self.0.streams.fetch_add(1, Ordering::Relaxed) >= limit {
            return Err(Refusal::TooManyStreams { limit });
        }
        if *principal != Principal::anonymous() {
            let quota = &metrics().security;
            let limit = limits.streams_per_principal;
            let place = self.0.streams_of.take(principal, limit);
            if place.is_none() {
                quota.quota(STREAMS_PER_PRINCIPAL, QuotaOutcome::Refused);
                return Err(Refusal::TooManyStreamsOfPrincipal { limit });
            }
            quota.quota(STREAMS_PER_PRINCIPAL, QuotaOutcome::Allowed);
            permit._place = place;
        }
        Ok(permit)
    }
}

fn begins_call(body: &Body) -> bool {
    let begins = |message: &Message| match message {
        Message::Request(request) => request.method.runs_on_backend(),
        _ => false,
    };
    match body {
        Body::Single(message) => begins(message),
        Body::Batch(messages) => messages.iter().flatten().any(begins),
    }
}

pub(crate) struct RequestCount {
    counts: Arc<LoadCounts>,
    _place: Option<TakenPlace>,
}

impl Drop for RequestCount {
    fn drop(&mut self) {
        self.counts.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(crate) struct OpenStreamCount {
    counts: Arc<LoadCounts>,
    kind: StreamKind,
}

impl Drop for OpenStreamCount {
    fn drop(&mut self) {
        self.counts.open[self.kind as usize].fetch_sub(1, Ordering::Relaxed);
    }
}

pub(crate) struct StreamPermit {
    counts: Arc<LoadCounts>,
    _place: Option<TakenPlace>,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.counts.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use shoal_ports::{NodeLimits, Principal};

    use super::Load;

    #[test]
    fn permits_are_given_back() {
        let load = Load::default();
        let limits = NodeLimits {
            requests: 1,
            ..NodeLimits::default()
        };
        let somebody = Principal::anonymous();
        let first = load.admit_request(&somebody, &limits).ok().unwrap();
        assert!(load.admit_request(&somebody, &limits).is_err());
        drop(first);
        assert_eq!(load.requests_in_flight(), 0);
        assert!(load.admit_request(&somebody, &limits).is_ok());
    }

    #[test]
    fn one_principal_cannot_take_every_request() {
        let load = Load::default();
        let limits = NodeLimits {
            requests: 3,
            requests_per_principal: 1,
            ..NodeLimits::default()
        };
        let (alice, bob) = (Principal::new("alice"), Principal::new("bob"));
        let first = load.admit_request(&alice, &limits).ok().unwrap();
        let refused = load.admit_request(&alice, &limits).err().unwrap();
        assert!(refused.to_string().contains("this principal has 1"));
        let second = load.admit_request(&bob, &limits).ok().unwrap();
        assert_eq!(load.requests_in_flight(), 2);
        drop((first, second));
        assert_eq!(load.requests_in_flight(), 0);
        assert!(load.admit_request(&alice, &limits).is_ok());
    }

    #[test]
    fn one_principal_cannot_take_every_stream() {
        let load = Load::default();
        let limits = NodeLimits {
            streams: 3,
            streams_per_principal: 1,
            ..NodeLimits::default()
        };
        let (alice, bob) = (Principal::new("alice"), Principal::new("bob"));
        let first = load.admit_stream(&alice, &limits).ok().unwrap();
        assert!(load.admit_stream(&alice, &limits).is_err());
        let second = load.admit_stream(&bob, &limits).ok().unwrap();
        assert_eq!(load.open_streams(), 2);
        drop((first, second));
        assert_eq!(load.open_streams(), 0);
        assert!(load.admit_stream(&alice, &limits).is_ok());
    }
}
