//! Stored bytes by principal.
//!
//! Data that the store has dropped still counts, until a sweep finds the session unused and corrects the number.

use std::sync::Arc;

use parking_lot::Mutex;
use shoal_ports::{GatewayError, Principal};

use crate::config::SessionConfig;
use crate::totals::{Portion, Totals};

#[derive(Debug)]
pub(crate) struct Stored {
    config: Arc<SessionConfig>,
    bytes: Arc<Totals>,
}

/// Dropping a share subtracts its bytes.
#[derive(Debug)]
pub(crate) struct Share {
    stored: Arc<Stored>,
    principal: Principal,
    held: Mutex<HeldBytes>,
}

#[derive(Debug)]
struct HeldBytes {
    record: u64,
    log: u64,
    portion: Portion,
}

#[derive(Debug)]
pub(crate) struct JournalShare(#[allow(dead_code, reason = "counts until dropped")] Portion);

impl Stored {
    pub(crate) fn new(config: Arc<SessionConfig>) -> Arc<Self> {
        let bytes = Arc::default();
        Arc::new(Self { config, bytes })
    }

    pub(crate) fn share(self: &Arc<Self>, principal: &Principal, record: usize) -> Arc<Share> {
        let record = record as u64;
        Arc::new(Share {
            stored: self.clone(),
            principal: principal.clone(),
            held: Mutex::new(HeldBytes {
                record,
                log: 0,
                portion: self.bytes.portion(principal, record),
            }),
        })
    }

    pub(crate) fn check(&self, principal: &Principal) -> Result<(), GatewayError> {
        let config = &self.config;
        let (limit, retry_after) = (
            config.limits.stored_bytes_per_principal,
            config.calls.retry_after.get(),
        );
        if self.bytes.of(principal) >= limit && *principal != Principal::anonymous() {
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            return Err(GatewayError::TooManyBytesOfPrincipal { limit, retry_after });
        }
        let limit = config.limits.stored_bytes;
        if self.bytes.all() >= limit {
            return Err(GatewayError::Overloaded {
                reason: format!(
                    "the sessions of this node hold their limit of {limit} stored bytes"
                ),
                retry_after,
            });
        }
        Ok(())
    }
}

impl Share {
    pub(crate) fn set_record(&self, bytes: usize) {
        let mut held = self.held.lock();
        held.record = bytes as u64;
        held.count();
    }

    pub(crate) fn set_log(&self, bytes: u64) {
        let mut held = self.held.lock();
        held.log = bytes;
        held.count();
    }

    pub(crate) fn journal(&self, bytes: usize) -> JournalShare {
        let bytes = bytes as u64;
        JournalShare(self.stored.bytes.portion(&self.principal, bytes))
    }

    pub(crate) fn check(&self) -> Result<(), GatewayError> {
        self.stored.check(&self.principal)
    }
}

impl HeldBytes {
    fn count(&mut self) {
        self.portion.resize(self.record.saturating_add(self.log));
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
        assert!(stored.bytes.is_empty());
    }

    #[test]
    fn what_several_set_at_once_is_given_back_whole() {
        let stored = stored();
        let share = stored.share(&Principal::new("alice"), 1);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for turn in 0..5_000 {
                        share.set_log(turn % 50);
                        assert_eq!(stored.check(&Principal::new("bob")), Ok(()));
                    }
                });
            }
        });
        drop(share);
        assert!(stored.bytes.is_empty());
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
