//! Session state for calls: the owner stores a change before it answers.

use std::sync::Arc;

use futures::FutureExt as _;
use shoal_ports::{AskId, CallControl, CallId, StateRequest};
use shoal_protocol::Outcome;

use crate::live::LiveSession;
use crate::state::{Effect, Input};

/// Answers a call's request for session state. `false` leaves it to the next owner, which will read the request again.
pub(super) async fn answer_state(
    live: &Arc<LiveSession>,
    call: CallId,
    control: &Arc<dyn CallControl>,
    ask: AskId,
    asked: StateRequest,
) -> bool {
    let Some(outcome) = keep_or_read(live, call, asked).await else {
        return false;
    };
    let mut arriving = control.answer(ask, outcome);
    // If the answer has not arrived at once, keep the future, which resends it.
    if (&mut arriving).now_or_never().is_none() {
        tokio::spawn(arriving);
    }
    true
}

async fn keep_or_read(
    live: &Arc<LiveSession>,
    call: CallId,
    asked: StateRequest,
) -> Option<Outcome> {
    if live.is_lost() {
        return None;
    }
    if matches!(asked, StateRequest::Set { .. }) {
        return live.keep(call, asked).await;
    }
    match live.apply(Input::StateAsked { call, asked }) {
        Ok(Effect::StateAnswer(outcome)) => Some(outcome),
        // The session is being handed over or has ended, along with its calls.
        _ => None,
    }
}
