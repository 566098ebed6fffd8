//! How many actors each principal has, where that is limited.

use std::collections::HashMap;

use shoal_ports::Principal;

/// Counts nothing where there is no limit.
#[derive(Default)]
pub(super) struct Shares {
    /// 0 for no limit.
    most: usize,
    held: HashMap<Principal, usize>,
}

impl Shares {
    /// At most so many of each principal; 0 for no limit.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            held: HashMap::new(),
        }
    }

    /// Whether the principal may have one more.
    pub(super) fn may_run(&self, principal: &Principal) -> bool {
        self.most == 0
            || self
                .held
                .get(principal)
                .is_none_or(|held| *held < self.most)
    }

    /// The principal has one more.
    pub(super) fn take(&mut self, principal: &Principal) {
        if self.most > 0 {
            *self.held.entry(principal.clone()).or_default() += 1;
        }
    }

    /// The principal has one less.
    pub(super) fn leave(&mut self, principal: &Principal) {
        if let Some(held) = self.held.get_mut(principal) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(principal);
            }
        }
    }
}
