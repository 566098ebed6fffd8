//! The places for sessions on a node. A [`Place`] belongs to whoever holds a session: what is opening it or taking it over,
//! and then the node's table.

use std::sync::Arc;

use shoal_ports::{GatewayError, Principal};

use crate::config::SessionConfig;
use crate::totals::{Exceeded, Portion, Totals};

/// The places for sessions on a node.
pub(crate) struct Places {
    config: Arc<SessionConfig>,
    taken: Arc<Totals>,
}

/// The place of one session; free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place(#[allow(dead_code, reason = "counts until dropped")] Portion);

impl Places {
    pub(super) fn new(config: Arc<SessionConfig>) -> Self {
        let taken = Arc::default();
        Self { config, taken }
    }

    /// How many are taken.
    pub(crate) fn taken(&self) -> usize {
        usize::try_from(self.taken.all()).unwrap_or(usize::MAX)
    }

    /// A place for a new session.
    ///
    /// # Errors
    /// When the node, or the principal, has as many as it may.
    pub(crate) fn take(&self, principal: &Principal) -> Result<Place, GatewayError> {
        let own = match *principal == Principal::anonymous() {
            // Without authentication everybody is one principal, who must not be kept from the node's sessions.
            true => usize::MAX,
            false => self.config.limits.sessions_per_principal,
        };
        self.take_within(principal, own)
    }

    /// A place for a session that comes from another node, which has let it in.
    ///
    /// # Errors
    /// When the node has as many as it may.
    pub(crate) fn take_over(&self, principal: &Principal) -> Result<Place, GatewayError> {
        self.take_within(principal, usize::MAX)
    }

    fn take_within(&self, principal: &Principal, own: usize) -> Result<Place, GatewayError> {
        let retry_after = self.config.retry_after;
        let limit = self.config.limits.sessions_per_node;
        let taken = self.taken.take_one(principal, limit as u64, own as u64);
        taken.map(Place).map_err(|exceeded| match exceeded {
            Exceeded::All => GatewayError::TooManySessions { limit, retry_after },
            Exceeded::Own => GatewayError::TooManySessionsOfPrincipal {
                limit: own,
                retry_after,
            },
        })
    }
}
