//! The way of answers to a worker, which may break and be mended while one is on it.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use parking_lot::Mutex;
use shoal_ports::{Answered, AskId, CallControl, answered};
use shoal_protocol::Outcome;
use tokio::sync::watch;

/// How long after an answer was not taken it may still turn out that the way had broken. The reader of the
/// events sees that at about the same time as the answer's sender.
const GRACE: Duration = Duration::from_millis(500);

/// The control of where a call runs, and the answers that have not certainly arrived there.
///
/// An answer whose arrival is not known is sent again when the call is attached to again; the worker ignores
/// one that it has.
pub(super) struct Way {
    state: Mutex<State>,
    condition: watch::Sender<Condition>,
}

struct State {
    control: Arc<dyn CallControl>,
    /// How often the control has been replaced.
    turn: u64,
    /// Whether answers wait for the next control.
    broken: bool,
    unsettled: Vec<Unsettled>,
    /// Numbers the answers.
    count: u64,
}

struct Unsettled {
    number: u64,
    ask: AskId,
    answer: Outcome,
    /// The turn in which it was last sent.
    turn: u64,
    /// Its fate in that turn; `None` while somebody waits for it, and while the way is broken.
    arriving: Option<Answered>,
}

/// What those who wait for an answer's arrival have to know.
#[derive(Clone, Copy, Default)]
struct Condition {
    turn: u64,
    broken: bool,
    /// Nobody will mend it.
    closed: bool,
}

impl Way {
    pub(super) fn new(control: Arc<dyn CallControl>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                control,
                turn: 0,
                broken: false,
                unsettled: Vec::new(),
                count: 0,
            }),
            condition: watch::Sender::new(Condition::default()),
        })
    }

    pub(super) fn control(&self) -> Arc<dyn CallControl> {
        self.state.lock().control.clone()
    }

    /// Sends an answer, now or when the way is mended.
    pub(super) fn answer(self: &Arc<Self>, ask: AskId, answer: Outcome) -> Answered {
        let (number, turn, control, broken) = {
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
            (number, turn, state.control.clone(), state.broken)
        };
        if !broken {
            let mut arriving = control.answer(ask, answer);
            match (&mut arriving).now_or_never() {
                Some(true) => {
                    self.settle(number);
                    return answered(true);
                }
                Some(false) => self.sent(number, turn, answered(false)),
                None => self.sent(number, turn, arriving),
            }
        }
        Box::pin(arrival(Arc::clone(self), number))
    }

    /// Goes on with another control: of the same run of the call, where answers that may be lost are sent
    /// again, or of another one.
    pub(super) fn follow(&self, control: Arc<dyn CallControl>, same_run: bool) {
        let (turn, again) = {
            let mut state = self.state.lock();
            state.control = control.clone();
            state.turn += 1;
            state.broken = false;
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
        // Last, so that whoever wakes finds what was sent.
        self.condition.send_modify(|condition| {
            condition.turn = turn;
            condition.broken = false;
        });
    }

    /// The control reaches nobody any more; another one comes, or [`Way::closed`].
    pub(super) fn broken(&self) {
        self.state.lock().broken = true;
        self.condition.send_modify(|it| it.broken = true);
    }

    /// No other control will come.
    pub(super) fn closed(&self) {
        self.condition.send_modify(|it| it.closed = true);
    }

    fn sent(&self, number: u64, turn: u64, arriving: Answered) {
        let mut state = self.state.lock();
        let mut unsettled = state.unsettled.iter_mut();
        // In another turn it has been sent once more already.
        let is_it = |it: &&mut Unsettled| it.number == number && it.turn == turn;
        if let Some(answer) = unsettled.find(is_it) {
            answer.arriving = Some(arriving);
        }
    }

    fn settle(&self, number: u64) {
        let mut state = self.state.lock();
        state.unsettled.retain(|answer| answer.number != number);
    }

    /// The turn in which an answer was last sent, and its fate; `None` when it is settled.
    fn take(&self, number: u64) -> Option<(u64, Option<Answered>)> {
        let mut state = self.state.lock();
        let mut unsettled = state.unsettled.iter_mut();
        let answer = unsettled.find(|answer| answer.number == number)?;
        Some((answer.turn, answer.arriving.take()))
    }
}

/// Waits until an answer has arrived, or never will.
async fn arrival(way: Arc<Way>, number: u64) -> bool {
    let mut condition = way.condition.subscribe();
    loop {
        let Some((turn, arriving)) = way.take(number) else {
            return false;
        };
        if arriving.is_none() && condition.borrow().turn < turn {
            // It is just being sent again.
            let sent = condition.wait_for(|it| it.turn >= turn).await;
            drop(sent);
            continue;
        }
        let mended = |it: &Condition| it.turn > turn;
        if let Some(arriving) = arriving {
            let arrived = tokio::select! {
                biased;
                arrived = arriving => arrived,
                _ = condition.wait_for(mended) => false,
            };
            if arrived {
                way.settle(number);
                return true;
            }
        }
        // Nobody waits for it, or the way broke. In the latter case it is mended, or given up.
        let breaks = |it: &Condition| it.turn > turn || it.broken || it.closed;
        let breaks = condition.wait_for(breaks);
        if tokio::time::timeout(GRACE, breaks).await.is_err() {
            way.settle(number);
            return false;
        }
        let decided = condition.wait_for(|it| mended(it) || it.closed).await;
        if !decided.is_ok_and(|it| mended(&it)) {
            way.settle(number);
            return false;
        }
    }
}

#[cfg(test)]
mod tests;
