use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use super::{Entry, History, Step};

/// Records a client's steps. Clones append to the same history.
#[derive(Clone, Debug)]
pub struct Recorder {
    began: Instant,
    history: Arc<Mutex<History>>,
}

impl Recorder {
    /// Creates an empty history.
    #[must_use]
    pub fn new(client: usize, began: Instant) -> Self {
        let history = History {
            client,
            entries: Vec::new(),
        };
        Self {
            began,
            history: Arc::new(Mutex::new(history)),
        }
    }

    /// Appends a step.
    pub fn note(&self, step: Step) {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock, so that the entries are in order.
        let at = self.began.elapsed();
        history.entries.push(Entry { at, step });
    }

    /// Returns a copy of the history so far.
    #[must_use]
    pub fn history(&self) -> History {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.clone()
    }
}
