//! What calls keep in their session: answered by its owner, stored before it is answered.

use std::sync::Arc;

use futures::FutureExt as _;
use shoal_ports::{AskId, CallControl, CallId, StateRequest};
use shoal_protocol::Outcome;

use crate::live::LiveSession;
use crate::state::{Effect, Input};

/// Answers a call that reads or writes what its session keeps; `false` when that is left to the session's next owner, who
/// will read the request again.
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
    // Mostly known at once. Where it is not, somebody has to wait for it, or it is kept to be sent again.
    if (&mut arriving).now_or_never().is_none() {
        tokio::spawn(arriving);
    }
    true
}

/// What is kept is read at once; a change of it is stored first.
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
        // It is being handed over, or has ended, and its calls with it.
        _ => None,
    }
}
