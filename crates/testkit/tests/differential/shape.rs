//! A request with placeholders for the ids that each server assigns.

use rand::rngs::StdRng;

use crate::body;
use crate::headers;
use crate::pick::{odd, often, one};

pub(crate) const SESSION: &str = "{session}";
pub(crate) const EVENT: &str = "{event}";

#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) method: &'static str,
    pub(crate) head: String,
    pub(crate) body: String,
}

const PATHS: [&str; 12] = [
    "/mcp/",
    "//mcp",
    "/mcp%2f",
    "/%6dcp",
    "/MCP",
    "/mcp?x=1",
    "/mcp;a",
    "/./mcp",
    "http://localhost/mcp",
    "/",
    "/sse/x",
    "/messages?sessionId=unknown",
];

impl Shape {
    pub(crate) fn random(random: &mut StdRng) -> Self {
        let method = match often(random, 82) {
            true => "POST",
            false => one(
                random,
                &[
                    "GET", "GET", "GET", "DELETE", "OPTIONS", "HEAD", "PUT", "PATCH",
                ],
            ),
        };
        let modern = often(random, 40);
        let (body, mirrored) = match method {
            "POST" => body::random(random, modern),
            _ => (String::new(), None),
        };
        // A deleted session would end the conversation.
        let session = match method {
            "DELETE" => one(random, &["unknown", "", "a b", "{session}x"]),
            _ => odd(
                random,
                10,
                SESSION,
                &["unknown", "", "a b", "{session}x", "-"],
            ),
        };
        let path = odd(random, 6, "/mcp", &PATHS);
        let lines = headers::random(random, method, modern, session, mirrored.as_ref());
        let head = format!("{method} {path} HTTP/1.1\r\n{lines}");
        Self { method, head, body }
    }

    pub(crate) fn bytes(&self, session: &str, event: &str) -> Vec<u8> {
        let head = self.head.replace(SESSION, session).replace(EVENT, event);
        let length = match self.method {
            "POST" | "PUT" | "PATCH" => format!("Content-Length: {}\r\n", self.body.len()),
            _ => String::new(),
        };
        format!("{head}{length}Connection: close\r\n\r\n{}", self.body).into_bytes()
    }
}
