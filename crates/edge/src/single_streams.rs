use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use shoal_ports::SessionId;
use shoal_protocol::EventId;
use tokio_util::sync::CancellationToken;

/// Open streams that cannot be resumed. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct SingleStreams(Arc<Mutex<HashMap<SessionId, OpenSingleStream>>>);

#[derive(Debug)]
struct OpenSingleStream {
    passed: EventId,
    end: CancellationToken,
}

pub(crate) struct SingleStream {
    all: SingleStreams,
    session: SessionId,
    end: CancellationToken,
}

impl SingleStreams {
    /// Lists sessions, each with the last event that its client received.
    pub fn open(&self) -> Vec<(SessionId, EventId)> {
        let all = self.0.lock();
        all.iter()
            .map(|(session, open)| (session.clone(), open.passed))
            .collect()
    }

    /// Counts the streams.
    pub fn count(&self) -> usize {
        self.0.lock().len()
    }

    /// Ends a session's single stream.
    pub fn end(&self, session: &SessionId) {
        if let Some(open) = self.0.lock().get(session) {
            open.end.cancel();
        }
    }

    pub(crate) fn begin(&self, session: &SessionId, passed: EventId) -> SingleStream {
        let end = CancellationToken::new();
        let open = OpenSingleStream {
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
    pub(crate) fn passed(&self, event: EventId) {
        if let Some(open) = self.all.0.lock().get_mut(&self.session) {
            open.passed = event;
        }
    }

    pub(crate) fn end(&self) -> CancellationToken {
        self.end.clone()
    }
}

impl Drop for SingleStream {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.session);
    }
}
