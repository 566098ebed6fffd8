//! The rows of `rows.md`: tests compare answers with them, and check that `docs/errors.md` explains each.

use std::collections::BTreeSet;

use reqwest::RequestBuilder;
use serde_json::Value;

use crate::server::header;

const ROWS: &str = include_str!("rows.md");
const PAGE: &str = include_str!("../../../../../docs/errors.md");

#[derive(Clone, Debug)]
pub(super) struct Row {
    what: String,
    status: u16,
    code: i64,
    message: String,
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for line in ROWS.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [what, status, code, message] = cells[..] else {
            continue;
        };
        if let (Ok(status), Ok(code)) = (status.parse(), code.parse()) {
            let (what, message) = (what.to_owned(), message.to_owned());
            rows.push(Row {
                what,
                status,
                code,
                message,
            });
        }
    }
    rows
}

pub(super) struct Rows {
    rows: Vec<Row>,
    seen: BTreeSet<String>,
}

impl Rows {
    pub(super) fn new() -> Self {
        let (rows, seen) = (rows(), BTreeSet::new());
        Self { rows, seen }
    }

    pub(super) fn row(&mut self, what: &str) -> Row {
        assert!(self.seen.insert(what.to_owned()), "{what} is tested twice");
        let row = self.rows.iter().find(|row| row.what == what);
        row.unwrap_or_else(|| panic!("rows.md has no row {what:?}"))
            .clone()
    }

    pub(super) async fn check(&mut self, what: &str, request: RequestBuilder) -> Value {
        let row = self.row(what);
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let retry_after = header(&answer, "retry-after").to_owned();
        assert_eq!(
            header(&answer, "content-type"),
            "application/json",
            "{what}"
        );
        let body = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        compare(&row, status, &body);
        let says_when = matches!(status, 429 | 503);
        assert_eq!(
            retry_after.parse::<u64>().is_ok(),
            says_when,
            "{what}: {retry_after:?}"
        );
        body
    }

    pub(super) fn unexplained(&self) -> Vec<&Row> {
        let explained: BTreeSet<(i64, u16)> = PAGE.lines().flat_map(explained).collect();
        let rows = self.rows.iter();
        rows.filter(|row| !explained.contains(&(row.code, row.status)))
            .collect()
    }

    pub(super) fn untested(&self) -> Vec<&Row> {
        let rows = self.rows.iter();
        rows.filter(|row| !self.seen.contains(&row.what)).collect()
    }

    pub(super) async fn check_id(&mut self, what: &str, request: RequestBuilder) -> Value {
        let body = self.check(what, request).await;
        assert_eq!(body["id"], 7, "{what}");
        body
    }
}

fn explained(line: &str) -> Vec<(i64, u16)> {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [code, statuses, _, _] = cells[..] else {
        return Vec::new();
    };
    let Ok(code) = code.parse() else {
        return Vec::new();
    };
    let statuses = statuses
        .split(", ")
        .filter_map(|status| status.parse().ok());
    statuses.map(|status| (code, status)).collect()
}

pub(super) fn compare(row: &Row, status: u16, body: &Value) {
    let what = &row.what;
    assert_eq!(status, row.status, "{what}: {body}");
    assert_eq!(body["jsonrpc"], "2.0", "{what}");
    assert_eq!(body["error"]["code"], row.code, "{what}: {body}");
    let mut rest = body["error"]["message"].as_str().unwrap();
    for (at, part) in row.message.split('…').enumerate() {
        let found = rest.find(part).unwrap_or_else(|| panic!("{what}: {body}"));
        assert!(at > 0 || found == 0, "{what}: {body}");
        rest = &rest[found + part.len()..];
    }
    assert!(
        rest.is_empty() || row.message.ends_with('…'),
        "{what}: {body}"
    );
}
