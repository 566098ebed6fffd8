//! Requests to the client, and its answers.

use shoal_ports::AskId;
use shoal_protocol::{Method, RawJson, RequestId, Response, request};

use super::{Effect, OpenAsk, SessionState};

impl SessionState {
    pub(super) fn asked(
        &mut self,
        running: RequestId,
        ask: AskId,
        method: &Method,
        params: Option<&RawJson>,
    ) -> Effect {
        if !self.calls.contains_key(&running) {
            return Effect::AskRefused;
        }
        let number = self.record.next_ask;
        self.record.next_ask += 1;
        self.asks.insert(
            number,
            OpenAsk {
                request: running,
                ask,
            },
        );
        Effect::Ask(request(
            &RequestId::from_number(number),
            method.as_str(),
            params,
        ))
    }

    /// An answer counts once, and only for a request that is open; everything else is ignored, as
    /// JSON-RPC leaves nobody to tell.
    pub(super) fn response(&mut self, response: Response) -> Effect {
        let open = response
            .id
            .number()
            .and_then(|number| self.asks.remove(&number));
        let Some(open) = open else {
            return Effect::None;
        };
        match self.calls.get(&open.request) {
            Some(running) => Effect::Answer {
                slot: running.slot.clone(),
                ask: open.ask,
                outcome: response.outcome,
            },
            None => Effect::None,
        }
    }
}
