//! The bridge between the protocol's eras: how a caller of either era sees a call of either kind.
//!
//! | client ↓ backend → | asks mid-call | returns `InputRequiredResult` |
//! |---|---|---|
//! | legacy | passed on | [`legacy`]: asked in events, then called again |
//! | modern | [`modern`]: parked in the [`parking`] lot | [`modern`]: passed on, its state sealed |

mod input;
mod legacy;
mod modern;
mod parking;
mod resume;

use std::sync::Arc;

use shoal_ports::{CallControl, CallEvent, CallEventKind, CallEvents, CallOutcome, RunningCall};

pub(crate) use legacy::{LegacyBridge, Purpose};
pub(crate) use modern::{Modern, ModernBridge};
pub(crate) use parking::ParkingLot;
pub(crate) use resume::{Resumed, resume};

use crate::line::Line;

/// A call as its caller sees it.
pub(crate) trait Bridge: Send + 'static {
    /// The next event; `None` after `Finished`.
    fn next(&mut self) -> impl Future<Output = Option<CallEventKind>> + Send;
}

/// Runs the bridge over a line inside the reader of its events; they count on from `after`.
pub(crate) fn running<B: Bridge>(
    line: Line,
    after: u64,
    bridge: impl FnOnce(Line) -> B,
) -> RunningCall {
    let worker = line.worker().cloned();
    let control: Arc<dyn CallControl> = line.steering.clone();
    let bridge = bridge(line);
    // Boxed, because the state moves in and out of the stream with every event.
    let state = (Box::new(bridge), after);
    let events = futures::stream::unfold(state, |(mut bridge, sequence)| async move {
        let kind = bridge.next().await?;
        let sequence = sequence + 1;
        Some((CallEvent { sequence, kind }, (bridge, sequence)))
    });
    RunningCall {
        events: CallEvents::from_stream(events),
        control,
        worker,
    }
}

/// A call that the dispatcher answers itself.
pub(crate) fn answered(outcome: CallOutcome) -> RunningCall {
    struct Ended;
    impl CallControl for Ended {
        fn answer(&self, _: shoal_ports::AskId, _: shoal_protocol::Outcome) -> bool {
            false
        }
        fn cancel(&self, _: &str) {}
    }
    RunningCall {
        events: CallEvents::finished(outcome),
        control: Arc::new(Ended),
        worker: None,
    }
}
