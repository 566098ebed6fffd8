//! Counts each principal's actors, if there is a limit.

use shoal_ports::{Principal, PrincipalCounts};

#[derive(Default)]
pub(super) struct Shares {
    most: usize,
    held: PrincipalCounts,
}

impl Shares {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            held: PrincipalCounts::default(),
        }
    }

    pub(super) fn may_run(&self, principal: &Principal) -> bool {
        self.most == 0 || self.held.of(principal) < self.most
    }

    pub(super) fn take(&mut self, principal: &Principal) {
        if self.most > 0 {
            self.held.add(principal, 1);
        }
    }

    pub(super) fn leave(&mut self, principal: &Principal) {
        self.held.subtract(principal, 1);
    }
}
