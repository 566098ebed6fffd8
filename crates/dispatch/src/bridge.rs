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
mod request;
mod retry;

use std::sync::Arc;

use shoal_ports::{Answered, AskId, CallControl, CallEvent, CallEvents, CallOutcome, RunningCall};
use shoal_protocol::Outcome;

pub(crate) use legacy::{LegacyBridge, Purpose};
pub(crate) use modern::ModernBridge;
pub(crate) use parking::ParkingLot;
pub(crate) use request::Modern;
pub(crate) use retry::{Continued, continued};

use crate::line::Line;

/// A call as its caller sees it.
pub(crate) trait Bridge: Send + 'static {
    /// The next event; `None` after `Finished`.
    fn next(&mut self) -> impl Future<Output = Option<CallEvent>> + Send;
}

/// Runs the bridge over a line inside the reader of its events.
pub(crate) fn running<B: Bridge>(line: Line, bridge: impl FnOnce(Line) -> B) -> RunningCall {
    let worker = line.worker().clone();
    let control: Arc<dyn CallControl> = line.steering.clone();
    // Boxed, because the state moves in and out of the stream with every event.
    let bridge = Box::new(bridge(line));
    let events = futures::stream::unfold(bridge, |mut bridge| async move {
        let event = bridge.next().await?;
        Some((event, bridge))
    });
    RunningCall {
        events: CallEvents::from_stream(events),
        control,
        worker: Some(worker),
    }
}

/// A call that the dispatcher answers itself.
pub(crate) fn answered(outcome: CallOutcome) -> RunningCall {
    struct Ended;
    impl CallControl for Ended {
        fn answer(&self, _: AskId, _: Outcome) -> Answered {
            shoal_ports::answered(false)
        }
        fn cancel(&self, _: &str) {}
    }
    RunningCall {
        events: CallEvents::finished(outcome),
        control: Arc::new(Ended),
        worker: None,
    }
}
