//! Keys of the audit trail besides those of spans.

use std::time::Duration;

use crate::trace::Key;
use crate::trace::attributes::key;

/// The principal, as its authenticator names it.
pub const ENDUSER_ID: Key<str> = key!("enduser.id");
/// The name that the client gave itself.
pub const CLIENT_NAME: Key<str> = key!("mcp.client.name");
/// How the principal was authenticated.
pub const AUTH_METHOD: Key<str> = key!("shoal.auth.method");
/// The client program, by its own claim.
pub const USER_AGENT: Key<str> = key!("user_agent.original");
/// The deciding rule.
pub const POLICY_RULE: Key<str> = key!("shoal.policy.rule");
/// The quota that was used up.
pub const QUOTA: Key<str> = key!("shoal.quota");
/// The URI template to complete.
pub const RESOURCE_TEMPLATE: Key<str> = key!("shoal.resource_template");
/// The `shoal.call.id` of the event whose call ended with a question, and which this call continues.
pub const CALL_CONTINUES: Key<str> = key!("shoal.call.continues");
/// The call's duration, in seconds.
pub const DURATION: Key<Duration> = key!("shoal.duration");
/// The path of a request at the admin port.
pub const URL_PATH: Key<str> = key!("url.path");

/// Arguments may exceed the limit of other texts.
pub(super) const TOOL_ARGUMENTS: Key<str> = key!("gen_ai.tool.call.arguments");
/// Written only to the file, because log records have fields for the ids of trace and span.
pub(super) const TRACE_ID: Key<str> = key!("trace_id");
pub(super) const SPAN_ID: Key<str> = key!("span_id");
