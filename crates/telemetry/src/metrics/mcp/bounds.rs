//! The methods, revisions and error codes that are recorded by name. All others become `_OTHER`.

use crate::metrics::OTHER;

pub(super) const METHODS: &[&str] = &[
    "completion/complete",
    "elicitation/create",
    "initialize",
    "logging/setLevel",
    "notifications/cancelled",
    "notifications/elicitation/complete",
    "notifications/initialized",
    "notifications/message",
    "notifications/progress",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/roots/list_changed",
    "notifications/subscriptions/acknowledged",
    "notifications/tools/list_changed",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "roots/list",
    "sampling/createMessage",
    "server/discover",
    "subscriptions/listen",
    "tools/call",
    "tools/list",
];

pub(super) const REVISIONS: &[&str] = &[
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
];

/// Error codes of JSON-RPC, MCP and Shoal.
const CODES: &[(i64, &str)] = &[
    (-32_700, "-32700"),
    (-32_600, "-32600"),
    (-32_601, "-32601"),
    (-32_602, "-32602"),
    (-32_603, "-32603"),
    (-32_000, "-32000"),
    (-32_001, "-32001"),
    (-32_002, "-32002"),
    (-32_020, "-32020"),
    (-32_021, "-32021"),
    (-32_022, "-32022"),
    (-32_042, "-32042"),
    (-32_800, "-32800"),
    (50_002, "50002"),
    (50_300, "50300"),
    (50_301, "50301"),
    (50_400, "50400"),
    (50_410, "50410"),
];

pub(super) const CODE_TEXTS: &[&str] = &{
    let mut texts = [""; CODES.len()];
    let mut at = 0;
    while at < CODES.len() {
        texts[at] = CODES[at].1;
        at += 1;
    }
    texts
};

pub(super) fn one_of(values: &'static [&'static str], text: &str) -> &'static str {
    (values.iter().find(|value| **value == text)).map_or(OTHER, |value| value)
}

pub(super) fn code_text(code: i64) -> &'static str {
    (CODES.iter().find(|(known, _)| *known == code)).map_or(OTHER, |(_, text)| text)
}
