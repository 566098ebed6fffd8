//! An `initialize` that comes again where answers have a stream of their own: its answer may have been lost, or be there.

use shoal_ports::GatewayError;

use super::super::Node;
use super::super::answered::Answered;
use crate::live::LiveSession;
use crate::state::Effect;

impl Node {
    /// What follows from a message, knowing which `initialize` has been answered; `None` where nothing does. In the
    /// session's actor, when no earlier one is still being answered.
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
        if self.answered(live, &[request]).await? == Answered::Nothing {
            return Ok(Some(Effect::RespondAndSave(greeting)));
        }
        Ok((!repeated).then_some(Effect::Respond(refusal)))
    }
}
