use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::Shared;
use parking_lot::Mutex;
use shoal_ports::{Answered, AskId, CallControl, answered};
use shoal_protocol::Outcome;
use tokio::sync::watch;

/// Sends answers to a call's current control. After Shoal reattaches, repeats the unconfirmed ones, because a worker
/// ignores an answer that it knows.
pub(super) struct AnswerRelay {
    state: Mutex<RelayState>,
    condition: watch::Sender<Condition>,
}

struct RelayState {
    control: Arc<dyn CallControl>,
    turn: u64,
    unsettled: Vec<Unsettled>,
    count: u64,
}

struct Unsettled {
    number: u64,
    ask: AskId,
    answer: Outcome,
    turn: u64,
    /// The worker's confirmation, which does not come if the path is broken. `None` while Shoal sends the answer.
    arriving: Option<Shared<Answered>>,
}

#[derive(Clone, Copy, Default)]
struct Condition {
    turn: u64,
    closed: bool,
}

impl AnswerRelay {
    pub(super) fn new(control: Arc<dyn CallControl>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(RelayState {
                control,
                turn: 0,
                unsettled: Vec::new(),
                count: 0,
            }),
            condition: watch::Sender::new(Condition::default()),
        })
    }

    pub(super) fn control(&self) -> Arc<dyn CallControl> {
        self.state.lock().control.clone()
    }

    pub(super) fn answer(self: &Arc<Self>, ask: AskId, answer: Outcome) -> Answered {
        let (number, turn, control) = {
            let mut state = self.state.lock();
            state.count += 1;
            let (number, turn) = (state.count, state.turn);
            state.unsettled.push(Unsettled {
                number,
                ask,
                answer: answer.clone(),
                turn,
                arriving: None,
            });
            (number, turn, state.control.clone())
        };
        let mut arriving = control.answer(ask, answer);
        if let Some(open) = (&mut arriving).now_or_never() {
            self.settle(number);
            return answered(open);
        }
        self.sent(number, turn, arriving);
        Box::pin(arrival(Arc::clone(self), number))
    }

    /// If the control belongs to the same run, repeats unconfirmed answers.
    pub(super) fn follow(&self, control: Arc<dyn CallControl>, same_run: bool) {
        let (turn, again) = {
            let mut state = self.state.lock();
            state.control = control.clone();
            state.turn += 1;
            if !same_run {
                state.unsettled.clear();
            }
            let turn = state.turn;
            for answer in &mut state.unsettled {
                answer.turn = turn;
                answer.arriving = None;
            }
            let again: Vec<_> = state
                .unsettled
                .iter()
                .map(|it| (it.number, it.ask, it.answer.clone()))
                .collect();
            (turn, again)
        };
        for (number, ask, answer) in again {
            let arriving = control.answer(ask, answer);
            self.sent(number, turn, arriving);
        }
        // Set last, so that a woken waiter finds the answers sent.
        self.condition.send_modify(|it| it.turn = turn);
    }

    /// Cancel safe.
    pub(super) async fn settled(self: Arc<Self>) {
        while let Some(number) = self.oldest() {
            arrival(Arc::clone(&self), number).await;
        }
    }

    pub(super) fn closed(&self) {
        self.condition.send_modify(|it| it.closed = true);
    }

    fn sent(&self, number: u64, turn: u64, arriving: Answered) {
        let mut state = self.state.lock();
        let mut unsettled = state.unsettled.iter_mut();
        // If the turn has passed, a later turn has repeated the answer.
        let is_it = |it: &&mut Unsettled| it.number == number && it.turn == turn;
        if let Some(answer) = unsettled.find(is_it) {
            answer.arriving = Some(arriving.shared());
        }
    }

    fn settle(&self, number: u64) {
        let mut state = self.state.lock();
        state.unsettled.retain(|answer| answer.number != number);
    }

    fn fate(&self, number: u64) -> Option<(u64, Option<Shared<Answered>>)> {
        let state = self.state.lock();
        let mut unsettled = state.unsettled.iter();
        let answer = unsettled.find(|answer| answer.number == number)?;
        Some((answer.turn, answer.arriving.clone()))
    }

    fn oldest(&self) -> Option<u64> {
        let state = self.state.lock();
        state.unsettled.first().map(|answer| answer.number)
    }
}

async fn arrival(relay: Arc<AnswerRelay>, number: u64) -> bool {
    let mut condition = relay.condition.subscribe();
    while let Some((turn, arriving)) = relay.fate(number) {
        let Some(arriving) = arriving else {
            let sent = condition.wait_for(|it| it.turn >= turn).await;
            drop(sent);
            continue;
        };
        let mended = |it: &Condition| it.turn > turn || it.closed;
        let open = tokio::select! {
            biased;
            open = arriving => open,
            now = condition.wait_for(mended) => match now {
                Ok(now) if now.turn > turn => continue,
                _ => false,
            },
        };
        relay.settle(number);
        return open;
    }
    false
}

#[cfg(test)]
mod tests;
