//! Counts the processes that waiting calls need.

use shoal_ports::{FailureKey, Principal, SessionId};

#[derive(Clone, Debug)]
pub(super) struct Want {
    /// Needs a legacy process to itself, because its client can be asked.
    pub(super) alone: bool,
    /// The caller that may share the process, if the call may end it.
    pub(super) apart: Option<FailureKey>,
    /// Whether the call may share with other callers if no process apart is free.
    pub(super) may_share: bool,
    pub(super) principal: Principal,
    pub(super) session: Option<SessionId>,
    pub(super) owner: Option<FailureKey>,
}

#[derive(Default)]
pub(super) struct Demands(Vec<Demand>);

/// The need of one owner's calls, or of all calls if processes have no owners.
struct Demand {
    owner: Option<FailureKey>,
    lonely: usize,
    apart: Vec<FailureKey>,
    shares: bool,
}

impl Demands {
    pub(super) fn add(&mut self, want: &Want) {
        let at = self.at(&want.owner).unwrap_or_else(|| {
            self.0.push(Demand {
                owner: want.owner,
                lonely: 0,
                apart: Vec::new(),
                shares: false,
            });
            self.0.len() - 1
        });
        let demand = &mut self.0[at];
        match &want.apart {
            _ if want.alone => demand.lonely += 1,
            Some(key) => add_caller(&mut demand.apart, key),
            None => demand.shares = true,
        }
    }

    pub(super) fn lonely(&self, owner: &Option<FailureKey>) -> usize {
        self.at(owner).map_or(0, |at| self.0[at].lonely)
    }

    pub(super) fn are_of(&self, owner: &FailureKey) -> bool {
        self.at(&Some(*owner)).is_some()
    }

    pub(super) fn processes(&self, room: impl Fn(&Option<FailureKey>) -> usize) -> usize {
        let needs = |demand: &Demand| {
            let needed = demand.lonely + demand.apart.len() + usize::from(demand.shares);
            needed.min(room(&demand.owner))
        };
        self.0.iter().map(needs).sum()
    }

    fn at(&self, owner: &Option<FailureKey>) -> Option<usize> {
        let is_of = |demand: &Demand| match (&demand.owner, owner) {
            (Some(one), Some(other)) => one.is_of_caller_of(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        self.0.iter().position(is_of)
    }
}

pub(super) fn add_caller(callers: &mut Vec<FailureKey>, key: &FailureKey) {
    if !callers.iter().any(|other| other.is_of_caller_of(key)) {
        callers.push(*key);
    }
}
