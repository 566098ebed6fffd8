//! Answers tools' requests for session state: the owner stores a change before it answers.

use std::sync::Arc;

use futures::FutureExt as _;
use shoal_ports::{AskId, CallControl, CallId, StateRequest};
use shoal_protocol::Outcome;

use crate::live::LiveSession;
use crate::state::{Effect, Input};

/// Returns `false` if the next owner must answer the request.
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
    // Spawn the unfinished future, because it resends the answer.
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
        _ => None,
    }
}
