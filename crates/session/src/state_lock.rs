//! A lock that drops its content when its holder panics.

use std::panic::{AssertUnwindSafe, catch_unwind};

use parking_lot::Mutex;

pub(crate) struct StateLock<T>(Mutex<Option<Box<T>>>);

impl<T> StateLock<T> {
    pub(crate) fn new(state: Box<T>) -> Self {
        Self(Mutex::new(Some(state)))
    }

    /// `None` if the content is gone, or if `act` panics.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut state = self.0.lock();
        let there = state.as_deref_mut()?;
        let acted = catch_unwind(AssertUnwindSafe(|| act(there)));
        if acted.is_err() {
            let broken = state.take();
            drop(state);
            drop(broken);
        }
        acted.ok()
    }

    pub(crate) fn forget(&self) {
        let state = self.0.lock().take();
        drop(state);
    }

    pub(crate) fn is_forgotten(&self) -> bool {
        self.0.lock().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::StateLock;

    #[test]
    fn a_panic_costs_the_state_and_not_who_used_it() {
        let lock = StateLock::new(Box::new(1));
        assert_eq!(lock.with(|state| *state), Some(1));
        let panicked: Option<()> = lock.with(|_| panic!("this panic is part of the test"));
        assert_eq!(panicked, None);
        assert!(lock.is_forgotten());
        assert_eq!(lock.with(|state| *state), None);
    }
}
