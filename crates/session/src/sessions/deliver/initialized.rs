//! Answers a repeated `initialize`, whose first answer may have been lost.

use shoal_ports::GatewayError;

use super::super::Node;
use super::super::answered::AnsweredRequests;
use crate::live::LiveSession;
use crate::state::Effect;

impl Node {
    /// Replaces [`Effect::InitializedAgain`] by the effect to carry out; `None` for no effect. Runs in the session's
    /// actor, after earlier answers.
    pub(super) async fn initialized_again(
        &self,
        live: &LiveSession,
        effect: Effect,
        repeated: bool,
    ) -> Result<Option<Effect>, GatewayError> {
        let Effect::InitializedAgain {
            request,
            greeting,
            refusal,
        } = effect
        else {
            return Ok(Some(effect));
        };
        if self.answered(live, &[request]).await? == AnsweredRequests::Nothing {
            return Ok(Some(Effect::RespondAndSave(greeting)));
        }
        Ok((!repeated).then_some(Effect::Respond(refusal)))
    }
}
