use std::collections::{HashMap, VecDeque, hash_map};

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use shoal_ports::{CallFailure, Caller, Epoch, Principal, PrincipalCounts, SessionId};

/// Maximum remembered sessions. Late messages for forgotten ones are unlikely.
const MOST: usize = 8192;
/// Amortizes the search.
const FORGOTTEN: usize = MOST / 16;

/// Sessions' latest known owners, and whether the sessions have ended. When full, the principal with the most
/// sessions loses its oldest ones.
#[derive(Default)]
pub(super) struct SessionFences(Mutex<FenceTable>);

#[derive(Default)]
struct FenceTable {
    sessions: HashMap<SessionId, SessionFence, RandomState>,
    /// An entry is stale if its session has another number now.
    order: VecDeque<(u64, SessionId)>,
    counts: PrincipalCounts,
    count: u64,
}

struct SessionFence {
    epoch: Option<Epoch>,
    has_ended: bool,
    principal: Principal,
    number: u64,
}

impl SessionFences {
    /// Records a session owner's epoch.
    ///
    /// # Errors
    /// `Superseded` if a later owner is known.
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

    pub(super) fn end(&self, session: &SessionId) {
        let nobody = Principal::anonymous();
        self.0.lock().enter(session, &nobody).has_ended = true;
    }

    pub(super) fn has_ended(&self, session: &SessionId) -> bool {
        let known = self.0.lock();
        (known.sessions.get(session)).is_some_and(|entry| entry.has_ended)
    }
}

impl FenceTable {
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

    fn forget_former_places(&mut self) {
        let sessions = &self.sessions;
        self.order.retain(|(number, session)| {
            let entry = sessions.get(session);
            entry.is_some_and(|entry| entry.number == *number)
        });
    }

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
