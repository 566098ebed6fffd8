//! Approval, checks, audit and tool must all see the same text.

use std::path::PathBuf;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::audit::read;
use crate::client::{Events, Session, modern_call, post_modern, response};
use crate::process::Server;
use crate::reload::setting::ConfigFile;

const RECORDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/recorder.py");
const RULES: &str = r#"
[[policy.rules]]
name = "all"
effect = "allow"

[[policy.rules]]
name = "ask"
effect = "ask"
tools = ["pay"]

[audit]
arguments = ["*"]
"#;
/// Some readers round or rewrite these numbers.
const NUMBERS: [&str; 8] = [
    "9007199254740993",
    "-9223372036854775809",
    "18446744073709551617",
    "123456789012345678901234567890.5",
    "0.1000000000000000055511151231257828",
    "-0",
    "1.0",
    "1E+2",
];
/// Two readers could take these for different calls.
const AMBIGUOUS: [&str; 9] = [
    r#""name":"pay","arguments":{"amount":1,"amount":1000}"#,
    r#""name":"pay","arguments":{"amount":1,"\u0061mount":1000}"#,
    r#""name":"pay","arguments":{"amount":1,"note":"x","more":[[{"to":{"a":1,"b":2,"a":3}}]]}"#,
    r#""name":"pay","arguments":{"amount":1},"arguments":{"amount":1000}"#,
    r#""name":"pay","\u0061rguments":{"amount":1000},"arguments":{"amount":1}"#,
    r#""name":"pay","name":"pay","arguments":{"amount":1}"#,
    r#""name":"pay","arguments":{"amount":1},"_meta":{"progressToken":1,"progressToken":2}"#,
    r#""name":"pay","arguments":{"amount":1},"unknown":{"x":1,"x":1}"#,
    r#""name":"pay","arguments":{"amount":1,"\ud800":1,"\udfff":2}"#,
];

struct Setting {
    server: Server,
    trail: PathBuf,
    calls: PathBuf,
    _place: ConfigFile,
}

impl Setting {
    async fn start() -> Self {
        Self::start_with("").await
    }

    async fn start_with(setting: &str) -> Self {
        let place = ConfigFile::new("");
        let (trail, calls) = (place.beside("audit.jsonl"), place.beside("calls.jsonl"));
        let run = format!(
            "command = 'python3', args = ['{RECORDER}', '{}']",
            calls.display()
        );
        place.write(&format!(
            "{RULES}\n[pools.recorder]\nbackend = {{ stdio = {{ {run} }} }}\n{setting}\n"
        ));
        let environment = [("SHOAL_AUDIT__FILE", trail.to_str().unwrap())];
        let server = Server::start_with(&["--config", place.path()], &environment).await;
        Self {
            server,
            trail,
            calls,
            _place: place,
        }
    }

    fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.calls).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    async fn stop(&mut self) {
        self.server.signal(Signal::SIGTERM);
        let code = self.server.exit_code().await;
        assert_eq!(code, 0, "{}", self.server.log());
    }

    fn recorded(&self, arguments: &str) -> usize {
        let has = |event: &&Value| {
            let mut members = event.as_object().unwrap().values();
            members.any(|value| value == arguments)
        };
        read(&self.trail).iter().filter(has).count()
    }

    /// The person must see `shown`, and the tool must get `sent`, in both eras.
    async fn pay(&self, session: &Session, arguments: &str, shown: &str, sent: &str) {
        let named = format!(r#""name":"pay","arguments":{arguments}"#);
        let post = session.post(&json!({})).body(call(&format!("{{{named}}}")));
        let mut events = Events::of(post.send().await.unwrap());
        let question = events.message().await;
        let message = question["params"]["message"].as_str();
        let message = message.unwrap_or_else(|| panic!("{question}"));
        assert!(message.contains(shown), "{message}");
        let yes =
            json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept" } });
        assert_eq!(session.post(&yes).send().await.unwrap().status(), 202);
        let paid = events.message().await;
        assert_eq!(paid["result"]["content"][0]["text"], "paid", "{paid}");
        let asked = self.modern(&named).await;
        let question = &asked["result"]["inputRequests"]["approval"];
        let message = question["params"]["message"].as_str();
        let message = message.unwrap_or_else(|| panic!("{asked}"));
        assert!(message.contains(shown), "{message}");
        let state = asked["result"]["requestState"].as_str().unwrap();
        let yes = r#""inputResponses":{"approval":{"action":"accept"}}"#;
        let paid = format!(r#"{named},{yes},"requestState":"{state}""#);
        let paid = self.modern(&paid).await;
        assert_eq!(paid["result"]["content"][0]["text"], "paid", "{paid}");
        let got = self.calls();
        for call in &got[got.len() - 2..] {
            assert!(call.contains(&format!(r#""arguments":{sent}"#)), "{call}");
        }
    }

    async fn modern(&self, members: &str) -> Value {
        let message = modern_call(1, "pay", json!({}));
        let mut meta = message["params"]["_meta"].clone();
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
        let params = match members.contains("_meta") {
            true => format!("{{{members}}}"),
            false => format!(r#"{{{members},"_meta":{meta}}}"#),
        };
        let post = post_modern(&self.server.mcp, &message).body(call(&params));
        response(post.send().await.unwrap()).await
    }
}

fn call(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
}

#[tokio::test]
async fn a_number_is_the_same_for_everybody_who_reads_it() {
    let mut setting = Setting::start().await;
    let elicitation = json!({ "elicitation": {} });
    let session = Session::open_with(&setting.server.mcp, elicitation).await;
    for number in NUMBERS {
        let arguments = format!(r#"{{"amount":{number},"note":"a{}b"}}"#, '\u{2028}');
        let shown = format!("\"amount\": {number},\n  \"note\": \"a\\u2028b\"");
        setting.pay(&session, &arguments, &shown, &arguments).await;
    }
    assert_eq!(setting.calls().len(), 2 * NUMBERS.len());
    setting.stop().await;
    let trail = std::fs::read_to_string(&setting.trail).unwrap();
    assert!(!trail.contains('\u{2028}'));
    for number in NUMBERS {
        let arguments = format!(r#"{{"amount":{number},"note":"a{}b"}}"#, '\u{2028}');
        assert!(setting.recorded(&arguments) >= 2, "{number}: {trail}");
    }
}

#[tokio::test]
async fn what_readers_could_take_for_two_calls_reaches_nobody() {
    let mut setting = Setting::start().await;
    let elicitation = json!({ "elicitation": {} });
    let session = Session::open_with(&setting.server.mcp, elicitation).await;
    let asked = setting
        .modern(r#""name":"pay","arguments":{"amount":1}"#)
        .await;
    let state = asked["result"]["requestState"].as_str().unwrap();
    let yes = r#""inputResponses":{"approval":{"action":"accept"}}"#;
    for members in AMBIGUOUS {
        let legacy = session
            .post(&json!({}))
            .body(call(&format!("{{{members}}}")));
        let legacy = response(legacy.send().await.unwrap()).await;
        let modern = setting.modern(members).await;
        let retry = format!(r#"{members},{yes},"requestState":"{state}""#);
        let retry = setting.modern(&retry).await;
        for refused in [legacy, modern, retry] {
            assert_eq!(refused["error"]["code"], -32602, "{members} {refused}");
            assert_eq!(refused["id"], 1, "{members} {refused}");
        }
    }
    let twice = format!(
        r#""name":"pay","arguments":{{"amount":1}},{yes},"inputResponses":{{"approval":{{"action":"decline"}}}},"requestState":"{state}""#
    );
    assert_eq!(setting.modern(&twice).await["error"]["code"], -32602);
    assert!(setting.calls().is_empty());
    // The refused requests did not use up the `requestState`.
    let paid = format!(r#""name":"pay","arguments":{{"amount":1}},{yes},"requestState":"{state}""#);
    let paid = setting.modern(&paid).await;
    assert_eq!(paid["result"]["content"][0]["text"], "paid", "{paid}");
    assert_eq!(setting.calls().len(), 1);
    setting.stop().await;
}

/// Common clients write such arguments: a number and a list as text, and an extra member.
const HABITS: &str = r#"{"amount":"9007199254740993","tags":"[\"a\", 1.0]","sessionId":"n8n"}"#;
const MEANT: &str = r#"{"amount":9007199254740993,"tags":["a"]}"#;
const READABLE: &str = r#"{"amount":"9007199254740993","tags":"[\"a\"]","sessionId":"n8n"}"#;

#[tokio::test]
async fn arguments_that_differ_as_those_of_common_clients_are_one_text_too() {
    let elicitation = json!({ "elicitation": {} });
    let mut setting = Setting::start().await;
    let session = Session::open_with(&setting.server.mcp, elicitation.clone()).await;
    let shown = "\"amount\": \"9007199254740993\"";
    setting.pay(&session, HABITS, shown, HABITS).await;
    setting.stop().await;
    assert!(setting.recorded(HABITS) >= 2);

    let mut setting = Setting::start_with("arguments = 'coerce'").await;
    let session = Session::open_with(&setting.server.mcp, elicitation.clone()).await;
    let shown = "\"amount\": 9007199254740993,\n  \"tags\": [\n    \"a\"\n  ]\n}";
    setting.pay(&session, READABLE, shown, MEANT).await;
    setting.pay(&session, HABITS, "n8n", HABITS).await;
    setting.stop().await;
    assert!(setting.recorded(MEANT) >= 2);
    assert_eq!(setting.recorded(READABLE), 0);

    let mut setting = Setting::start_with("arguments = 'strict'").await;
    let session = Session::open_with(&setting.server.mcp, elicitation).await;
    let named = format!(r#""name":"pay","arguments":{READABLE}"#);
    let legacy = session.post(&json!({})).body(call(&format!("{{{named}}}")));
    let legacy = response(legacy.send().await.unwrap()).await;
    for refused in [legacy, setting.modern(&named).await] {
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        let why = refused["result"]["content"][0]["text"].as_str().unwrap();
        assert!(
            why.contains("/amount") && why.contains("sessionId"),
            "{why}"
        );
    }
    assert!(setting.calls().is_empty());
    setting.stop().await;
}

#[tokio::test]
async fn what_is_wrong_otherwise_is_refused_before_the_server_sees_it() {
    for setting in ["", "arguments = 'coerce'", "arguments = 'strict'"] {
        let mut setting = Setting::start_with(setting).await;
        for arguments in [
            r#"{"amount":true}"#,
            r#"{"sessionId":"x"}"#,
            r#"{"amount":1,"note":5}"#,
        ] {
            let named = format!(r#""name":"pay","arguments":{arguments}"#);
            let refused = setting.modern(&named).await;
            assert_eq!(refused["result"]["isError"], true, "{refused}");
        }
        assert!(setting.calls().is_empty());
        setting.stop().await;
    }
}
