//! Limits and counts the calls that wait for a worker. Autoscalers read the count.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shoal_ports::{CallFailure, Principal};

use crate::config::ScaleToZero;
use crate::shares::{CheckShares, Full};

const RETRY_AFTER: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(crate) struct Awaiting(Arc<Mutex<HashMap<Arc<str>, CheckShares>>>);

/// Dropping the place frees it.
pub(crate) struct AwaitingCall {
    all: Arc<Mutex<HashMap<Arc<str>, CheckShares>>>,
    pool: Arc<str>,
    principal: Principal,
}

impl Awaiting {
    /// Fails if too many calls wait, in total or of this principal.
    pub(crate) fn enter(
        &self,
        pool: &Arc<str>,
        principal: &Principal,
        limits: &ScaleToZero,
    ) -> Result<AwaitingCall, CallFailure> {
        let mut all = self.0.lock();
        let waiting = all.entry(Arc::clone(pool)).or_default();
        let entered = waiting.enter(principal, limits.calls, limits.calls_per_principal);
        if let Err(full) = entered {
            if waiting.is_empty() {
                all.remove(pool);
            }
            let (count, what) = match full {
                Full::All(count) => (count, "calls"),
                Full::OfPrincipal(count) => (count, "calls of one caller"),
            };
            return Err(CallFailure::Overloaded {
                reason: format!("{count} {what} wait for the pool {pool} to have a worker"),
                retry_after: RETRY_AFTER,
            });
        }
        Ok(AwaitingCall {
            all: Arc::clone(&self.0),
            pool: Arc::clone(pool),
            principal: principal.clone(),
        })
    }

    pub(crate) fn has(&self, pool: &str, principal: &Principal) -> bool {
        let all = self.0.lock();
        all.get(pool)
            .is_some_and(|waiting| waiting.of(principal) > 0)
    }

    pub(crate) fn of(&self, pool: &str) -> usize {
        self.0.lock().get(pool).map_or(0, CheckShares::len)
    }
}

impl Drop for AwaitingCall {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if let Some(waiting) = all.get_mut(&self.pool) {
            waiting.leave(&self.principal);
            if waiting.is_empty() {
                all.remove(&self.pool);
            }
        }
    }
}

pub(crate) fn nobody_came(pool: &str, waited: Duration) -> CallFailure {
    CallFailure::NotReady {
        reason: format!(
            "the pool {pool} had no worker, and none came within {} s",
            waited.as_secs_f64().round()
        ),
        retry_after: RETRY_AFTER,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use shoal_ports::{CallFailure, Principal};

    use super::Awaiting;
    use crate::config::ScaleToZero;

    #[test]
    fn calls_wait_within_limits_and_leave_nothing() {
        let awaiting = Awaiting::default();
        let limits = ScaleToZero {
            calls: 3,
            calls_per_principal: 2,
            ..ScaleToZero::default()
        };
        let pool: Arc<str> = "files".into();
        let [one, other] = ["one", "other"].map(Principal::new);
        let enter = |who: &Principal| awaiting.enter(&pool, who, &limits);
        let calls = [&one, &one, &other].map(|who| enter(who).unwrap());
        assert!(matches!(enter(&other), Err(CallFailure::Overloaded { .. })));
        assert_eq!((awaiting.of("files"), awaiting.of("none")), (3, 0));
        drop(calls);
        assert!(awaiting.0.lock().is_empty());
        let _calls = [&one, &one].map(|who| enter(who).unwrap());
        let Err(CallFailure::Overloaded { reason, .. }) = enter(&one) else {
            panic!("one caller has a share");
        };
        assert!(reason.contains("one caller"), "{reason}");
        assert!(enter(&other).is_ok());
    }
}
