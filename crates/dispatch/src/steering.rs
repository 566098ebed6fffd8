//! The caller's end of a call whose worker may change beneath it.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use shoal_ports::{AskId, CallControl};
use shoal_protocol::Outcome;
use tokio::sync::Notify;

/// Passes cancellations and answers on to wherever the call runs now, and collects the answers to
/// questions that Shoal itself put.
pub(crate) struct Steering {
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    /// Where the call runs; `None` when it has ended.
    below: Option<Arc<dyn CallControl>>,
    /// What is subtracted from an ask's id on its way down: every round has its own range.
    base: u64,
    round: Option<Round>,
    cancelled: Option<String>,
}

/// Questions of Shoal's own and the answers that have come.
struct Round {
    open: Vec<AskId>,
    answers: HashMap<AskId, Outcome>,
}

/// Why there will be no answers.
#[derive(Debug)]
pub(crate) struct CancelledByCaller;

impl Steering {
    pub(crate) fn new(below: Arc<dyn CallControl>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                below: Some(below),
                base: 0,
                round: None,
                cancelled: None,
            }),
            changed: Notify::new(),
        })
    }

    /// Points to where the call runs now; a cancellation that came before goes on there.
    pub(crate) fn follow(&self, below: Arc<dyn CallControl>) {
        let cancelled = {
            let mut state = self.state.lock();
            state.below = Some(below.clone());
            state.cancelled.clone()
        };
        if let Some(reason) = cancelled {
            below.cancel(&reason);
        }
    }

    /// Makes the worker's ask ids begin at `base` for the caller.
    pub(crate) fn rebase(&self, base: u64) {
        self.state.lock().base = base;
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.state.lock().cancelled.is_some()
    }

    /// Ends this caller's hold on the call and gives it to a next one, unless the caller has cancelled.
    pub(crate) fn hand_over(&self) -> Option<Arc<Self>> {
        let mut state = self.state.lock();
        let below = state.below.take()?;
        state.cancelled.is_none().then(|| Self::new(below))
    }

    /// Opens a round of questions.
    pub(crate) fn open_round(&self, asks: Vec<AskId>) {
        self.state.lock().round = Some(Round {
            open: asks,
            answers: HashMap::new(),
        });
    }

    /// Waits until every question of the round has its answer. Cancellation safe.
    pub(crate) async fn answers(&self) -> Result<HashMap<AskId, Outcome>, CancelledByCaller> {
        loop {
            {
                let mut state = self.state.lock();
                if state.cancelled.is_some() {
                    return Err(CancelledByCaller);
                }
                match &state.round {
                    Some(round) if !round.open.is_empty() => {}
                    _ => return Ok(state.round.take().map(|r| r.answers).unwrap_or_default()),
                }
            }
            // A notification between the look and the wait leaves a permit behind.
            self.changed.notified().await;
        }
    }
}

impl CallControl for Steering {
    fn answer(&self, ask: AskId, answer: Outcome) -> bool {
        let (below, inner) = {
            let mut state = self.state.lock();
            if let Some(round) = &mut state.round {
                let Some(at) = round.open.iter().position(|open| *open == ask) else {
                    return false;
                };
                round.open.swap_remove(at);
                round.answers.insert(ask, answer);
                if round.open.is_empty() {
                    self.changed.notify_one();
                }
                return true;
            }
            let inner = ask.0.checked_sub(state.base);
            (state.below.clone(), inner)
        };
        match (below, inner) {
            (Some(below), Some(inner)) => below.answer(AskId(inner), answer),
            _ => false,
        }
    }

    fn cancel(&self, reason: &str) {
        let below = {
            let mut state = self.state.lock();
            if state.below.is_none() || state.cancelled.is_some() {
                return;
            }
            state.cancelled = Some(reason.to_owned());
            state.below.clone()
        };
        self.changed.notify_one();
        if let Some(below) = below {
            below.cancel(reason);
        }
    }
}
