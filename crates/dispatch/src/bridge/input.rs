//! Reads and writes `InputRequiredResult` (2026-07-28, Multi Round-Trip Requests).

use std::collections::BTreeMap;

use shoal_ports::AskId;
use shoal_protocol::{Method, RawJson, RawObject, RequestDigest, RpcError};

#[derive(Debug)]
pub(super) struct InputRequired {
    pub(super) object: RawObject,
    pub(super) requests: Vec<KeyedRequest>,
    pub(super) state: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct KeyedRequest {
    pub(super) key: String,
    pub(super) method: Method,
    pub(super) params: Option<RawJson>,
}

/// A client's answers to questions that the call will ask again.
#[derive(Default)]
pub(crate) struct GivenAnswers {
    pub(super) answers: RawObject,
    /// Digests of the answered questions. `Some` if the call runs again, because it may then ask different questions.
    pub(super) to: Option<BTreeMap<String, RequestDigest>>,
}

impl GivenAnswers {
    pub(super) fn take(&mut self, question: &KeyedRequest) -> Option<RawJson> {
        if let Some(asked) = &self.to
            && asked.get(&question.key) != Some(&question.digest())
        {
            return None;
        }
        self.answers
            .remove(&question.key)
            .filter(RawJson::is_object)
    }
}

pub(super) fn key_of(ask: AskId) -> String {
    format!("ask-{}", ask.0)
}

pub(super) fn ask_of(key: &str) -> Option<AskId> {
    key.strip_prefix("ask-")?.parse().ok().map(AskId)
}

impl InputRequired {
    /// Fails with -32603 if the backend violates the protocol.
    pub(super) fn of(method: &Method, object: RawObject) -> Result<Self, RpcError> {
        let broken =
            |what: &str| RpcError::internal(format!("the backend's InputRequiredResult {what}"));
        if !method.may_require_input() {
            return Err(broken(&format!("is not allowed for {method}")));
        }
        let member = |name: &str| object.get(name).filter(|value| !value.is_null());
        let requests = match member("inputRequests") {
            None => Vec::new(),
            Some(requests) => RawObject::of(&requests)
                .and_then(|requests| {
                    requests
                        .iter()
                        .map(|(key, request)| KeyedRequest::read(key, &request))
                        .collect()
                })
                .ok_or_else(|| broken("has malformed inputRequests"))?,
        };
        let state = match member("requestState") {
            None => None,
            Some(state) => Some(
                state
                    .string()
                    .ok_or_else(|| broken("has a requestState that is no string"))?,
            ),
        };
        if requests.is_empty() && state.is_none() {
            return Err(broken("asks for nothing"));
        }
        Ok(Self {
            object,
            requests,
            state,
        })
    }
}

impl KeyedRequest {
    fn read(key: String, request: &RawJson) -> Option<Self> {
        let request = RawObject::of(request)?;
        Some(Self {
            key,
            method: Method::from_name(&request.get("method")?.string()?),
            params: request.get("params"),
        })
    }

    pub(super) fn digest(&self) -> RequestDigest {
        RequestDigest::of(&self.method, self.params.as_ref())
    }

    fn to_json(&self) -> RawJson {
        let mut request = RawObject::default();
        request.set("method", RawJson::of(self.method.as_str()));
        if let Some(params) = &self.params {
            request.set("params", params.clone());
        }
        request.to_json()
    }
}

pub(super) fn input_required(requests: &[KeyedRequest], state: &str) -> RawJson {
    let mut map = RawObject::default();
    for request in requests {
        map.set(&request.key, request.to_json());
    }
    let mut result = RawObject::default();
    result.set("resultType", RawJson::from_static(r#""input_required""#));
    result.set("inputRequests", map.to_json());
    result.set("requestState", RawJson::of(state));
    result.to_json()
}

pub(super) fn with_round(
    params: Option<&RawJson>,
    responses: Option<RawJson>,
    state: Option<&str>,
) -> RawJson {
    let mut params = params.and_then(RawObject::of).unwrap_or_default();
    params.remove("inputResponses");
    params.remove("requestState");
    if let Some(responses) = responses {
        params.set("inputResponses", responses);
    }
    if let Some(state) = state {
        params.set("requestState", RawJson::of(state));
    }
    params.to_json()
}
