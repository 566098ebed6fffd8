//! Headers that contradict the body, so that a proxy reads another request.

use serde_json::json;

use crate::harness::{Family, Request, serve};
use crate::process::Server;

const MISMATCH: &str = "400 header mismatch";

pub(crate) async fn family() -> Family {
    let mut family = Family::new("header and body");
    let server = Server::of(serve(&[])).await;
    let echo = Request::echo();
    let body = |text: &str| {
        let mut request = Request::post(text);
        for (name, value) in [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "echo"),
        ] {
            request = request.header(name, value);
        }
        request
    };
    let twice = echo
        .body
        .replace(r#""name":"echo""#, r#""name":"echo","name":"fail""#);
    let escaped = echo
        .body
        .replace(r#""name":"echo""#, r#""name":"echo","n\u0061me":"fail""#);
    let methods = echo.body.replace(
        r#""method":"tools/call""#,
        r#""method":"tools/call","method":"tools/list""#,
    );
    for (attack, expected, request) in [
        (
            "another method",
            MISMATCH,
            echo.clone().header("Mcp-Method", "tools/list"),
        ),
        ("no method", MISMATCH, echo.clone().without("Mcp-Method")),
        (
            "the method in capitals",
            MISMATCH,
            echo.clone().header("Mcp-Method", "TOOLS/CALL"),
        ),
        (
            "another name",
            MISMATCH,
            echo.clone().header("Mcp-Name", "add"),
        ),
        ("no name", MISMATCH, echo.clone().without("Mcp-Name")),
        (
            "the name in capitals",
            MISMATCH,
            echo.clone().header("Mcp-Name", "ECHO"),
        ),
        ("two names", MISMATCH, echo.clone().and("Mcp-Name", "add")),
        (
            "two methods",
            MISMATCH,
            echo.clone().and("Mcp-Method", "tools/call"),
        ),
        (
            "the same version twice",
            "200",
            echo.clone().and("MCP-Protocol-Version", "2026-07-28"),
        ),
        (
            "another name, encoded",
            MISMATCH,
            echo.clone().header("Mcp-Name", "=?base64?YWRk?="),
        ),
        (
            "another version than the body's",
            "400",
            echo.clone().header("MCP-Protocol-Version", "2025-11-25"),
        ),
        (
            "no version",
            "400",
            echo.clone().without("MCP-Protocol-Version"),
        ),
        (
            "the name twice in the body",
            "400 must not repeat a member",
            body(&twice),
        ),
        (
            "the name twice in the body, once escaped",
            "400 must not repeat a member",
            body(&escaped),
        ),
        (
            "the method twice in the body",
            "400 duplicate",
            body(&methods),
        ),
        ("a batch", "400", body(&format!("[{}]", echo.body))),
    ] {
        family.row(attack, expected, request.send(&server.mcp).await);
    }
    let read = Request::modern("resources/read", json!({ "uri": "demo://readme" }));
    let other = read.header("Mcp-Name", "demo://logo");
    family.row("another resource", MISMATCH, other.send(&server.mcp).await);
    family
}
