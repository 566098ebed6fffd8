use std::time::Duration;

use shoal_ports::{Call, CallId, CallOutcome, Caller, ClientInfo};
use shoal_protocol::{Method, RawJson, TraceContext};
use shoal_telemetry::audit::{self, Event, Kind, keys};
use shoal_telemetry::metrics::{ApprovalOutcome, CountedOutcome, PolicyOutcome};
use shoal_telemetry::trace::attributes;

pub(crate) struct AuditedCall<'a> {
    pub(crate) id: CallId,
    pub(crate) continues: Option<CallId>,
    pub(crate) rule: Option<&'a str>,
    pub(crate) method: &'a Method,
    pub(crate) params: Option<&'a RawJson>,
    pub(crate) caller: &'a Caller,
    pub(crate) trace: Option<&'a TraceContext>,
}

impl<'a> AuditedCall<'a> {
    pub(crate) fn of(call: &'a Call) -> Self {
        Self {
            id: call.id,
            continues: None,
            rule: None,
            method: &call.method,
            params: call.params.as_ref(),
            caller: &call.caller,
            trace: call.trace.as_ref(),
        }
    }
}

/// Computes the outcome only if it is recorded.
pub(crate) fn ended(
    call: &AuditedCall<'_>,
    took: Duration,
    outcome: &CallOutcome,
    counted: impl FnOnce() -> CountedOutcome,
) {
    audit::record(Kind::Call, |event| {
        event.set(attributes::OUTCOME, counted().as_str());
        event.set(keys::DURATION, took);
        if let CallOutcome::Error(error) | CallOutcome::Refused(error) = outcome {
            event.set(attributes::ERROR_TYPE, &error.code.to_string());
        }
        if let CallOutcome::Failed(failure) = outcome {
            event.set(attributes::ERROR_TYPE, &failure.to_rpc().code.to_string());
        }
        describe(event, call);
    });
}

pub(crate) fn left(call: &AuditedCall<'_>, took: Duration) {
    audit::record(Kind::Call, |event| {
        event.set(attributes::OUTCOME, "left");
        event.set(keys::DURATION, took);
        describe(event, call);
    });
}

pub(crate) fn allowed(call: &AuditedCall<'_>) {
    audit::record(Kind::Policy, |event| {
        event.set(attributes::OUTCOME, PolicyOutcome::Allowed.as_str());
        describe(event, call);
    });
}

pub(crate) fn asked(call: &AuditedCall<'_>, outcome: ApprovalOutcome) {
    audit::record(Kind::Approval, |event| {
        event.set(attributes::OUTCOME, outcome.as_str());
        describe(event, call);
    });
}

fn describe(event: &mut Event<'_>, call: &AuditedCall<'_>) {
    let caller = call.caller;
    event
        .set(keys::ENDUSER_ID, caller.principal.as_str())
        .set_some(
            keys::CLIENT_NAME,
            caller.client_info.as_ref().map(ClientInfo::name),
        )
        .set(attributes::MCP_METHOD_NAME, call.method.as_str())
        .set_some(
            attributes::MCP_SESSION_ID,
            caller.session.as_ref().map(|session| session.as_str()),
        )
        .set(attributes::MCP_PROTOCOL_VERSION, caller.revision.as_str())
        .set(attributes::CALL_ID, call.id.write_to(&mut [0; 32]))
        .set_some(keys::POLICY_RULE, call.rule)
        .set_some(
            keys::CALL_CONTINUES,
            call.continues.as_ref().map(CallId::to_string).as_deref(),
        )
        .trace(call.trace);
    let named = call.method.named().zip(call.params);
    let Some(name) = named.and_then(|(named, params)| params.member_text(named.as_str())) else {
        return;
    };
    match call.method {
        Method::ToolsCall => {
            event.set(attributes::GEN_AI_TOOL_NAME, &name);
            if let Some(params) = call.params {
                event.arguments(&name, params);
            }
        }
        Method::PromptsGet => {
            event.set(attributes::GEN_AI_PROMPT_NAME, &name);
        }
        _ => {
            event.set(attributes::MCP_RESOURCE_URI, &name);
        }
    }
}
