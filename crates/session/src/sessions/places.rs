//! Limits a node's sessions. Each session takes a place, which is free again on drop.

use std::sync::Arc;

use shoal_ports::{GatewayError, Principal};

use crate::config::SessionConfig;
use crate::totals::{Exceeded, Portion, Totals};

pub(crate) struct Places {
    config: Arc<SessionConfig>,
    taken: Arc<Totals>,
}

#[derive(Debug)]
pub(crate) struct SessionPlace(#[allow(dead_code, reason = "counts until dropped")] Portion);

impl Places {
    pub(super) fn new(config: Arc<SessionConfig>) -> Self {
        let taken = Arc::default();
        Self { config, taken }
    }

    pub(crate) fn taken(&self) -> usize {
        usize::try_from(self.taken.all()).unwrap_or(usize::MAX)
    }

    pub(crate) fn take(&self, principal: &Principal) -> Result<SessionPlace, GatewayError> {
        let own = match *principal == Principal::anonymous() {
            // No limit per principal without authentication, because all callers are then one principal.
            true => usize::MAX,
            false => self.config.limits.sessions_per_principal,
        };
        self.take_within(principal, own)
    }

    /// Takes a place without the principal's limit, because another node admitted the session.
    pub(crate) fn take_over(&self, principal: &Principal) -> Result<SessionPlace, GatewayError> {
        self.take_within(principal, usize::MAX)
    }

    fn take_within(&self, principal: &Principal, own: usize) -> Result<SessionPlace, GatewayError> {
        let retry_after = self.config.calls.retry_after.get();
        let limit = self.config.limits.sessions_per_node;
        let taken = self.taken.take_one(principal, limit as u64, own as u64);
        taken.map(SessionPlace).map_err(|exceeded| match exceeded {
            Exceeded::All => GatewayError::TooManySessions { limit, retry_after },
            Exceeded::Own => GatewayError::TooManySessionsOfPrincipal {
                limit: own,
                retry_after,
            },
        })
    }
}
