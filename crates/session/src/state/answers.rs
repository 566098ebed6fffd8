//! The id of a request to the client contains the call and a number, so that any owner can route the answer without
//! stored state.

use bytes::Bytes;
use shoal_ports::{AskId, CallId};
use shoal_protocol::{Method, RawJson, RawObject, RequestId, Response, notification, request};

use super::{Effect, SessionMachine};

impl SessionMachine {
    pub(super) fn asked(
        &mut self,
        call: CallId,
        ask: AskId,
        method: &Method,
        params: Option<&RawJson>,
    ) -> Effect {
        if self.admitted.running(call).is_none() {
            return Effect::AskRefused;
        }
        if self.record.task.is_some() {
            self.task_asks(name_of(call, ask), method, params);
        }
        let id = question_id(call, ask);
        Effect::Ask(request(&id, method.as_str(), params))
    }

    /// The call accepts only the first answer. Ignores other responses.
    pub(super) fn response(&mut self, response: Response) -> Effect {
        let Some((call, ask)) = asker_of(&response.id) else {
            return Effect::None;
        };
        match self.admitted.running(call) {
            Some(slot) => Effect::Answer {
                slot,
                ask,
                outcome: response.outcome,
            },
            None => Effect::None,
        }
    }
}

pub(crate) fn question_id(call: CallId, ask: AskId) -> RequestId {
    RequestId::from_string(&name_of(call, ask))
}

pub(crate) fn withdrawal(call: CallId, ask: AskId) -> Bytes {
    let mut params = RawObject::default();
    params.set("requestId", question_id(call, ask).to_json());
    params.set(
        "reason",
        RawJson::of("the server no longer waits for the answer"),
    );
    notification(Method::Cancelled.as_str(), Some(&params.to_json()))
}

fn asker_of(id: &RequestId) -> Option<(CallId, AskId)> {
    asker_of_key(&id.to_json().string()?)
}

pub(super) fn asker_of_key(name: &str) -> Option<(CallId, AskId)> {
    let (call, ask) = name.split_once('.')?;
    let (call, ask) = (call.parse().ok()?, AskId(ask.parse().ok()?));
    (name_of(call, ask) == name).then_some((call, ask))
}

pub(super) fn name_of(call: CallId, ask: AskId) -> String {
    format!("{call}.{}", ask.0)
}

#[cfg(test)]
mod tests {
    use shoal_ports::{AskId, CallId};
    use shoal_protocol::RequestId;

    use super::{asker_of, question_id};

    #[test]
    fn only_the_very_id_of_a_question_belongs_to_it() {
        let call: CallId = "01a2b3c4-d5e6-7f80-9a0b-c1d2e3f40516".parse().unwrap();
        let id = question_id(call, AskId(1));
        assert_eq!(asker_of(&id), Some((call, AskId(1))));
        let name = id.to_json().string().unwrap();
        let hyphens = format!("01a2b3c4-d5e6-7f80-9a0b-{}", &name[20..]);
        assert_eq!(hyphens.replace('-', ""), name);
        for other in [
            name.to_uppercase(),
            name.replace(".1", ".01"),
            name.replace(".1", ".+1"),
            format!("{name} "),
            hyphens,
            name.replace(".1", ""),
        ] {
            assert_eq!(asker_of(&RequestId::from_string(&other)), None, "{other}");
        }
    }
}
