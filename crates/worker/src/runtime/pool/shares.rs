//! How many actors each principal has, where that is limited.

use shoal_ports::{Principal, PrincipalCounts};

/// Counts nothing where there is no limit.
#[derive(Default)]
pub(super) struct Shares {
    /// 0 for no limit.
    most: usize,
    held: PrincipalCounts,
}

impl Shares {
    /// At most so many of each principal; 0 for no limit.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            held: PrincipalCounts::default(),
        }
    }

    /// Whether the principal may have one more.
    pub(super) fn may_run(&self, principal: &Principal) -> bool {
        self.most == 0 || self.held.of(principal) < self.most
    }

    /// The principal has one more.
    pub(super) fn take(&mut self, principal: &Principal) {
        if self.most > 0 {
            self.held.add(principal, 1);
        }
    }

    /// The principal has one less.
    pub(super) fn leave(&mut self, principal: &Principal) {
        self.held.subtract(principal, 1);
    }
}
