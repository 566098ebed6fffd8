//! Until when a worker runs a call, by whether the call may wait for a person.

use shoal_ports::{Call, SessionId};
use shoal_protocol::{Era, RawJson, RawObject};
use tokio::time::Instant;

use crate::config::Config;

/// Until when a worker runs a call. One that may wait for a person, parked or as a task, outlives its own time: whoever
/// reads it sees to that, and the worker's deadline must leave room.
pub(crate) fn worker_deadline(call: &Call, config: &Config) -> Instant {
    match may_be_parked(call) || is_askable_task(call) {
        true => call.deadline + config.parking_time,
        false => call.deadline,
    }
}

/// Whether it is the call of a task whose client can be asked.
pub(crate) fn is_askable_task(call: &Call) -> bool {
    let session = call.caller.session.as_ref();
    session.is_some_and(SessionId::is_task) && can_be_asked(&call.caller.capabilities)
}

/// Whether a call may have to wait for its client without a request of it.
pub(crate) fn may_be_parked(call: &Call) -> bool {
    call.caller.revision.era() == Era::Modern
        && call.method.may_require_input()
        && can_be_asked(&call.caller.capabilities)
}

/// Whether a client declared anything that a call could ask it for.
fn can_be_asked(capabilities: &RawJson) -> bool {
    RawObject::of(capabilities).is_some_and(|declared| {
        ["elicitation", "sampling", "roots"]
            .iter()
            .any(|capability| declared.has(capability))
    })
}
