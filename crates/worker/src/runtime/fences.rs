//! What is known of sessions: the epoch of the latest owner that has spoken for one, or that it has ended.

use std::collections::{HashMap, VecDeque, hash_map};

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use shoal_ports::{CallFailure, Caller, Epoch, Principal, PrincipalCounts, SessionId};

/// So many are remembered. What is on its way for one of the others arrives soon, or not at all.
const MOST: usize = 8192;
/// So many are forgotten at once, lest each new one looks for its place.
const FORGOTTEN: usize = MOST / 16;

/// The sessions of which something was said last. Where there are too many, those are forgotten of which whoever has
/// most has heard least.
#[derive(Default)]
pub(super) struct SessionFences(Mutex<FenceTable>);

#[derive(Default)]
struct FenceTable {
    sessions: HashMap<SessionId, SessionFence, RandomState>,
    /// The same, the oldest first; one of which something was said since has another number.
    order: VecDeque<(u64, SessionId)>,
    counts: PrincipalCounts,
    /// How many have come.
    count: u64,
}

struct SessionFence {
    /// Of the latest owner that has said one.
    epoch: Option<Epoch>,
    has_ended: bool,
    principal: Principal,
    /// Its place in the order.
    number: u64,
}

impl SessionFences {
    /// Takes the word of an owner of the caller's session.
    ///
    /// # Errors
    /// `Superseded` where a later one is known.
    pub(super) fn hear(&self, caller: &Caller, epoch: Option<Epoch>) -> Result<(), CallFailure> {
        let (Some(session), Some(epoch)) = (&caller.session, epoch) else {
            return Ok(());
        };
        let mut known = self.0.lock();
        let entry = known.enter(session, &caller.principal);
        match entry.epoch {
            Some(latest) if epoch < latest => Err(CallFailure::Superseded { epoch: latest }),
            _ => {
                entry.epoch = Some(epoch);
                Ok(())
            }
        }
    }

    /// A session has ended.
    pub(super) fn end(&self, session: &SessionId) {
        // Whose it was is not said with its end, and matters only where nothing else was.
        let nobody = Principal::anonymous();
        self.0.lock().enter(session, &nobody).has_ended = true;
    }

    /// Whether a session is known to have ended.
    pub(super) fn has_ended(&self, session: &SessionId) -> bool {
        let known = self.0.lock();
        (known.sessions.get(session)).is_some_and(|entry| entry.has_ended)
    }
}

impl FenceTable {
    /// The session, which is young again.
    fn enter(&mut self, session: &SessionId, principal: &Principal) -> &mut SessionFence {
        if self.sessions.len() >= MOST && !self.sessions.contains_key(session) {
            self.forget();
        }
        if self.order.len() > 2 * MOST {
            self.forget_former_places();
        }
        let young = self.count.saturating_sub(FORGOTTEN as u64);
        let (order, counts, count) = (&mut self.order, &mut self.counts, &mut self.count);
        let mut number = || {
            *count += 1;
            order.push_back((*count, session.clone()));
            *count
        };
        match self.sessions.entry(session.clone()) {
            hash_map::Entry::Occupied(known) => {
                let entry = known.into_mut();
                // One that is young need not become younger.
                if entry.number <= young {
                    entry.number = number();
                }
                entry
            }
            hash_map::Entry::Vacant(vacant) => {
                counts.add(principal, 1);
                vacant.insert(SessionFence {
                    epoch: None,
                    has_ended: false,
                    principal: principal.clone(),
                    number: number(),
                })
            }
        }
    }

    /// Sessions that are heard of in turn leave a place behind each time, however few they are.
    fn forget_former_places(&mut self) {
        let sessions = &self.sessions;
        self.order.retain(|(number, session)| {
            let entry = sessions.get(session);
            entry.is_some_and(|entry| entry.number == *number)
        });
    }

    /// Forgets the oldest of whoever has most.
    fn forget(&mut self) {
        let Some(greatest) = self.counts.greatest().cloned() else {
            return;
        };
        let mut left = FORGOTTEN;
        let (sessions, counts) = (&mut self.sessions, &mut self.counts);
        self.order.retain(|(number, session)| {
            let Some(entry) = sessions.get(session) else {
                return false;
            };
            if entry.number != *number {
                return false;
            }
            if left == 0 || entry.principal != greatest {
                return true;
            }
            left -= 1;
            counts.subtract(&greatest, 1);
            sessions.remove(session);
            false
        });
    }
}

#[cfg(test)]
mod tests;
