use rand::rngs::StdRng;

use crate::body::Mirrored;
use crate::pick::{odd, often, one};
use crate::shape::EVENT;

const VERSIONS: [&str; 12] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
    "2026-07-29",
    "v9",
    "2025-11-25, 2026-07-28",
    " 2025-11-25 ",
    "=?base64?MjAyNi0wNy0yOA==?=",
    "-",
    "\"2025-11-25\"",
];
const EVENTS: [&str; 11] = [
    "1",
    "abc",
    "1-2-3",
    "1-0-0",
    "-1-0-1",
    "99999999999999999999-1-1",
    "1-1-18446744073709551615",
    "1_0_1",
    "",
    "{event}x",
    "caf\u{e9}",
];
const ACCEPTS: [&str; 8] = [
    "*/*",
    "application/json",
    "text/event-stream",
    "application/json;q=0, text/event-stream",
    "text/*, application/*",
    "",
    "image/png",
    "APPLICATION/JSON,TEXT/EVENT-STREAM",
];
const TYPES: [&str; 7] = [
    "application/json; charset=utf-8",
    "APPLICATION/JSON",
    "text/plain",
    "application/json-patch+json",
    "",
    "application/json, text/plain",
    "application/x-www-form-urlencoded",
];

/// A header whose random value is `-` is omitted.
pub(crate) fn random(
    random: &mut StdRng,
    method: &str,
    modern: bool,
    session: &str,
    mirrored: Option<&Mirrored>,
) -> String {
    let mut lines: Vec<(&str, String)> = Vec::new();
    let mut add = |name, value: &str| {
        if value != "-" {
            lines.push((name, value.to_owned()));
        }
    };
    add(
        "Host",
        odd(
            random,
            3,
            "localhost",
            &["evil.example", "", "localhost:1", "-", "127.0.0.1"],
        ),
    );
    let accept = match method {
        "GET" => "text/event-stream",
        _ => "application/json, text/event-stream",
    };
    add("Accept", odd(random, 5, accept, &ACCEPTS));
    if method != "GET" {
        add("Content-Type", odd(random, 4, "application/json", &TYPES));
    }
    let usual = if modern { "2026-07-28" } else { "2025-11-25" };
    add("MCP-Protocol-Version", odd(random, 12, usual, &VERSIONS));
    if !modern || often(random, 10) {
        add("Mcp-Session-Id", session);
    }
    if method == "GET" && often(random, 60) {
        add("Last-Event-ID", odd(random, 60, EVENT, &EVENTS));
    } else if often(random, 2) {
        add("Last-Event-ID", one::<&str>(random, &EVENTS));
    }
    if let Some(mirrored) = mirrored.filter(|_| modern || often(random, 5)) {
        add(
            "Mcp-Method",
            odd(
                random,
                5,
                &mirrored.method,
                &["-", "tools/list", "TOOLS/CALL", "=?base64?cGluZw==?="],
            ),
        );
        if let Some(name) = &mirrored.name {
            add(
                "Mcp-Name",
                odd(
                    random,
                    8,
                    name,
                    &["-", "other", "=?base64?ZWNobw==?=", "=?base64?%?=", ""],
                ),
            );
        }
    }
    for (name, values, percent) in [
        (
            "Origin",
            &["http://localhost", "http://evil.example", "null", ""][..],
            3,
        ),
        (
            "Authorization",
            &["Bearer x", "Basic x", "Bearer", "bearer  y"],
            3,
        ),
        (
            "Content-Encoding",
            &["identity", "gzip", "identity, gzip"],
            2,
        ),
        ("Mcp-Param-Region", &["eu", "=?base64?%?="], 2),
        (
            "traceparent",
            &[
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                "zz",
            ],
            3,
        ),
        ("Expect", &["100-continue", "200-ok"], 1),
        ("Upgrade", &["h2c", "websocket"], 1),
    ] {
        if often(random, percent) {
            add(name, one::<&str>(random, values));
        }
    }
    if often(random, 2) {
        let twice = one(random, &lines).clone();
        lines.push(twice);
    }
    let shout = often(random, 10);
    let line = |(name, value): &(&str, String)| match shout {
        true => format!("{}:{value}\r\n", name.to_uppercase()),
        false => format!("{name}: {value}\r\n"),
    };
    lines.iter().map(line).collect()
}
