use shoal_ports::{Call, SessionId};
use shoal_protocol::{Era, RawJson, RawObject};
use tokio::time::Instant;

use crate::config::Config;

/// A call that may wait for a person has a later deadline at its worker: its bridge enforces the call's own limit.
pub(crate) fn worker_deadline(call: &Call, config: &Config) -> Instant {
    match may_be_parked(call) || is_askable_task(call) {
        true => call.deadline + config.calls.input_timeout.get(),
        false => call.deadline,
    }
}

pub(crate) fn is_askable_task(call: &Call) -> bool {
    let session = call.caller.session.as_ref();
    session.is_some_and(SessionId::is_task) && can_be_asked(&call.caller.capabilities)
}

pub(crate) fn may_be_parked(call: &Call) -> bool {
    call.caller.revision.era() == Era::Modern
        && call.method.may_require_input()
        && can_be_asked(&call.caller.capabilities)
}

fn can_be_asked(capabilities: &RawJson) -> bool {
    RawObject::of(capabilities).is_some_and(|declared| {
        ["elicitation", "sampling", "roots"]
            .iter()
            .any(|capability| declared.has(capability))
    })
}
