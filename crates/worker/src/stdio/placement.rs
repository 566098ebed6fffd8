//! Which call runs on which shared process: pure bookkeeping.
//!
//! A legacy process does not say which call a question belongs to. So a call whose client can be
//! asked runs *alone* in its process, and everything else shares. (Sharing a process between one
//! askable call and others would not do: a tool called by a client without capabilities may ask all
//! the same, and its question would reach the askable call's client.) Modern processes never ask, so
//! there everything shares.
//!
//! A call that waits for its client's answer keeps its process, but that one does not count among those that there may
//! be: another may be started in its stead. So however many questions stay without an answer, the other calls have as
//! many processes as ever. Questions are bounded instead.

use std::collections::{HashMap, VecDeque};

use shoal_ports::{Principal, SessionId};

use crate::upstream::Quarantine;

/// Names a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SeatId(pub(super) u64);

/// Names a waiting call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct WaiterId(pub(super) u64);

/// What a call needs.
#[derive(Clone, Debug)]
pub(super) struct Want {
    /// To be alone in a legacy process, because its client can be asked.
    pub(super) alone: bool,
    /// Whose call it is.
    pub(super) principal: Principal,
    /// Its session.
    pub(super) session: Option<SessionId>,
}

/// A process that takes calls.
#[derive(Debug)]
struct Seat {
    id: SeatId,
    lead: bool,
    modern: bool,
    sharing: usize,
    /// Whose call is alone there.
    taken: Option<Principal>,
    /// What that call has asked its client.
    questions: usize,
    retiring: bool,
    quarantine: Quarantine,
}

/// Why a call may not ask.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TooManyAsk {
    /// So many calls of its principal do.
    OfPrincipal(usize),
    /// So many calls do.
    Of(usize),
}

/// Processes and the calls that wait for one.
#[derive(Debug)]
pub(super) struct Placement {
    limit: usize,
    starting: usize,
    seats: Vec<Seat>,
    waiting: VecDeque<(WaiterId, Want)>,
}

/// What to do next.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Which waiting calls go where; `true` if alone.
    pub(super) granted: Vec<(WaiterId, SeatId, bool)>,
    /// How many processes to start; each ends in [`Placement::started`].
    pub(super) start: usize,
    /// Which processes to shut down: nobody is on them, and nobody comes any more.
    pub(super) retired: Vec<SeatId>,
}

impl Placement {
    /// At most `limit` processes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            starting: 0,
            seats: Vec::new(),
            waiting: VecDeque::new(),
        }
    }

    /// A process is ready. The lead is the one that is always kept running; its place is not given
    /// to others while it is away.
    pub(super) fn join(&mut self, id: SeatId, lead: bool, modern: bool) {
        self.seats.push(Seat {
            id,
            lead,
            modern,
            sharing: 0,
            taken: None,
            questions: 0,
            retiring: false,
            quarantine: Quarantine::None,
        });
    }

    /// A process is gone.
    pub(super) fn leave(&mut self, id: SeatId) {
        self.seats.retain(|seat| seat.id != id);
    }

    /// A process that a plan asked for was started, or could not be.
    pub(super) fn started(&mut self) {
        self.starting -= 1;
    }

    /// Whether there is no process at all.
    pub(super) fn is_deserted(&self) -> bool {
        self.seats.is_empty()
    }

    /// A call waits.
    pub(super) fn wait(&mut self, id: WaiterId, want: Want) {
        self.waiting.push_back((id, want));
    }

    /// A call waits no more.
    pub(super) fn forget(&mut self, id: WaiterId) {
        self.waiting.retain(|(waiter, _)| *waiter != id);
    }

    /// A call has left its process.
    pub(super) fn release(&mut self, id: SeatId, alone: bool) {
        if let Some(seat) = self.seats.iter_mut().find(|seat| seat.id == id) {
            if alone {
                seat.taken = None;
            } else {
                seat.sharing -= 1;
            }
        }
    }

    /// A call that is alone asks its client, until [`answered`](Self::answered). As many of one principal may as there may
    /// be processes, and twice as many of all.
    pub(super) fn ask(&mut self, id: SeatId) -> Result<(), TooManyAsk> {
        let Some(seat) = self.seats.iter().find(|seat| seat.id == id) else {
            return Ok(());
        };
        if seat.questions == 0 {
            let asking = self.seats.iter().filter(|seat| seat.questions > 0);
            let own = asking.clone().filter(|other| other.taken == seat.taken);
            let (own, all) = (own.count(), asking.count());
            if own >= self.limit {
                return Err(TooManyAsk::OfPrincipal(own));
            }
            if all >= 2 * self.limit {
                return Err(TooManyAsk::Of(all));
            }
        }
        let seat = self.seats.iter_mut().find(|seat| seat.id == id);
        seat.into_iter().for_each(|seat| seat.questions += 1);
        Ok(())
    }

    /// A question is not open any more.
    pub(super) fn answered(&mut self, id: SeatId) {
        if let Some(seat) = self.seats.iter_mut().find(|seat| seat.id == id) {
            seat.questions -= 1;
        }
    }

    /// Places whoever can be placed, the longest waiting first. `quarantine` tells whom a process
    /// may not ask because of calls that it has not confirmed to have stopped.
    pub(super) fn plan(&mut self, quarantine: impl Fn(SeatId) -> Quarantine) -> Plan {
        for seat in &mut self.seats {
            seat.quarantine = quarantine(seat.id);
        }
        self.take_turns();
        let mut plan = Plan::default();
        let mut unplaced = Vec::new();
        let mut lonely = 0;
        for (waiter, want) in std::mem::take(&mut self.waiting) {
            // Processes that empty themselves for those who wait longer take nobody else.
            let reserved = self.emptiest(lonely);
            if let Some(seat) = self.find(&want, &reserved) {
                let alone = want.alone && !seat.modern;
                seat.taken = alone.then_some(want.principal);
                seat.sharing += usize::from(!alone);
                plan.granted.push((waiter, seat.id, alone));
            } else {
                lonely += usize::from(want.alone);
                unplaced.push((waiter, want));
            }
        }
        // One more process is enough for any number that share.
        let needed = lonely + usize::from(unplaced.len() > lonely);
        let others = self.seats.iter().filter(|seat| !seat.lead).count();
        let asking = self.seats.iter().filter(|seat| seat.questions > 0).count();
        let most = self.limit + asking;
        let room = most.saturating_sub(1 + others + self.starting);
        plan.start = room.min(needed.saturating_sub(self.starting));
        self.starting += plan.start;
        let barred = unplaced
            .iter()
            .map(|(_, want)| want)
            .filter(|want| want.alone);
        self.retire_for(barred.skip(self.starting));
        self.waiting = unplaced.into();
        self.retire_surplus((1 + others + self.starting).saturating_sub(most));
        let done = |seat: &&Seat| seat.retiring && seat.is_idle();
        plan.retired = self.seats.iter().filter(done).map(|seat| seat.id).collect();
        plan
    }

    /// Puts those who must be alone in an order in which no principal comes second before each has come first. One that has
    /// processes has come already.
    fn take_turns(&mut self) {
        let alone = |(_, want): &&(WaiterId, Want)| want.alone;
        if self.waiting.iter().filter(alone).nth(1).is_none() {
            return;
        }
        let mut turns = HashMap::<_, usize>::new();
        for principal in self.seats.iter().filter_map(|seat| seat.taken.clone()) {
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

    fn find(&mut self, want: &Want, reserved: &[SeatId]) -> Option<&mut Seat> {
        let fits = |seat: &&mut Seat| seat.fits(want) && !reserved.contains(&seat.id);
        let fitting = self.seats.iter_mut().filter(fits);
        if want.alone {
            // The last one, so that the first is left for those who share.
            fitting.last()
        } else {
            // A process that is shared already, so that the others stay free for those who cannot.
            fitting.min_by_key(|seat| (seat.sharing == 0, seat.sharing))
        }
    }

    fn emptiest(&self, count: usize) -> Vec<SeatId> {
        if count == 0 {
            return Vec::new();
        }
        let emptying = |seat: &&Seat| seat.taken.is_none() && !seat.modern && !seat.retiring;
        let mut seats: Vec<&Seat> = self.seats.iter().filter(emptying).collect();
        seats.sort_by_key(|seat| seat.sharing);
        seats.iter().take(count).map(|seat| seat.id).collect()
    }

    /// Processes beside which calls go on that have asked are too many once those do not.
    fn retire_surplus(&mut self, surplus: usize) {
        let going = |seat: &Seat| seat.retiring && !seat.lead;
        let surplus = surplus.saturating_sub(self.seats.iter().filter(|seat| going(seat)).count());
        let seats = self.seats.iter_mut().rev();
        let idle = seats.filter(|seat| !seat.lead && !seat.retiring && seat.is_idle());
        idle.take(surplus).for_each(|seat| seat.retiring = true);
    }

    /// A process that may ask nobody but one session blocks all others for as long as the cancelled
    /// call's end is not confirmed, which may be for ever: it is replaced.
    fn retire_for<'a>(&mut self, unplaced: impl Iterator<Item = &'a Want>) {
        for want in unplaced {
            let mut seats = self.seats.iter_mut();
            let bars = |seat: &&mut Seat| seat.taken.is_none() && !seat.retiring && seat.bars(want);
            if let Some(seat) = seats.find(bars) {
                seat.retiring = true;
            }
        }
    }
}

impl Seat {
    fn is_idle(&self) -> bool {
        self.taken.is_none() && self.sharing == 0
    }

    fn fits(&self, want: &Want) -> bool {
        if self.retiring {
            return false;
        }
        if want.alone && !self.modern {
            return self.is_idle() && !self.bars(want);
        }
        self.taken.is_none()
    }

    fn bars(&self, want: &Want) -> bool {
        match &self.quarantine {
            Quarantine::None => false,
            Quarantine::AllBut(session) => want.session.as_ref() != Some(session),
            Quarantine::Everybody => true,
        }
    }
}

#[cfg(test)]
mod tests;
