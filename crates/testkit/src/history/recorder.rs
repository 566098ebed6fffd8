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
        self.look(Clone::clone)
    }

    /// Reads the history so far.
    pub fn look<T>(&self, read: impl FnOnce(&History) -> T) -> T {
        read(&self.history.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the number of the client.
    #[must_use]
    pub fn client(&self) -> usize {
        self.look(|history| history.client)
    }
}
