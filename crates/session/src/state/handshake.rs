use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use shoal_ports::{ServerFacts, SessionTransport};
use shoal_protocol::task::legacy;
use shoal_protocol::{RawJson, RawObject, Request, Revision, RpcError, error_response, response};

use super::{Effect, SessionMachine, caller_of};
use crate::record::Handshake;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult<'a> {
    protocol_version: Revision,
    capabilities: &'a RawJson,
    server_info: &'a RawJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: &'a Option<String>,
}

impl SessionMachine {
    pub(super) fn initialize(&mut self, request: &Request, facts: &ServerFacts) -> Effect {
        let handshake = handshake_of(request);
        if let Some(kept) = &self.record.handshake {
            let error = RpcError::invalid_request("the session has been initialized already");
            let refusal = error_response(&request.id, &error);
            let may_lack_answer = self.transport() == SessionTransport::SingleStream;
            return match handshake {
                Ok(handshake) if may_lack_answer && handshake == *kept => {
                    Effect::InitializedAgain {
                        request: request.id.clone(),
                        greeting: self.greeting(request, &handshake, facts),
                        refusal,
                    }
                }
                _ => Effect::Respond(refusal),
            };
        }
        match handshake {
            Ok(handshake) => {
                let greeting = self.greeting(request, &handshake, facts);
                self.settle(handshake, facts);
                Effect::RespondAndSave(greeting)
            }
            Err(error) => Effect::Respond(error_response(&request.id, &error)),
        }
    }

    pub(crate) fn settle(&mut self, handshake: Handshake, facts: &ServerFacts) {
        self.record.handshake = Some(handshake);
        let versions = self.versions(facts);
        self.record.announced = versions;
        self.told = versions;
        self.caller = Arc::new(caller_of(&self.session, &self.record));
    }

    fn greeting(&self, request: &Request, handshake: &Handshake, facts: &ServerFacts) -> Bytes {
        let with_tasks = self
            .offers_tasks(handshake.revision)
            .then(|| legacy::with_tasks(&facts.capabilities));
        let result = InitializeResult {
            protocol_version: handshake.revision,
            capabilities: with_tasks.as_ref().unwrap_or(&facts.capabilities),
            server_info: &facts.server_info,
            instructions: &facts.instructions,
        };
        response(&request.id, &RawJson::of(&result))
    }
}

pub(crate) fn handshake_of(request: &Request) -> Result<Handshake, RpcError> {
    let params = request
        .params
        .as_ref()
        .and_then(RawObject::of)
        .unwrap_or_default();
    let missing = |what: &str| RpcError::invalid_params(format!("initialize: {what}"));
    let requested = params
        .get("protocolVersion")
        .and_then(|version| version.string())
        .ok_or_else(|| missing("params.protocolVersion must be a string"))?;
    let object = |name: &str| {
        params
            .get(name)
            .filter(RawJson::is_object)
            .map(|declared| declared.detached())
            .ok_or_else(|| missing(&format!("params.{name} must be an object")))
    };
    Ok(Handshake {
        revision: Revision::negotiate(&requested),
        client_info: Some(object("clientInfo")?),
        capabilities: object("capabilities")?,
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use shoal_protocol::{Body, Message};

    use super::handshake_of;

    #[test]
    fn what_a_client_declares_does_not_keep_its_message() {
        let text = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",
            "clientInfo":{"name":"n","version":"1"},"capabilities":{"roots":{}},"and":"more"}}"#;
        let message = Bytes::from(text.as_bytes().to_vec());
        let Ok(Body::Single(Message::Request(request))) = Body::parse(&message, 8) else {
            panic!("it is a request");
        };
        let handshake = handshake_of(&request).unwrap();
        drop(request);
        assert!(message.is_unique());
        assert_eq!(handshake.capabilities.as_str(), r#"{"roots":{}}"#);
    }
}
