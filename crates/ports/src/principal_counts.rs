//! How much each principal has of something that is shared out.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::Principal;

/// Counts by principal. Those without any are not kept.
#[derive(Debug, Default)]
pub struct PrincipalCounts(HashMap<Principal, usize, RandomState>);

impl PrincipalCounts {
    /// How much a principal has.
    pub fn of(&self, principal: &Principal) -> usize {
        self.0.get(principal).copied().unwrap_or_default()
    }

    /// A principal has so much more.
    pub fn add(&mut self, principal: &Principal, more: usize) {
        *self.0.entry(principal.clone()).or_default() += more;
    }

    /// A principal has so much less.
    pub fn subtract(&mut self, principal: &Principal, less: usize) {
        if let Some(count) = self.0.get_mut(principal) {
            *count = count.saturating_sub(less);
            if *count == 0 {
                self.0.remove(principal);
            }
        }
    }

    /// Who has most.
    pub fn greatest(&self) -> Option<&Principal> {
        let greatest = self.0.iter().max_by_key(|(_, count)| **count);
        greatest.map(|(principal, _)| principal)
    }

    /// Whether nobody has any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
