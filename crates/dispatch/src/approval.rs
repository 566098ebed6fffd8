//! Asks a person to approve a call before the tool runs.
//!
//! | caller | how the question goes out |
//! |---|---|
//! | legacy | [`asking`]: as a request on the call's stream, before the call starts |
//! | modern | [`retry`]: as an `InputRequiredResult` whose state fits this call alone |

mod arguments;
mod asking;
mod retry;

use serde_json::json;
use shoal_ports::{Call, CallId, CallOutcome, Caller};
use shoal_protocol::{
    ClientCapability, Era, Outcome, RawJson, RawObject, RpcError, declares, shown,
};
use shoal_telemetry::metrics::{ApprovalOutcome, metrics};

use crate::audit;
use crate::pools::View;

pub(crate) use asking::AfterApproval;
pub(crate) use retry::{AnsweredApproval, AskedCall, input_required, read_retry, refused_before};

const LONGEST_NAME: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ApprovalAnswer {
    Accepted,
    Declined,
    Dismissed,
    Late,
    NotPut(String),
}

impl ApprovalAnswer {
    pub(crate) fn of(said: &Outcome) -> Self {
        match said {
            Outcome::Result(result) => Self::of_result(result),
            Outcome::Error(error) => Self::NotPut(shown(&error.message, LONGEST_NAME)),
        }
    }

    pub(crate) fn of_result(result: &RawJson) -> Self {
        let action = result.member("action").and_then(|action| action.string());
        match action.as_deref() {
            Some("accept") => Self::Accepted,
            Some("decline") => Self::Declined,
            Some("cancel") => Self::Dismissed,
            _ => Self::NotPut("its answer has no action that MCP knows".to_owned()),
        }
    }

    pub(crate) fn tell(&self, call: &Call, continues: Option<CallId>) {
        let outcome = match self {
            Self::Accepted => ApprovalOutcome::Accepted,
            Self::Declined => ApprovalOutcome::Declined,
            Self::Dismissed => ApprovalOutcome::Cancelled,
            Self::Late => ApprovalOutcome::TimedOut,
            Self::NotPut(_) => ApprovalOutcome::Unable,
        };
        asked(call, continues, outcome);
    }

    /// Builds a tool result, from which the model reads why the tool did not run.
    pub(crate) fn refusal(&self) -> CallOutcome {
        self.explained("The tool was not run.")
    }

    pub(crate) fn untold(&self) -> CallOutcome {
        self.explained(
            "This request has not run the tool. Its worker does not answer, so Shoal does not know whether an earlier yes to \
             the same question has.",
        )
    }

    fn explained(&self, what: &str) -> CallOutcome {
        let why = match self {
            Self::Accepted | Self::Declined => "The person who was asked declined this call.",
            Self::Dismissed => "The person who was asked did not agree to this call.",
            Self::Late => "Nobody agreed to this call in time.",
            Self::NotPut(_) => "The client could not ask a person whether to agree to this call",
        };
        let why = match self {
            Self::NotPut(reason) => format!("{why}: {reason}."),
            _ => why.to_owned(),
        };
        let text = format!("{why} {what}");
        CallOutcome::Result(RawJson::of(
            &json!({ "content": [{ "type": "text", "text": text }], "isError": true }),
        ))
    }
}

fn asked(call: &Call, continues: Option<CallId>, outcome: ApprovalOutcome) {
    metrics().policy.approved(outcome);
    let subject = audit::AuditedCall {
        continues,
        ..audit::AuditedCall::of(call)
    };
    audit::asked(&subject, outcome);
}

/// Fails with the call's answer if its client cannot ask a person.
pub(crate) fn question(view: &View, call: &Call, pool: &str) -> Result<RawJson, CallOutcome> {
    let caller = &call.caller;
    if !declares(&caller.capabilities, ClientCapability::ElicitationForm) {
        asked(call, None, ApprovalOutcome::Unable);
        return Err(CallOutcome::Error(unable(caller)));
    }
    let params = call.params.as_ref().and_then(RawObject::of);
    let member = |name: &str| params.as_ref()?.get(name);
    let name = member("name").and_then(|name| name.string());
    let name = name.unwrap_or_default();
    let arguments = arguments::pretty(member("arguments").as_ref());
    let title = view.catalog.title_of_tool(&name);
    let title = title.map_or_else(String::new, |title| {
        format!(" ({})", arguments::name(&title, LONGEST_NAME))
    });
    let server = view.catalog.title_of_pool(pool).unwrap_or(pool);
    let [name, server] = [&name, server].map(|name| arguments::name(name, LONGEST_NAME));
    let message = format!("Allow one call of the tool {name}{title} of {server}?\n\n{arguments}");
    Ok(RawJson::of(&json!({
        "message": message,
        "requestedSchema": { "type": "object", "properties": {} },
    })))
}

fn unable(caller: &Caller) -> RpcError {
    let needed = ClientCapability::ElicitationForm;
    let mut error = match caller.revision.era() {
        Era::Legacy => RpcError::invalid_request(String::new()),
        Era::Modern => needed.missing(),
    };
    error.message = format!(
        "a person must agree to each call of this tool, and the client cannot ask one: it has not declared the capability {needed}"
    );
    error
}

#[cfg(test)]
mod tests {
    use shoal_protocol::{Outcome, RawJson, RpcError};

    use super::ApprovalAnswer;

    #[test]
    fn only_accept_accepts() {
        let of =
            |text: &'static str| ApprovalAnswer::of(&Outcome::Result(RawJson::from_static(text)));
        assert_eq!(of(r#"{"action":"accept"}"#), ApprovalAnswer::Accepted);
        assert_eq!(of(r#"{"action":"decline"}"#), ApprovalAnswer::Declined);
        assert_eq!(of(r#"{"action":"cancel"}"#), ApprovalAnswer::Dismissed);
        for text in [
            "{}",
            r#"{"action":"Accept"}"#,
            r#"{"action":true}"#,
            r#"{"content":{"action":"accept"}}"#,
            r#"["accept"]"#,
        ] {
            assert!(matches!(of(text), ApprovalAnswer::NotPut(_)), "{text}");
        }
        let failed = ApprovalAnswer::of(&Outcome::Error(RpcError::internal("no\nscreen")));
        assert_eq!(failed, ApprovalAnswer::NotPut("noscreen".to_owned()));
    }
}
