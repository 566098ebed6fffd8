//! Rounds of input (SEP-2322).
#![expect(
    deprecated,
    reason = "sampling and roots remain part of every revision"
)]

use rmcp::{
    ErrorData,
    model::{
        CreateMessageRequest, CreateMessageRequestParams, CreateMessageResult, ElicitRequest,
        ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequiredResult,
        InputResponses, ListRootsRequest, ListRootsResult, SamplingMessage,
        SamplingMessageContentBlock,
    },
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::asking::form_schema;
use crate::ask::AskRefusal;

/// A request's state between its rounds, which passes through the client as plain JSON. The host must seal
/// it, as Shoal does, if clients must not forge it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "awaiting", rename_all = "camelCase", deny_unknown_fields)]
pub(super) enum RoundState {
    Confirmation,
    Everything,
    Name,
    Color {
        /// The answer of the round before.
        name: String,
    },
}

impl RoundState {
    pub(super) fn open(state: Option<&str>) -> Result<Option<Self>, AskRefusal> {
        state
            .map(serde_json::from_str)
            .transpose()
            .map_err(|_| Self::foreign())
    }

    pub(super) fn foreign() -> AskRefusal {
        AskRefusal::Protocol(ErrorData::invalid_params(
            "requestState is not valid for this tool",
            None,
        ))
    }

    fn seal(&self) -> Result<String, ErrorData> {
        serde_json::to_string(self)
            .map_err(|error| ErrorData::internal_error(format!("unwritable state: {error}"), None))
    }
}

pub(super) fn require<const N: usize>(
    inputs: [(&str, InputRequest); N],
    state: Option<&RoundState>,
) -> Result<InputRequiredResult, ErrorData> {
    let inputs = inputs
        .into_iter()
        .map(|(key, input)| (key.to_owned(), input))
        .collect();
    Ok(InputRequiredResult::new(
        Some(inputs),
        state.map(RoundState::seal).transpose()?,
    ))
}

pub(super) fn form(message: &str, field: &str, kind: &str) -> Result<InputRequest, ErrorData> {
    let requested_schema = form_schema(json!({ field: { "type": kind } }), &[field])?;
    Ok(InputRequest::Elicitation(ElicitRequest::new(
        ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: message.to_owned(),
            requested_schema,
        },
    )))
}

pub(super) fn sample(prompt: &str, max_tokens: u32) -> InputRequest {
    let messages = vec![SamplingMessage::user_text(prompt)];
    let params = CreateMessageRequestParams::new(messages, max_tokens);
    InputRequest::CreateMessage(CreateMessageRequest::new(params))
}

pub(super) fn roots() -> InputRequest {
    InputRequest::ListRoots(ListRootsRequest::default())
}

/// The client's answers. If one is missing or malformed, the tool asks again, as SEP-2322 recommends.
#[derive(Clone, Copy)]
pub(super) struct Answers<'a>(Option<&'a InputResponses>);

impl<'a> Answers<'a> {
    pub(super) fn new(responses: Option<&'a InputResponses>) -> Self {
        Self(responses)
    }

    pub(super) fn field<T: DeserializeOwned>(
        self,
        key: &str,
        field: &str,
    ) -> Option<Result<T, &'static str>> {
        let answer: ElicitResult = self.get(key)?;
        match answer.action {
            ElicitationAction::Accept => {
                let value = answer.content?.get_mut(field).map(Value::take)?;
                serde_json::from_value(value).ok().map(Ok)
            }
            ElicitationAction::Decline => Some(Err("declined")),
            _ => Some(Err("cancelled")),
        }
    }

    pub(super) fn sample(self, key: &str) -> Option<String> {
        let answer: CreateMessageResult = self.get(key)?;
        answer.message.content.iter().find_map(|block| match block {
            SamplingMessageContentBlock::Text(text) => Some(text.text.clone()),
            _ => None,
        })
    }

    pub(super) fn roots(self, key: &str) -> Option<String> {
        let answer: ListRootsResult = self.get(key)?;
        let uris: Vec<String> = answer.roots.into_iter().map(|root| root.uri).collect();
        Some(uris.join(", "))
    }

    fn get<T: DeserializeOwned>(self, key: &str) -> Option<T> {
        T::deserialize(self.0?.get(key)?).ok()
    }
}
