use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use shoal_auth::fixture::AuthorizationServer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::time::timeout;

use crate::process::shoal;

pub(crate) const RESOURCE: &str = "https://mcp.example.com/mcp";

const HANGS: Duration = Duration::from_secs(15);

pub(crate) struct Family {
    name: &'static str,
    rows: Vec<Row>,
}

struct Row {
    attack: String,
    /// A status, then words that the answer contains.
    expected: &'static str,
    got: String,
}

impl Row {
    fn holds(&self) -> bool {
        let (status, words) = self.expected.split_once(' ').unwrap_or((self.expected, ""));
        let (got, said) = self.got.split_once(' ').unwrap_or((&self.got, ""));
        status == got && said.contains(words)
    }
}

impl Family {
    pub(crate) fn new(name: &'static str) -> Self {
        let rows = Vec::new();
        Self { name, rows }
    }

    pub(crate) fn row(
        &mut self,
        attack: impl Into<String>,
        expected: &'static str,
        got: impl Into<String>,
    ) {
        let (attack, got) = (attack.into(), got.into());
        self.rows.push(Row {
            attack,
            expected,
            got,
        });
    }

    pub(crate) fn is(&mut self, attack: impl Into<String>, expected: bool, got: bool) {
        let words = |value| if value { "yes" } else { "no" };
        self.row(attack, words(expected), words(got));
    }
}

#[allow(clippy::print_stdout, reason = "the table is what is asked for")]
pub(crate) fn judge(families: &[Family]) {
    let (mut table, mut wrong, mut all) = (String::new(), 0, 0);
    for family in families {
        for row in &family.rows {
            all += 1;
            let mark = if row.holds() { "  " } else { "!!" };
            wrong += usize::from(!row.holds());
            let got: String = row.got.chars().take(110).collect();
            let got = got.replace(['\r', '\n'], " ");
            writeln!(
                table,
                "{mark} {} | {} | {} | {got}",
                family.name, row.attack, row.expected
            )
            .unwrap();
        }
    }
    println!("{table}{all} attacks, {wrong} unexpected answers");
    assert_eq!(wrong, 0, "unexpected answers:\n{table}");
    assert!(all >= 60, "{all} attacks are too few");
}

pub(crate) fn serve(environment: &[(&str, &str)]) -> Command {
    let ports = ["--admin", "127.0.0.1:0", "--listen", "127.0.0.1:0"];
    let mut command = shoal(&["serve", "--demo"]);
    command.args(ports).envs(environment.iter().copied());
    command
}

pub(crate) fn trusting(issuer: &AuthorizationServer) -> Command {
    let issuers = format!(
        "[{{ issuer = '{}', algorithms = ['ES256', 'RS256'] }}]",
        issuer.issuer
    );
    serve(&[
        ("SHOAL_AUTH__MODE", "oauth"),
        ("SHOAL_AUTH__RESOURCE", RESOURCE),
        ("SHOAL_AUTH__ISSUERS", &issuers),
        ("SHOAL_AUTH__REQUIRED_SCOPES", "['mcp']"),
        ("SHOAL_LOGGING__LEVEL", "debug"),
    ])
}

#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) line: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn modern(method: &str, params: Value) -> Self {
        Self::able(method, params, &json!({}))
    }

    pub(crate) fn able(method: &str, mut params: Value, capabilities: &Value) -> Self {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        let named = ["name", "uri", "taskId"].map(|member| params[member].as_str());
        let name = named.into_iter().flatten().next().map(str::to_owned);
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let request = Self::post(&body.to_string())
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", method);
        match name {
            Some(name) => request.header("Mcp-Name", &name),
            None => request,
        }
    }

    pub(crate) fn call(tool: &str, arguments: Value) -> Self {
        Self::modern(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
    }

    /// Every known caller may make this call.
    pub(crate) fn echo() -> Self {
        Self::call("echo", json!({ "text": "hello" }))
    }

    pub(crate) fn post(body: &str) -> Self {
        Self::of("POST /mcp", body).header("Content-Type", "application/json")
    }

    pub(crate) fn of(line: &str, body: &str) -> Self {
        Self {
            line: format!("{line} HTTP/1.1"),
            headers: Vec::new(),
            body: body.to_owned(),
        }
        .header("Host", "127.0.0.1")
        .header("Connection", "close")
        .header("Accept", "application/json, text/event-stream")
        .header("Content-Length", &body.len().to_string())
    }

    pub(crate) fn header(self, name: &str, value: &str) -> Self {
        self.without(name).and(name, value)
    }

    pub(crate) fn and(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    pub(crate) fn bearer(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{}\r\n", self.line);
        for (name, value) in &self.headers {
            write!(text, "{name}: {value}\r\n").unwrap();
        }
        format!("{text}\r\n{}", self.body).into_bytes()
    }

    pub(crate) async fn send(&self, url: &str) -> String {
        raw(url, &self.bytes()).await
    }
}

pub(crate) fn address(url: &str) -> &str {
    let rest = url.strip_prefix("http://").unwrap();
    rest.split('/').next().unwrap()
}

/// Reads until the server closes. Returns the statuses of all answers, then their text.
pub(crate) async fn raw(url: &str, bytes: &[u8]) -> String {
    let mut socket = TcpStream::connect(address(url)).await.unwrap();
    let _ = socket.write_all(bytes).await;
    said(&mut socket).await
}

pub(crate) async fn said(socket: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let end = timeout(HANGS, socket.read_to_end(&mut text)).await;
    let text = String::from_utf8_lossy(&text).into_owned();
    let heads = text.split("HTTP/1.1 ").skip(1);
    let statuses: Vec<&str> = heads.filter_map(|head| head.get(..3)).collect();
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    match (statuses.is_empty(), end) {
        (false, _) => format!("{} {body}", statuses.join(",")),
        (true, Ok(_)) => "closed".to_owned(),
        (true, Err(_)) => "silent".to_owned(),
    }
}
