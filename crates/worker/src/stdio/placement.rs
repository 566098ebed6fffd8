//! Decides which shared process runs a call. Pure bookkeeping.
//!
//! A legacy process does not say which call a question belongs to. A call whose client can be asked therefore
//! runs *alone* in its process: a question of another call could reach its client. All other calls share, and
//! so do all calls of modern processes, which ask no questions.
//!
//! While a call waits for its client's answer, it keeps its process, but another process may start in its
//! place. Unanswered questions therefore do not reduce the processes of other calls; a separate limit bounds
//! them.
//!
//! A call that may end its process runs *apart*, sharing only with calls of the same caller. One extra
//! process may start for such calls, and one process always remains for the others.
//!
//! If callers have their own processes, a process belongs to the *owner* whose call came first, and the lead
//! takes no calls. Each owner has a limited number of processes. When another owner needs room, the owner
//! with the most processes loses its least recently used idle one.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use shoal_ports::{FailureKey, Principal};

use tokio::time::Instant;

use super::demand::{Demands, Want, add_caller};
use crate::upstream::Quarantine;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SlotId(pub(super) u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct WaiterId(pub(super) u64);

#[derive(Debug)]
struct ProcessSlot {
    id: SlotId,
    lead: bool,
    modern: bool,
    owner: Option<FailureKey>,
    used: Instant,
    sharing: usize,
    apart: Option<FailureKey>,
    taken: Option<Principal>,
    questions: usize,
    retiring: bool,
    quarantine: Quarantine,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum TooManyAsk {
    OfPrincipal(usize),
    Of(usize),
}

#[derive(Debug)]
pub(super) struct ProcessPlacement {
    limit: usize,
    of_owner: usize,
    of_lead: usize,
    starting: usize,
    slots: Vec<ProcessSlot>,
    waiting: VecDeque<(WaiterId, Want)>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Waiting calls and their processes; `true` if alone.
    pub(super) granted: Vec<(WaiterId, SlotId, bool)>,
    /// How many processes to start. Call [`ProcessPlacement::started`] after each start.
    pub(super) start: usize,
    pub(super) retired: Vec<SlotId>,
}

impl ProcessPlacement {
    pub(super) fn new(limit: usize) -> Self {
        Self::owned(limit, limit)
    }

    /// `of_owner` limits each owner's processes.
    pub(super) fn owned(limit: usize, of_owner: usize) -> Self {
        Self {
            limit,
            of_owner,
            of_lead: 1,
            starting: 0,
            slots: Vec::new(),
            waiting: VecDeque::new(),
        }
    }

    pub(super) fn without_lead(mut self) -> Self {
        self.of_lead = 0;
        self
    }

    /// Adds a ready process.
    pub(super) fn join(&mut self, id: SlotId, lead: bool, modern: bool) {
        self.slots.push(ProcessSlot {
            id,
            lead,
            modern,
            owner: None,
            used: Instant::now(),
            sharing: 0,
            apart: None,
            taken: None,
            questions: 0,
            retiring: false,
            quarantine: Quarantine::None,
        });
    }

    pub(super) fn leave(&mut self, id: SlotId) {
        self.slots.retain(|slot| slot.id != id);
    }

    /// Ends a requested start, successful or not.
    pub(super) fn started(&mut self) {
        self.starting -= 1;
    }

    pub(super) fn is_retiring(&self, id: SlotId) -> bool {
        self.slots.iter().any(|slot| slot.id == id && slot.retiring)
    }

    pub(super) fn is_deserted(&self) -> bool {
        self.slots.iter().all(|slot| slot.retiring)
    }

    pub(super) fn wait(&mut self, id: WaiterId, want: Want) {
        self.waiting.push_back((id, want));
    }

    pub(super) fn forget(&mut self, id: WaiterId) {
        self.waiting.retain(|(waiter, _)| *waiter != id);
    }

    pub(super) fn release(&mut self, id: SlotId, alone: bool) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.id == id) {
            if alone {
                slot.taken = None;
            } else {
                slot.sharing -= 1;
                slot.apart = slot.apart.filter(|_| slot.sharing > 0);
            }
            slot.used = Instant::now();
        }
    }

    /// Closes a process to further calls. A plan that finds it idle retires it. A retired lead counts like other
    /// processes, because the next lead takes the reserved place.
    pub(super) fn retire(&mut self, id: SlotId) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.id == id) {
            slot.retiring = true;
            slot.lead = false;
        }
    }

    /// Closes a process unused by its owner for `idle`, and the next plan retires it. Otherwise returns how
    /// much longer an owned process may be idle.
    pub(super) fn give_up_idle(&mut self, id: SlotId, idle: Duration) -> Option<Duration> {
        let slot = self.slots.iter_mut().find(|slot| slot.id == id)?;
        slot.owner.as_ref()?;
        if !slot.is_idle() {
            return Some(idle);
        }
        let left = idle.saturating_sub(slot.used.elapsed());
        slot.retiring |= left.is_zero();
        Some(left)
    }

    /// Opens a question of a call that is alone, until [`answered`](Self::answered). A principal may have as
    /// many asking calls as processes, the pool twice as many as its processes.
    pub(super) fn ask(&mut self, id: SlotId) -> Result<(), TooManyAsk> {
        let Some(slot) = self.slots.iter().find(|slot| slot.id == id) else {
            return Ok(());
        };
        if slot.questions == 0 {
            let asking = self.slots.iter().filter(|slot| slot.questions > 0);
            let own = asking.clone().filter(|other| other.taken == slot.taken);
            let (own, all) = (own.count(), asking.count());
            if own >= self.of_owner {
                return Err(TooManyAsk::OfPrincipal(own));
            }
            if all >= 2 * self.limit {
                return Err(TooManyAsk::Of(all));
            }
        }
        let slot = self.slots.iter_mut().find(|slot| slot.id == id);
        slot.into_iter().for_each(|slot| slot.questions += 1);
        Ok(())
    }

    pub(super) fn answered(&mut self, id: SlotId) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.id == id) {
            slot.questions -= 1;
        }
    }

    /// Places waiting calls, oldest first. `quarantine` returns the clients that a process must not ask.
    pub(super) fn plan(&mut self, quarantine: impl Fn(SlotId) -> Quarantine) -> Plan {
        for slot in &mut self.slots {
            slot.quarantine = quarantine(slot.id);
        }
        self.take_turns();
        let mut plan = Plan::default();
        let mut unplaced = Vec::new();
        let mut demands = Demands::default();
        let others = self.slots.iter().filter(|slot| !slot.lead).count();
        let asking = self.slots.iter().filter(|slot| slot.questions > 0).count();
        let most = self.limit + asking + usize::from(self.has_apart());
        let room = most.saturating_sub(self.of_lead + others + self.starting);
        for (waiter, mut want) in std::mem::take(&mut self.waiting) {
            if want.may_share {
                want.apart = want.apart.filter(|key| self.has_room_apart(key, most));
            }
            // Processes that drain for older waiting calls accept no others.
            let reserved = self.emptiest(demands.lonely(&want.owner), &want.owner);
            if let Some(slot) = self.find(&want, &reserved, most) {
                let alone = want.alone && !slot.modern;
                slot.taken = alone.then_some(want.principal);
                slot.sharing += usize::from(!alone);
                slot.apart = want.apart.filter(|_| !alone);
                slot.owner = want.owner;
                plan.granted.push((waiter, slot.id, alone));
            } else {
                demands.add(&want);
                unplaced.push((waiter, want));
            }
        }
        let needed = demands.processes(|owner| self.room_of(owner));
        let wanted = needed.saturating_sub(self.starting);
        plan.start = room.min(wanted);
        self.starting += plan.start;
        self.give_up_for_others(wanted - plan.start, &demands);
        let barred = unplaced
            .iter()
            .map(|(_, want)| want)
            .filter(|want| want.alone);
        self.retire_for(barred.skip(self.starting));
        self.waiting = unplaced.into();
        self.retire_surplus((self.of_lead + others + self.starting).saturating_sub(most));
        let done = |slot: &&ProcessSlot| slot.retiring && slot.is_idle();
        plan.retired = self.slots.iter().filter(done).map(|slot| slot.id).collect();
        plan
    }

    fn room_of(&self, owner: &Option<FailureKey>) -> usize {
        let Some(owner) = owner else {
            return usize::MAX;
        };
        let own = self.slots.iter().filter(|slot| slot.is_of(owner));
        let own = own.filter(|slot| slot.questions == 0 && !slot.retiring);
        self.of_owner.saturating_sub(own.count())
    }

    /// Closes up to `count` idle processes of owners without a waiting call.
    fn give_up_for_others(&mut self, count: usize, demands: &Demands) {
        let going = |slot: &&ProcessSlot| slot.owner.is_some() && slot.retiring;
        for _ in self.slots.iter().filter(going).count()..count {
            let mut owners = Vec::<(FailureKey, usize)>::new();
            for owner in self.slots.iter().filter_map(|slot| slot.owner) {
                match owners
                    .iter_mut()
                    .find(|(other, _)| other.is_of_caller_of(&owner))
                {
                    Some((_, count)) => *count += 1,
                    None => owners.push((owner, 1)),
                }
            }
            let spare = self.slots.iter_mut().filter_map(|slot| {
                let owner = slot.owner?;
                let (_, has) = owners
                    .iter()
                    .find(|(other, _)| other.is_of_caller_of(&owner))?;
                let is_spare = slot.is_idle() && !slot.retiring && !demands.are_of(&owner);
                is_spare.then_some((*has, std::cmp::Reverse(slot.used), slot))
            });
            match spare.max_by_key(|(has, used, _)| (*has, *used)) {
                Some((_, _, slot)) => slot.retiring = true,
                None => return,
            }
        }
    }

    fn has_apart(&self) -> bool {
        let waits = || self.waiting.iter().any(|(_, want)| want.apart.is_some());
        self.slots.iter().any(|slot| slot.apart.is_some()) || waits()
    }

    /// One process always remains for the other callers.
    fn has_room_apart(&self, key: &FailureKey, most: usize) -> bool {
        let mut callers = Vec::new();
        let apart = self.slots.iter().filter_map(|slot| slot.apart.as_ref());
        apart.for_each(|key| add_caller(&mut callers, key));
        add_caller(&mut callers, key);
        callers.len() < most
    }

    /// Gives each principal a first turn before any gets a second. Calls that run alone count as turns.
    fn take_turns(&mut self) {
        let alone = |(_, want): &&(WaiterId, Want)| want.alone;
        if self.waiting.iter().filter(alone).nth(1).is_none() {
            return;
        }
        let mut turns = HashMap::<_, usize>::new();
        for principal in self.slots.iter().filter_map(|slot| slot.taken.clone()) {
            *turns.entry(principal).or_default() += 1;
        }
        let mut ordered = Vec::new();
        for waiter in self.waiting.iter().filter(alone) {
            let turn = turns.entry(waiter.1.principal.clone()).or_default();
            ordered.push((*turn, waiter.clone()));
            *turn += 1;
        }
        ordered.sort_by_key(|(turn, _)| *turn);
        let places = self.waiting.iter_mut().filter(|(_, want)| want.alone);
        for (place, (_, waiter)) in places.zip(ordered) {
            *place = waiter;
        }
    }

    fn find(&mut self, want: &Want, reserved: &[SlotId], most: usize) -> Option<&mut ProcessSlot> {
        let has_room = |key: &FailureKey| self.has_room_apart(key, most);
        let is_open = want.apart.as_ref().is_none_or(has_room);
        let may_take_new = self.room_of(&want.owner) > 0;
        let fits = |slot: &&mut ProcessSlot| {
            let has_owner = slot.owner.is_some() == want.owner.is_some();
            let is_there = slot.fits(want) && (has_owner || may_take_new);
            is_there && is_open && !reserved.contains(&slot.id)
        };
        let fitting = self.slots.iter_mut().filter(fits);
        if want.owner.is_some() {
            // The owner's oldest process has most of the owner's state.
            let taken = |slot: &&mut ProcessSlot| slot.sharing == 0 && !want.alone;
            fitting.min_by_key(|slot| (slot.owner.is_none(), taken(slot), slot.id))
        } else if want.alone {
            // The last process, so that the first ones stay free for shared calls.
            fitting.last()
        } else if want.apart.is_some() {
            fitting.max_by_key(|slot| slot.apart.is_some())
        } else {
            // A process that is shared already, so that others stay free for calls alone.
            fitting.min_by_key(|slot| (slot.sharing == 0, slot.sharing))
        }
    }

    fn emptiest(&self, count: usize, owner: &Option<FailureKey>) -> Vec<SlotId> {
        if count == 0 {
            return Vec::new();
        }
        let emptying = |slot: &&ProcessSlot| {
            let is_own = owner.as_ref().is_none_or(|owner| slot.is_of(owner));
            is_own && slot.taken.is_none() && !slot.modern && !slot.retiring
        };
        let mut slots: Vec<&ProcessSlot> = self.slots.iter().filter(emptying).collect();
        slots.sort_by_key(|slot| slot.sharing);
        slots.iter().take(count).map(|slot| slot.id).collect()
    }

    /// Retires idle processes beyond the limit, which are left over when calls that asked continue.
    fn retire_surplus(&mut self, surplus: usize) {
        let going = |slot: &ProcessSlot| slot.retiring && !slot.lead;
        let surplus = surplus.saturating_sub(self.slots.iter().filter(|slot| going(slot)).count());
        let slots = self.slots.iter_mut().rev();
        let idle = slots.filter(|slot| !slot.lead && !slot.retiring && slot.is_idle());
        idle.take(surplus).for_each(|slot| slot.retiring = true);
    }

    /// Retires a process that may ask only one session, or none. Other sessions would wait until the
    /// cancelled call's end is confirmed, perhaps for ever.
    fn retire_for<'a>(&mut self, unplaced: impl Iterator<Item = &'a Want>) {
        for want in unplaced {
            let mut slots = self.slots.iter_mut();
            let bars =
                |slot: &&mut ProcessSlot| slot.taken.is_none() && !slot.retiring && slot.bars(want);
            if let Some(slot) = slots.find(bars) {
                slot.retiring = true;
            }
        }
    }
}

impl ProcessSlot {
    fn is_idle(&self) -> bool {
        self.taken.is_none() && self.sharing == 0
    }

    fn is_of(&self, owner: &FailureKey) -> bool {
        self.owner.is_some_and(|own| own.is_of_caller_of(owner))
    }

    fn fits(&self, want: &Want) -> bool {
        let is_others = match &want.owner {
            Some(owner) => self.lead || self.owner.is_some() && !self.is_of(owner),
            None => self.owner.is_some(),
        };
        if self.retiring || is_others {
            return false;
        }
        if want.alone && !self.modern {
            return self.is_idle() && !self.bars(want);
        }
        match (&want.apart, &self.apart) {
            (Some(key), Some(own)) => key.is_of_caller_of(own),
            (Some(_), None) => self.is_idle(),
            (None, Some(_)) => false,
            (None, None) => self.taken.is_none(),
        }
    }

    fn bars(&self, want: &Want) -> bool {
        if self.owner.is_some() && !want.owner.is_some_and(|owner| self.is_of(&owner)) {
            return false;
        }
        match &self.quarantine {
            Quarantine::None => false,
            Quarantine::AllBut(session) => want.session.as_ref() != Some(session),
            Quarantine::Everybody => true,
        }
    }
}

#[cfg(test)]
mod tests;
