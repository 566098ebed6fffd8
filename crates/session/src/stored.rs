//! What the sessions of this node have stored, and how much of it is each principal's: their records, the events that the log
//! keeps, and the calls in the journal.
//!
//! It is counted as this node stores it, so what the store has dropped since may still count for a while; the sweep puts that
//! right for sessions in which nothing is going on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use shoal_ports::{GatewayError, Principal};

use crate::config::SessionConfig;

/// Bytes that this node's sessions have stored.
#[derive(Debug)]
pub(crate) struct Stored {
    config: Arc<SessionConfig>,
    all: AtomicU64,
    of: DashMap<Principal, u64>,
}

/// What one session has of them; given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    stored: Arc<Stored>,
    principal: Principal,
    record: AtomicU64,
    log: AtomicU64,
}

/// A call in the journal; given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    share: Arc<Share>,
    bytes: u64,
}

impl Stored {
    pub(crate) fn new(config: Arc<SessionConfig>) -> Arc<Self> {
        Arc::new(Self {
            config,
            all: AtomicU64::new(0),
            of: DashMap::new(),
        })
    }

    /// The share of a session with a record of so many bytes.
    pub(crate) fn share(self: &Arc<Self>, principal: &Principal, record: usize) -> Arc<Share> {
        let share = Share {
            stored: self.clone(),
            principal: principal.clone(),
            record: AtomicU64::new(0),
            log: AtomicU64::new(0),
        };
        share.set_record(record);
        Arc::new(share)
    }

    /// Whether a principal may store something new.
    ///
    /// # Errors
    /// Where its budget is used up, or the node's.
    pub(crate) fn check(&self, principal: &Principal) -> Result<(), GatewayError> {
        let config = &self.config;
        let (limit, retry_after) = (config.limits.stored_bytes_per_principal, config.retry_after);
        let own = self.of.get(principal).map_or(0, |bytes| *bytes);
        // Without authentication everybody is one principal, whose share is the node.
        if own >= limit && *principal != Principal::anonymous() {
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            return Err(GatewayError::TooManyBytesOfPrincipal { limit, retry_after });
        }
        let limit = config.limits.stored_bytes;
        if self.all.load(Ordering::Relaxed) >= limit {
            return Err(GatewayError::Overloaded {
                reason: format!(
                    "the sessions of this node hold their limit of {limit} stored bytes"
                ),
                retry_after,
            });
        }
        Ok(())
    }

    fn add(&self, principal: &Principal, bytes: u64) {
        if bytes > 0 {
            self.all.fetch_add(bytes, Ordering::Relaxed);
            *self.of.entry(principal.clone()).or_default() += bytes;
        }
    }

    fn subtract(&self, principal: &Principal, bytes: u64) {
        if bytes > 0 {
            self.all.fetch_sub(bytes, Ordering::Relaxed);
            self.of.remove_if_mut(principal, |_, held| {
                *held = held.saturating_sub(bytes);
                *held == 0
            });
        }
    }
}

impl Share {
    /// The session's record has so many bytes now.
    pub(crate) fn set_record(&self, bytes: usize) {
        self.set(&self.record, bytes as u64);
    }

    /// The log keeps so many bytes of the session now.
    pub(crate) fn set_log(&self, bytes: u64) {
        self.set(&self.log, bytes);
    }

    /// A call with so many bytes is in the journal.
    pub(crate) fn journal(self: &Arc<Self>, bytes: usize) -> Entry {
        let bytes = bytes as u64;
        self.stored.add(&self.principal, bytes);
        Entry {
            share: self.clone(),
            bytes,
        }
    }

    /// As [`Stored::check`], for the session's principal.
    ///
    /// # Errors
    /// Likewise.
    pub(crate) fn check(&self) -> Result<(), GatewayError> {
        self.stored.check(&self.principal)
    }

    fn set(&self, what: &AtomicU64, bytes: u64) {
        let before = what.swap(bytes, Ordering::Relaxed);
        self.stored
            .add(&self.principal, bytes.saturating_sub(before));
        self.stored
            .subtract(&self.principal, before.saturating_sub(bytes));
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set_record(0);
        self.set_log(0);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.share
            .stored
            .subtract(&self.share.principal, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use shoal_ports::{GatewayError, NodeLimits, Principal};

    use super::Stored;
    use crate::config::SessionConfig;

    fn stored() -> Arc<Stored> {
        Stored::new(Arc::new(SessionConfig {
            limits: NodeLimits {
                stored_bytes: 300,
                stored_bytes_per_principal: 100,
                ..NodeLimits::default()
            },
            ..SessionConfig::default()
        }))
    }

    #[test]
    fn a_principal_has_a_budget_and_gets_it_back() {
        let stored = stored();
        let (alice, bob) = (Principal::new("alice"), Principal::new("bob"));
        let share = stored.share(&alice, 40);
        share.set_log(50);
        assert_eq!(share.check(), Ok(()));
        let entry = share.journal(20);
        assert!(matches!(
            share.check(),
            Err(GatewayError::TooManyBytesOfPrincipal { limit: 100, .. })
        ));
        assert_eq!(stored.check(&bob), Ok(()));
        drop(entry);
        share.set_log(60);
        assert!(share.check().is_err());
        share.set_record(39);
        assert_eq!(share.check(), Ok(()));
        drop(share);
        assert!(stored.of.is_empty());
    }

    #[test]
    fn the_node_has_one_too() {
        let stored = stored();
        let everybody = Principal::anonymous();
        let share = stored.share(&everybody, 299);
        assert_eq!(share.check(), Ok(()));
        share.set_log(1);
        assert!(matches!(
            share.check(),
            Err(GatewayError::Overloaded { .. })
        ));
        assert!(stored.check(&Principal::new("alice")).is_err());
    }
}
