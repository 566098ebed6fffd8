//! An `initialize` that comes again where answers have a stream of their own: its answer may have been lost, or be there.

use shoal_ports::GatewayError;
use shoal_protocol::{EventId, RawJson, RequestId, StreamId};

use super::super::Node;
use crate::live::{LiveSession, log_failed};
use crate::state::Effect;

/// Among how many first events the answer to `initialize` is. Only answers to pings can stand before it.
const FIRST: usize = 64;

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
        if !self.is_answered(live, &request).await? {
            return Ok(Some(Effect::RespondAndSave(greeting)));
        }
        Ok((!repeated).then_some(Effect::Respond(refusal)))
    }

    /// Whether the standalone stream holds an answer to a request that was among the session's first.
    async fn is_answered(
        &self,
        live: &LiveSession,
        request: &RequestId,
    ) -> Result<bool, GatewayError> {
        let log = &self.driver.store.log;
        let failed = |error| log_failed(&error, &self.config);
        let last = log.last(&live.id, StreamId::STANDALONE).await;
        let start = EventId {
            sequence: 0,
            ..last.map_err(failed)?
        };
        let first = match log.read(&live.id, start, FIRST).await {
            Ok(page) => page.events,
            // Much has been said since.
            Err(shoal_ports::LogError::Gone(_)) => return Ok(true),
            Err(error) => return Err(failed(error)),
        };
        let answers = |data| RawJson::from_valid(data).member("id") == Some(request.to_json());
        Ok(first.len() == FIRST || first.into_iter().any(|event| answers(event.data)))
    }
}
