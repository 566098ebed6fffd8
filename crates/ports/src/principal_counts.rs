use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::Principal;

/// Counts by principal. Zero counts are removed.
#[derive(Debug, Default)]
pub struct PrincipalCounts(HashMap<Principal, usize, RandomState>);

impl PrincipalCounts {
    /// Returns a principal's count.
    pub fn of(&self, principal: &Principal) -> usize {
        self.0.get(principal).copied().unwrap_or_default()
    }

    /// Adds to a principal's count.
    pub fn add(&mut self, principal: &Principal, more: usize) {
        *self.0.entry(principal.clone()).or_default() += more;
    }

    /// Subtracts from a principal's count.
    pub fn subtract(&mut self, principal: &Principal, less: usize) {
        if let Some(count) = self.0.get_mut(principal) {
            *count = count.saturating_sub(less);
            if *count == 0 {
                self.0.remove(principal);
            }
        }
    }

    /// Returns the principal with the greatest count.
    pub fn greatest(&self) -> Option<&Principal> {
        let greatest = self.0.iter().max_by_key(|(_, count)| **count);
        greatest.map(|(principal, _)| principal)
    }

    /// Whether all counts are zero.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
