//! Bridges the protocol's eras.
//!
//! | client ↓ backend → | asks during the call | returns `InputRequiredResult` |
//! |---|---|---|
//! | legacy | passes the question on | [`legacy`]: asks the client, then calls the backend again |
//! | modern | [`modern`]: parks the call in the [`parking`] lot | [`modern`]: passes the result on with a sealed state |

mod allowance;
mod input;
mod legacy;
mod modern;
mod parking;
mod request;
mod result;
mod retry;

use std::sync::Arc;

use shoal_ports::{CallControl, CallEvent, CallEvents, CallFailure, CallOutcome, RunningCall};

pub(crate) use allowance::Allowance;
pub(crate) use input::GivenAnswers;
pub(crate) use legacy::{LegacyBridge, Purpose};
pub(crate) use modern::{ModernBridge, answered_before};
pub(crate) use parking::ParkingLot;
pub(crate) use request::ModernRequest;
pub(crate) use result::complete;
pub(crate) use retry::{Continued, continued, may_continue, not_waiting};

use crate::worker_call::WorkerCall;

pub(crate) trait Bridge: Send + 'static {
    /// Returns `None` after `Finished`.
    fn next(&mut self) -> impl Future<Output = Option<CallEvent>> + Send;
}

pub(crate) fn running<B: Bridge>(
    worker_call: WorkerCall,
    bridge: impl FnOnce(WorkerCall) -> B,
) -> RunningCall {
    let worker = worker_call.worker().clone();
    let control: Arc<dyn CallControl> = worker_call.handle.clone();
    let bridge = Box::new(bridge(worker_call));
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

pub(crate) fn answered(outcome: CallOutcome) -> RunningCall {
    RunningCall::ended(outcome, None)
}

pub(crate) fn instead(outcome: CallOutcome) -> Result<RunningCall, CallFailure> {
    match outcome {
        CallOutcome::Failed(failure) => Err(failure),
        outcome => Ok(answered(outcome)),
    }
}
