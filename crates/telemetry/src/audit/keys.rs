//! The keys of what only the audit trail records; all others are those of spans.

use crate::trace::Key;

/// The principal, as its authenticator names it.
pub const ENDUSER_ID: Key<str> = Key::new("enduser.id");
/// The name that the client gave itself.
pub const CLIENT_NAME: Key<str> = Key::new("mcp.client.name");
/// How the principal was authenticated.
pub const AUTH_METHOD: Key<str> = Key::new("shoal.auth.method");
/// The program that sent the request, as it says.
pub const USER_AGENT: Key<str> = Key::new("user_agent.original");
/// The rule that decided.
pub const POLICY_RULE: Key<str> = Key::new("shoal.policy.rule");
/// The quota that was used up.
pub const QUOTA: Key<str> = Key::new("shoal.quota");
/// The URI template that was to be completed.
pub const RESOURCE_TEMPLATE: Key<str> = Key::new("shoal.resource_template");
/// The `shoal.call.id` of an earlier event of the same call, whose request was answered with a question.
pub const CALL_CONTINUES: Key<str> = Key::new("shoal.call.continues");
/// How long the call took, in seconds.
pub const DURATION: Key<f64> = Key::new("shoal.duration");
/// What an operator asked for at the admin port.
pub const URL_PATH: Key<str> = Key::new("url.path");

/// The arguments of a tool. They may be longer than other texts.
pub(super) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
