//! The keys of what only the audit trail records; all others are those of spans.

use std::time::Duration;

use crate::trace::Key;
use crate::trace::attributes::key;

/// The principal, as its authenticator names it.
pub const ENDUSER_ID: Key<str> = key!("enduser.id");
/// The name that the client gave itself.
pub const CLIENT_NAME: Key<str> = key!("mcp.client.name");
/// How the principal was authenticated.
pub const AUTH_METHOD: Key<str> = key!("shoal.auth.method");
/// The program that sent the request, as it says.
pub const USER_AGENT: Key<str> = key!("user_agent.original");
/// The rule that decided.
pub const POLICY_RULE: Key<str> = key!("shoal.policy.rule");
/// The quota that was used up.
pub const QUOTA: Key<str> = key!("shoal.quota");
/// The URI template that was to be completed.
pub const RESOURCE_TEMPLATE: Key<str> = key!("shoal.resource_template");
/// The `shoal.call.id` of an earlier event of the same call, whose request was answered with a question.
pub const CALL_CONTINUES: Key<str> = key!("shoal.call.continues");
/// How long the call took, in seconds.
pub const DURATION: Key<Duration> = key!("shoal.duration");
/// What an operator asked for at the admin port.
pub const URL_PATH: Key<str> = key!("url.path");

/// The arguments of a tool. They may be longer than other texts.
pub(super) const TOOL_ARGUMENTS: Key<str> = key!("gen_ai.tool.call.arguments");
/// The trace of the span that it belongs to, in the file; a log record of OpenTelemetry has a field for it, and for the next.
pub(super) const TRACE_ID: Key<str> = key!("trace_id");
/// That span.
pub(super) const SPAN_ID: Key<str> = key!("span_id");
