//! Writing a history down.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use super::{Entry, History, Step};

/// Writes down what a client does and sees. Clones write into the same history.
#[derive(Clone, Debug)]
pub struct Recorder {
    began: Instant,
    history: Arc<Mutex<History>>,
}

impl Recorder {
    /// An empty history, in a run that began then.
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

    /// Writes down a step.
    pub fn note(&self, step: Step) {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        // With the lock held, so that the entries are in the order of their times.
        let at = self.began.elapsed();
        history.entries.push(Entry { at, step });
    }

    /// What is written so far.
    #[must_use]
    pub fn history(&self) -> History {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.clone()
    }
}
