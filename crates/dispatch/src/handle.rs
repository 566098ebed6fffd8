mod answer_relay;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use shoal_ports::{Answered, AskId, Bound, CallControl, answered};
use shoal_protocol::Outcome;
use tokio::sync::Notify;

use answer_relay::AnswerRelay;

use crate::bridge::Allowance;

/// Passes cancellations and answers to the call's current worker, and collects answers to Shoal's
/// own questions.
pub(crate) struct CallHandle {
    state: Mutex<HandleState>,
    changed: Notify,
    /// Where a call without a session first ran for this caller.
    bound: OnceLock<Bound>,
    /// The call's time limit, if open questions pause it.
    allowance: OnceLock<Arc<Allowance>>,
}

struct HandleState {
    /// `None` if another reader has taken over the call.
    below: Option<Arc<AnswerRelay>>,
    /// The offset of this round's ask ids, which is subtracted before an answer goes to the worker.
    base: u64,
    round: Option<AskRound>,
    cancelled: Option<String>,
}

struct AskRound {
    open: Vec<AskId>,
    answers: HashMap<AskId, Outcome>,
}

#[derive(Debug)]
pub(crate) struct CancelledByCaller;

impl CallHandle {
    pub(crate) fn new(below: Arc<dyn CallControl>) -> Arc<Self> {
        Self::along(AnswerRelay::new(below))
    }

    fn along(relay: Arc<AnswerRelay>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(HandleState {
                below: Some(relay),
                base: 0,
                round: None,
                cancelled: None,
            }),
            changed: Notify::new(),
            bound: OnceLock::new(),
            allowance: OnceLock::new(),
        })
    }

    pub(crate) fn runs_at(&self, bound: Bound) {
        let _ = self.bound.set(bound);
    }

    pub(crate) fn counts_by(&self, allowance: Arc<Allowance>) {
        let _ = self.allowance.set(allowance);
    }

    /// Controls the same run over a new path, and repeats a cancellation and unconfirmed answers.
    pub(crate) fn reattached(&self, below: Arc<dyn CallControl>) {
        self.follow(below, true);
    }

    /// Controls another run or round. Drops the old run's answers, but repeats a cancellation.
    pub(crate) fn restarted(&self, below: Arc<dyn CallControl>) {
        self.follow(below, false);
    }

    fn follow(&self, below: Arc<dyn CallControl>, same_run: bool) {
        let (relay, cancelled) = {
            let state = self.state.lock();
            (state.below.clone(), state.cancelled.clone())
        };
        if let Some(relay) = relay {
            relay.follow(below.clone(), same_run);
        }
        if let Some(reason) = cancelled {
            below.cancel(&reason);
        }
    }

    /// Answers on their way stay unconfirmed.
    pub(crate) fn superseded(&self) {
        if let Some(relay) = self.state.lock().below.take() {
            relay.closed();
        }
    }

    pub(crate) fn closed(&self) {
        if let Some(relay) = &self.state.lock().below {
            relay.closed();
        }
    }

    pub(crate) fn rebase(&self, base: u64) {
        self.state.lock().base = base;
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.state.lock().cancelled.is_some()
    }

    pub(crate) fn why_cancelled(&self) -> Option<String> {
        self.state.lock().cancelled.clone()
    }

    /// Cancel safe.
    pub(crate) async fn cancelled(&self) {
        while !self.is_cancelled() {
            self.changed.notified().await;
        }
    }

    /// `None` if this caller has cancelled, or if another reader has the call.
    pub(crate) fn hand_over(&self) -> Option<Arc<Self>> {
        let mut state = self.state.lock();
        let below = state.below.take()?;
        state.cancelled.is_none().then(|| Self::along(below))
    }

    pub(crate) fn open_round(&self, asks: Vec<AskId>) {
        self.state.lock().round = Some(AskRound {
            open: asks,
            answers: HashMap::new(),
        });
    }

    /// Cancel safe.
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
            self.changed.notified().await;
        }
    }
}

impl CallControl for CallHandle {
    fn answer(&self, ask: AskId, answer: Outcome) -> Answered {
        if let Some(allowance) = self.allowance.get() {
            allowance.answered(ask);
        }
        let (below, inner) = {
            let mut state = self.state.lock();
            if let Some(round) = &mut state.round {
                let Some(at) = round.open.iter().position(|open| *open == ask) else {
                    return answered(false);
                };
                round.open.swap_remove(at);
                round.answers.insert(ask, answer);
                if round.open.is_empty() {
                    self.changed.notify_one();
                }
                return answered(true);
            }
            let inner = ask.0.checked_sub(state.base);
            (state.below.clone(), inner)
        };
        match (below, inner) {
            (Some(below), Some(inner)) => below.answer(AskId(inner), answer),
            _ => answered(false),
        }
    }

    fn cancel(&self, reason: &str) {
        let below = {
            let mut state = self.state.lock();
            let Some(below) = state.below.clone() else {
                return;
            };
            if state.cancelled.is_some() {
                return;
            }
            state.cancelled = Some(reason.to_owned());
            below
        };
        self.changed.notify_one();
        below.control().cancel(reason);
    }

    fn bound(&self) -> BoxFuture<'static, Option<Bound>> {
        let bound = self.bound.get().cloned();
        let below = self.state.lock().below.clone();
        Box::pin(async move {
            if let Some(relay) = below {
                relay.settled().await;
            }
            bound
        })
    }

    fn over(&self) -> Option<BoxFuture<'static, ()>> {
        let below = self.state.lock().below.clone()?;
        below.control().over()
    }

    fn is_replaced(&self) -> bool {
        let below = self.state.lock().below.clone();
        below.is_none_or(|relay| relay.control().is_replaced())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::FutureExt as _;
    use shoal_ports::{Answered, AskId, CallControl};
    use shoal_protocol::{Outcome, RawJson};

    use super::CallHandle;

    struct Silent;

    impl CallControl for Silent {
        fn answer(&self, _: AskId, _: Outcome) -> Answered {
            Box::pin(std::future::pending())
        }

        fn cancel(&self, _: &str) {}
    }

    #[test]
    fn no_answer_is_waited_for_when_somebody_else_steers_the_call() {
        let handle = CallHandle::new(Arc::new(Silent));
        let answer = || handle.answer(AskId(1), Outcome::Result(RawJson::from_static("{}")));
        let mut arriving = answer();
        assert_eq!((&mut arriving).now_or_never(), None);
        handle.superseded();
        assert_eq!(arriving.now_or_never(), Some(false));
        assert_eq!(answer().now_or_never(), Some(false));
    }
}
