use std::collections::BTreeSet;
use std::iter::Sum;
use std::sync::Arc;

use dashmap::DashMap;
use foldhash::fast::RandomState;
use shoal_ports::{Epoch, Principal, SessionId};

use super::SessionFacts;
use super::places::SessionPlace;
use crate::live::LiveSession;
use crate::stored::Share;

#[derive(Default)]
pub(crate) struct Table(DashMap<SessionId, TableEntry, RandomState>);

struct TableEntry {
    held: HeldSession,
    #[allow(dead_code, reason = "free again when the entry is dropped")]
    place: SessionPlace,
}

enum HeldSession {
    Live(Arc<LiveSession>),
    Passive(Box<Passive>),
}

pub(crate) struct Passive {
    pub(crate) principal: Principal,
    pub(crate) epoch: Epoch,
    pub(crate) subscriptions: BTreeSet<String>,
    /// Milliseconds of the node's clock.
    pub(crate) last_used: u64,
    pub(crate) updated: BTreeSet<String>,
    pub(crate) has_ended: bool,
    pub(crate) about: SessionFacts,
    pub(crate) share: Arc<Share>,
}

impl HeldSession {
    fn live(&self) -> Option<&Arc<LiveSession>> {
        match self {
            Self::Live(live) => Some(live),
            Self::Passive(_) => None,
        }
    }

    fn passive(&self) -> Option<&Passive> {
        match self {
            Self::Live(_) => None,
            Self::Passive(passive) => Some(passive),
        }
    }
}

impl TableEntry {
    fn is(&self, live: &LiveSession) -> bool {
        let held = self.held.live();
        held.is_some_and(|held| held.epoch == live.epoch)
    }
}

impl Table {
    pub(super) fn enter(&self, live: Arc<LiveSession>, place: SessionPlace) {
        let held = HeldSession::Live(live.clone());
        self.0.insert(live.id.clone(), TableEntry { held, place });
    }

    /// A session that this node has lost still counts.
    pub(super) fn holds(&self, session: &SessionId) -> bool {
        self.0.contains_key(session)
    }

    /// Includes a session that this node has lost.
    pub(super) fn live(&self, session: &SessionId) -> Option<Arc<LiveSession>> {
        self.0.get(session)?.held.live().cloned()
    }

    /// Includes sessions that this node has lost.
    pub(super) fn all_live(&self) -> Vec<Arc<LiveSession>> {
        let entries = self.0.iter();
        entries.filter_map(|it| it.held.live().cloned()).collect()
    }

    pub(super) fn sum_of_live<N: Sum>(&self, read: impl Fn(&LiveSession) -> N) -> N {
        let entries = self.0.iter();
        let read = entries.filter_map(|it| it.held.live().map(|live| read(live)));
        read.sum()
    }

    pub(crate) fn passive<T>(
        &self,
        session: &SessionId,
        read: impl FnOnce(&mut Passive) -> T,
    ) -> Option<T> {
        match &mut self.0.get_mut(session)?.held {
            HeldSession::Live(_) => None,
            HeldSession::Passive(passive) => Some(read(passive)),
        }
    }

    pub(super) fn of_passive<T>(&self, read: impl Fn(&SessionId, &Passive) -> Option<T>) -> Vec<T> {
        let entries = self.0.iter();
        let read = entries.filter_map(|it| read(it.key(), it.held.passive()?));
        read.collect()
    }

    pub(super) fn count(&self) -> (usize, usize) {
        let live = self.0.iter().filter(|it| it.held.live().is_some()).count();
        (live, self.0.len().saturating_sub(live))
    }

    pub(super) fn put_to_sleep(&self, live: &LiveSession, passive: Passive) -> bool {
        let Some(mut entry) = self.0.get_mut(&live.id).filter(|it| it.is(live)) else {
            return false;
        };
        entry.held = HeldSession::Passive(Box::new(passive));
        true
    }

    pub(super) fn wake(&self, live: Arc<LiveSession>) -> Option<Passive> {
        let mut entry = self.0.get_mut(&live.id)?;
        entry.held.passive()?;
        match std::mem::replace(&mut entry.held, HeldSession::Live(live)) {
            HeldSession::Passive(passive) => Some(*passive),
            HeldSession::Live(_) => None,
        }
    }

    pub(super) fn remove_live(&self, live: &LiveSession) -> bool {
        let removed = self.0.remove_if(&live.id, |_, entry| entry.is(live));
        removed.is_some()
    }

    pub(super) fn remove_passive(&self, session: &SessionId) -> Option<Passive> {
        let asleep = |_: &SessionId, entry: &TableEntry| entry.held.passive().is_some();
        match self.0.remove_if(session, asleep)?.1.held {
            HeldSession::Passive(passive) => Some(*passive),
            HeldSession::Live(_) => None,
        }
    }
}
