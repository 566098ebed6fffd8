use rand::Rng as _;
use rand::rngs::StdRng;

use crate::pick::{odd, often, one};

/// The parts of a modern request that its headers repeat.
pub(crate) struct Mirrored {
    pub(crate) method: String,
    pub(crate) name: Option<String>,
}

const IDS: [&str; 22] = [
    "\"a\"",
    "\"\"",
    "0",
    "-1",
    "-0",
    "1.0",
    "1.5",
    "1e3",
    "1E400",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "123456789012345678901234567890",
    "null",
    "true",
    "[]",
    "{}",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"caf\\u00e9\"",
    "\"1\"",
];
const NUMBERS: [&str; 18] = [
    "1",
    "-0",
    "-0.0",
    "1.0",
    "1e0",
    "1e308",
    "1e999",
    "-1e999",
    "1e-400",
    "0.1",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "123456789012345678901234567890.5",
    "01",
    "NaN",
];
const METHODS: [&str; 24] = [
    "ping",
    "initialize",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
    "notifications/unknown",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
    "logging/setLevel",
    "server/discover",
    "sampling/createMessage",
    "tasks/get",
    "TOOLS/LIST",
    "tools/list ",
    "",
    "rpc.discover",
    "unknown/method",
];
const PARAMS: [&str; 22] = [
    "{}",
    "[]",
    "null",
    "\"x\"",
    "1",
    r#"{"cursor":"x"}"#,
    r#"{"cursor":1}"#,
    r#"{"cursor":""}"#,
    r#"{"cursor":null}"#,
    r#"{"name":"unknown"}"#,
    r#"{"name":7}"#,
    r#"{"name":null}"#,
    r#"{"uri":"demo://nowhere"}"#,
    r#"{"uri":7}"#,
    r#"{"level":"info"}"#,
    r#"{"level":"loud"}"#,
    r#"{"requestId":1}"#,
    r#"{"requestId":"never","reason":"x"}"#,
    r#"{"progressToken":1,"progress":1}"#,
    r#"{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":"b"}}"#,
    r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#,
    r#"{"a":1,"a":2}"#,
];
const TOOLS: [&str; 9] = [
    "echo",
    "echo_once",
    "add",
    "fail",
    "nothing",
    "",
    "ECHO",
    "caf\u{e9}",
    "echo\\u0000",
];
const WHOLE: [&str; 20] = [
    "",
    " ",
    "{",
    "null",
    "1",
    "\"ping\"",
    "[]",
    "[[]]",
    "[1,2]",
    "{}",
    "{\"jsonrpc\":\"2.0\"}",
    "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} x",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}{}",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",}",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
    "{\"jsonrpc\":\"2.0\",\"id\":\"never\",\"error\":{\"code\":-1,\"message\":\"x\"}}",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{\"code\":-1,\"message\":\"x\"}}",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"method\":\"ping\"}",
    "{'jsonrpc':'2.0'}",
];

pub(crate) fn random(random: &mut StdRng, modern: bool) -> (String, Option<Mirrored>) {
    match random.random_range(0..100) {
        0..8 => (one(random, &WHOLE).to_string(), None),
        8..18 => (batch(random, modern), None),
        18..20 => (nested(random), None),
        20 => ("x".repeat(70_000), None),
        _ => {
            let (text, mirrored) = message(random, modern);
            (text, Some(mirrored))
        }
    }
}

fn batch(random: &mut StdRng, modern: bool) -> String {
    let count = random.random_range(0..4);
    let mut members: Vec<String> = (0..count)
        .map(|_| match often(random, 15) {
            true => one(random, &WHOLE).to_string(),
            false => message(random, modern).0,
        })
        .collect();
    if often(random, 20)
        && let Some(first) = members.first().cloned()
    {
        members.push(first);
    }
    format!("[{}]", members.join(","))
}

fn nested(random: &mut StdRng) -> String {
    let depth = *one(random, &[40, 61, 62, 63, 64, 65, 200]);
    let (open, close) = ("[".repeat(depth), "]".repeat(depth));
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{open}1{close}}}}}"#)
}

fn message(random: &mut StdRng, modern: bool) -> (String, Mirrored) {
    let usual = random.random_range(1..1_000_000).to_string();
    let long = format!("\"{}\"", "i".repeat(300));
    let id = match often(random, 2) {
        true => long.as_str(),
        false => odd(random, 25, &usual, &IDS),
    };
    let (method, name, params) = match random.random_range(0..10) {
        0..4 => call(random, modern),
        4 => ("tools/list", None, meta(random, modern, "")),
        5 => {
            let usual = [
                "demo://greeting",
                "demo://counter",
                "demo://x",
                "file:///etc/passwd",
            ];
            let uri = *one(random, &usual);
            (
                "resources/read",
                Some(uri),
                meta(random, modern, &format!(r#""uri":"{uri}""#)),
            )
        }
        _ => {
            let params = one(random, &PARAMS).to_string();
            let params = match params
                .strip_prefix('{')
                .and_then(|rest| rest.strip_suffix('}'))
            {
                Some(members) if often(random, 70) => meta(random, modern, members),
                _ => params,
            };
            (*one(random, &METHODS), None, params)
        }
    };
    let mut members = vec![
        format!(
            r#""jsonrpc":{}"#,
            odd(
                random,
                3,
                "\"2.0\"",
                &["\"1.0\"", "2.0", "null", "\"2.0 \""]
            )
        ),
        format!(r#""method":"{method}""#),
    ];
    if !(method.starts_with("notifications/") && often(random, 90) || often(random, 4)) {
        members.push(format!(r#""id":{id}"#));
    }
    if often(random, 94) {
        members.push(format!(r#""params":{params}"#));
    }
    if often(random, 3) {
        let more = [
            r#""more":1"#,
            r#""id":1"#,
            r#""method":"ping""#,
            r#""jsonrpc":"2.0""#,
            r#""result":{}"#,
        ];
        members.push(one(random, &more).to_string());
    }
    let mirrored = Mirrored {
        method: method.to_owned(),
        name: name.map(str::to_owned),
    };
    (format!("{{{}}}", members.join(",")), mirrored)
}

fn call(random: &mut StdRng, modern: bool) -> (&'static str, Option<&'static str>, String) {
    let tool = *one(random, &TOOLS);
    let (a, b) = (one(random, &NUMBERS), one(random, &NUMBERS));
    let good = match tool {
        "add" => format!(r#"{{"a":{a},"b":{b}}}"#),
        "fail" => r#"{"message":"on purpose"}"#.to_owned(),
        _ => r#"{"text":"h\u00e9llo \ud83d\ude00 \u0001"}"#.to_owned(),
    };
    let number = format!(r#"{{"text":{a}}}"#);
    let odd_ones = [
        "{}",
        "[]",
        "null",
        "\"x\"",
        r#"{"text":1}"#,
        r#"{"text":null}"#,
        r#"{"text":"\ud800"}"#,
        r#"{"text":"a","more":1e400}"#,
        r#"{"text":"a","text":"b"}"#,
        r#"{"text":"a","\u0074ext":"b"}"#,
        r#"{"text":"a","more":[{"x":{"y":1,"y":2}}]}"#,
        r#"{"text":"a","\ud800":1}"#,
        &number,
    ];
    let arguments = odd(random, 30, &good, &odd_ones);
    let more = odd(
        random,
        15,
        "",
        &[
            r#","task":{"ttl":1000}"#,
            r#","requestState":"forged""#,
            r#","inputResponses":{}"#,
            r#","inputResponses":{"a":{"action":"accept"}},"requestState":"x""#,
            r#","name":"add""#,
            r#","unknown":[1e999]"#,
            r#","unknown":[{"a":1,"a":2}]"#,
            r#","_meta":{"a":1,"a":2}"#,
            r#","argum\u0065nts":{"text":"b"}"#,
        ],
    );
    let members = match often(random, 6) {
        true => format!(r#""name":"{tool}"{more}"#),
        false => format!(r#""name":"{tool}","arguments":{arguments}{more}"#),
    };
    ("tools/call", Some(tool), meta(random, modern, &members))
}

fn meta(random: &mut StdRng, modern: bool, members: &str) -> String {
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let capabilities = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
    let whole = format!("{version},{capabilities}");
    let elicits =
        format!(r#"{version},"io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{}}}}"#);
    let legacy = whole.replace("2026-07-28", "2025-11-25");
    let future = whole.replace("2026-07-28", "2099-01-01");
    let level = format!(r#"{whole},"io.modelcontextprotocol/logLevel":"loud""#);
    let odd_ones = [
        "",
        version,
        capabilities,
        &elicits,
        &legacy,
        &future,
        &level,
        r#""progressToken":"t""#,
        r#""progressToken":1.5"#,
    ];
    let meta = match modern {
        true => odd(random, 12, &whole, &odd_ones),
        false => odd(random, 12, "-", &odd_ones),
    };
    match (meta, members) {
        ("-", members) => format!("{{{members}}}"),
        (meta, "") => format!(r#"{{"_meta":{{{meta}}}}}"#),
        (meta, members) => format!(r#"{{{members},"_meta":{{{meta}}}}}"#),
    }
}
