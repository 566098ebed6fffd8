//! The open streams that cannot be resumed, each all that its session's client hears: those of HTTP+SSE, and of WebSocket
//! where the client asked for no ids.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use shoal_ports::SessionId;
use shoal_protocol::EventId;
use tokio_util::sync::CancellationToken;

/// Streams that are open now. A cheap handle: clones see the same.
#[derive(Clone, Debug, Default)]
pub struct SingleStreams(Arc<Mutex<HashMap<SessionId, Open>>>);

#[derive(Debug)]
struct Open {
    passed: EventId,
    end: CancellationToken,
}

/// One of them, until it is dropped.
pub(crate) struct SingleStream {
    all: SingleStreams,
    session: SessionId,
    end: CancellationToken,
}

impl SingleStreams {
    /// The sessions, each with the last event that its client was handed.
    pub fn open(&self) -> Vec<(SessionId, EventId)> {
        let all = self.0.lock();
        all.iter()
            .map(|(session, open)| (session.clone(), open.passed))
            .collect()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.lock().len()
    }

    /// Sends the client of a session elsewhere.
    pub fn end(&self, session: &SessionId) {
        if let Some(open) = self.0.lock().get(session) {
            open.end.cancel();
        }
    }

    /// A stream that has been opened after this event.
    pub(crate) fn begin(&self, session: &SessionId, passed: EventId) -> SingleStream {
        let end = CancellationToken::new();
        let open = Open {
            passed,
            end: end.clone(),
        };
        self.0.lock().insert(session.clone(), open);
        SingleStream {
            all: self.clone(),
            session: session.clone(),
            end,
        }
    }
}

impl SingleStream {
    /// The client was handed an event.
    pub(crate) fn passed(&self, event: EventId) {
        if let Some(open) = self.all.0.lock().get_mut(&self.session) {
            open.passed = event;
        }
    }

    /// Fires when the client is to go.
    pub(crate) fn end(&self) -> CancellationToken {
        self.end.clone()
    }
}

impl Drop for SingleStream {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.session);
    }
}
