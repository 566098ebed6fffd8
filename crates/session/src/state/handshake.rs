//! `initialize`: the version is negotiated and the client's declarations are kept.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use shoal_ports::ServerFacts;
use shoal_protocol::{RawJson, RawObject, Request, Revision, RpcError, error_response, response};

use super::{Effect, SessionState, caller_of};
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

impl SessionState {
    pub(super) fn initialize(&mut self, request: &Request, facts: &ServerFacts) -> Effect {
        if self.record.handshake.is_some() {
            let error = RpcError::invalid_request("the session has been initialized already");
            return Effect::Respond(error_response(&request.id, &error));
        }
        match handshake_of(request) {
            Ok(handshake) => Effect::RespondAndSave(self.greet(request, handshake, facts)),
            Err(error) => Effect::Respond(error_response(&request.id, &error)),
        }
    }

    fn greet(&mut self, request: &Request, handshake: Handshake, facts: &ServerFacts) -> Bytes {
        let result = InitializeResult {
            protocol_version: handshake.revision,
            capabilities: &facts.capabilities,
            server_info: &facts.server_info,
            instructions: &facts.instructions,
        };
        let greeting = response(&request.id, &RawJson::of(&result));
        self.record.handshake = Some(handshake);
        self.record.announced = facts.versions;
        self.told = facts.versions;
        self.caller = Arc::new(caller_of(&self.session, &self.record));
        greeting
    }
}

/// Reads the parameters of `initialize`.
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
            .ok_or_else(|| missing(&format!("params.{name} must be an object")))
    };
    Ok(Handshake {
        revision: Revision::negotiate(&requested),
        client_info: object("clientInfo")?,
        capabilities: object("capabilities")?,
    })
}
