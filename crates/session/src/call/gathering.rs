//! Gathers a burst of a call's events into few appends.

use std::time::Duration;

use futures::FutureExt as _;
use shoal_ports::{CallEvent, CallEventKind, CallEvents};
use tokio::task::yield_now;
use tokio::time::Instant;

/// How often the gathering yields to the tool in vain before it ends.
const TURNS: u32 = 2;
/// How long the first gathered event may wait for others on a busy node.
const PATIENCE: Duration = Duration::from_millis(5);

/// Every append wakes a reader and a connection, so appending each event of a burst would be costly. After the first
/// event, the gathering yields to the tool, which may send more. On an idle node yielding takes microseconds and no
/// timer.
pub(super) struct Gathering {
    most: usize,
    taken: usize,
    until: Option<Instant>,
    urgent: bool,
}

impl Gathering {
    pub(super) fn begin(most: usize) -> Self {
        Self {
            most,
            taken: 0,
            until: None,
            urgent: false,
        }
    }

    /// After an event other than a notification, the gathering does not wait, but still takes events that are ready.
    pub(super) fn took(&mut self, kind: &CallEventKind) {
        self.taken += 1;
        self.urgent |= !matches!(kind, CallEventKind::Notification { .. });
    }

    /// Returns `Some(None)` if the call has no more events, `None` if the gathering has ended. Cancellation safe.
    pub(super) async fn next(&mut self, events: &mut CallEvents) -> Option<Option<CallEvent>> {
        if self.taken >= self.most {
            return None;
        }
        let mut turns = TURNS;
        loop {
            if let Some(next) = events.next().now_or_never() {
                return Some(next);
            }
            if self.urgent || turns == 0 {
                return None;
            }
            let now = Instant::now();
            if now >= *self.until.get_or_insert(now + PATIENCE) {
                return None;
            }
            turns -= 1;
            yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;
    use shoal_ports::{CallEvent, CallEventKind, CallEvents};
    use shoal_protocol::Method;
    use tokio::sync::mpsc;

    use super::Gathering;

    fn report() -> CallEventKind {
        CallEventKind::Notification {
            method: Method::Progress,
            params: None,
        }
    }

    fn channel() -> (mpsc::Sender<CallEvent>, CallEvents) {
        let (sender, receiver) = mpsc::channel(8);
        (sender, receiver.into())
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_within_a_turn_goes_along() {
        let (sender, mut events) = channel();
        let mut gathering = Gathering::begin(8);
        gathering.took(&report());
        let sending = tokio::spawn(async move {
            let (sequence, kind) = (2, report());
            sender.send(CallEvent { sequence, kind }).await.unwrap();
            sender
        });
        let more = gathering.next(&mut events).await;
        assert_eq!(more.flatten().map(|event| event.sequence), Some(2));
        gathering.took(&report());
        let sender = sending.await.unwrap();
        assert!(gathering.next(&mut events).await.is_none(), "nothing came");
        drop(sender);
        assert!(matches!(gathering.next(&mut events).await, Some(None)));
    }

    #[tokio::test]
    async fn what_somebody_waits_for_lets_nobody_else_run() {
        let (_sender, mut events) = channel();
        let mut gathering = Gathering::begin(8);
        gathering.took(&report());
        assert!(gathering.next(&mut events).now_or_never().is_none());
        let retry = Duration::ZERO;
        gathering.took(&CallEventKind::CloseStream { retry });
        let next = gathering.next(&mut events).now_or_never();
        assert!(matches!(next, Some(None)));
    }

    #[tokio::test(start_paused = true)]
    async fn how_long_others_are_waited_for_is_bounded() {
        let (sender, mut events) = channel();
        let mut gathering = Gathering::begin(8);
        gathering.took(&report());
        assert!(gathering.next(&mut events).await.is_none());
        tokio::time::advance(super::PATIENCE).await;
        let sending = tokio::spawn(async move {
            let (sequence, kind) = (2, report());
            sender.send(CallEvent { sequence, kind }).await.unwrap();
        });
        let next = gathering.next(&mut events).now_or_never();
        assert!(matches!(next, Some(None)), "it would have come in a turn");
        sending.await.unwrap();
        assert!(gathering.next(&mut events).await.flatten().is_some());
    }

    #[tokio::test]
    async fn there_are_never_more_than_wanted() {
        let (sender, mut events) = channel();
        let (sequence, kind) = (2, report());
        sender.send(CallEvent { sequence, kind }).await.unwrap();
        let mut gathering = Gathering::begin(1);
        gathering.took(&report());
        assert!(gathering.next(&mut events).await.is_none());
    }
}
