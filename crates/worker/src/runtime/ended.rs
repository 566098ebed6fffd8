//! Sessions that have ended: what is still on its way for them is not begun any more.

use std::collections::{HashSet, VecDeque};

use parking_lot::Mutex;
use shoal_ports::SessionId;

/// As many are remembered, the latest. What is on its way for one arrives soon, or not at all.
const MOST: usize = 4096;

/// The sessions that ended last.
#[derive(Default)]
pub(super) struct EndedSessions(Mutex<Ended>);

#[derive(Default)]
struct Ended {
    known: HashSet<SessionId>,
    /// The same, the oldest first.
    order: VecDeque<SessionId>,
}

impl EndedSessions {
    /// A session has ended.
    pub(super) fn enter(&self, session: &SessionId) {
        let mut ended = self.0.lock();
        if !ended.known.insert(session.clone()) {
            return;
        }
        ended.order.push_back(session.clone());
        if ended.order.len() > MOST
            && let Some(oldest) = ended.order.pop_front()
        {
            ended.known.remove(&oldest);
        }
    }

    /// Whether a session is among them.
    pub(super) fn has(&self, session: &SessionId) -> bool {
        self.0.lock().known.contains(session)
    }
}

#[cfg(test)]
mod tests {
    use shoal_ports::SessionId;

    use super::{EndedSessions, MOST};

    #[test]
    fn the_latest_are_remembered() {
        let ended = EndedSessions::default();
        let session = |n: usize| SessionId::new(n.to_string());
        for n in (0..=MOST).chain([MOST]) {
            ended.enter(&session(n));
        }
        assert!(!ended.has(&session(0)));
        assert!(ended.has(&session(1)) && ended.has(&session(MOST)));
        let held = ended.0.lock();
        assert_eq!((held.known.len(), held.order.len()), (MOST, MOST));
    }
}
