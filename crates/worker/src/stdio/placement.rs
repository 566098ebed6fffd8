//! Which call runs on which shared process: pure bookkeeping.
//!
//! A legacy process does not say which call a question belongs to. So a call whose client can be
//! asked runs *alone* in its process, and everything else shares. (Sharing a process between one
//! askable call and others would not do: a tool called by a client without capabilities may ask all
//! the same, and its question would reach the askable call's client.) Modern processes never ask, so
//! there everything shares.

use std::collections::VecDeque;

use shoal_ports::SessionId;

use super::flights::Quarantine;

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
    taken: bool,
    retiring: bool,
    quarantine: Quarantine,
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
            taken: false,
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
                seat.taken = false;
            } else {
                seat.sharing -= 1;
            }
        }
    }

    /// Places whoever can be placed, the longest waiting first. `quarantine` tells whom a process
    /// may not ask because of calls that it has not confirmed to have stopped.
    pub(super) fn plan(&mut self, quarantine: impl Fn(SeatId) -> Quarantine) -> Plan {
        for seat in &mut self.seats {
            seat.quarantine = quarantine(seat.id);
        }
        let mut plan = Plan::default();
        let mut unplaced = Vec::new();
        let mut lonely = 0;
        for (waiter, want) in std::mem::take(&mut self.waiting) {
            // Processes that empty themselves for those who wait longer take nobody else.
            let reserved = self.emptiest(lonely);
            if let Some(seat) = self.find(&want, &reserved) {
                let alone = want.alone && !seat.modern;
                seat.taken = alone;
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
        let room = self.limit.saturating_sub(1 + others + self.starting);
        plan.start = room.min(needed.saturating_sub(self.starting));
        self.starting += plan.start;
        let barred = unplaced
            .iter()
            .map(|(_, want)| want)
            .filter(|want| want.alone);
        self.retire_for(barred.skip(self.starting));
        self.waiting = unplaced.into();
        let done = |seat: &&Seat| seat.retiring && !seat.taken && seat.sharing == 0;
        plan.retired = self.seats.iter().filter(done).map(|seat| seat.id).collect();
        plan
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
        let emptying = |seat: &&Seat| !seat.taken && !seat.modern && !seat.retiring;
        let mut seats: Vec<&Seat> = self.seats.iter().filter(emptying).collect();
        seats.sort_by_key(|seat| seat.sharing);
        seats.iter().take(count).map(|seat| seat.id).collect()
    }

    /// A process that may ask nobody but one session blocks all others for as long as the cancelled
    /// call's end is not confirmed, which may be for ever: it is replaced.
    fn retire_for<'a>(&mut self, unplaced: impl Iterator<Item = &'a Want>) {
        for want in unplaced {
            let mut seats = self.seats.iter_mut();
            if let Some(seat) = seats.find(|seat| !seat.taken && !seat.retiring && seat.bars(want))
            {
                seat.retiring = true;
            }
        }
    }
}

impl Seat {
    fn fits(&self, want: &Want) -> bool {
        if self.retiring {
            return false;
        }
        if want.alone && !self.modern {
            return !self.taken && self.sharing == 0 && !self.bars(want);
        }
        !self.taken
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
