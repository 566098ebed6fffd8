use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::audit::{count, read};
use crate::client::{
    Events, call, initialized, modern_call, post, post_modern, request, response, text,
};
use crate::process::Server;
use crate::reload::setting::ConfigFile;
use crate::websocket::{self, stream_to};

const RULES: &[(&str, &str)] = &[(
    "SHOAL_POLICY__RULES",
    r#"[{ name = "all", effect = "allow" }, { name = "ask", effect = "ask", tools = ["increment_counter"] }]"#,
)];
const TOOL: &str = "increment_counter";
/// The client calls the tool again with the answer to its first result.
const ROUNDS: &str = "test_input_required_result_elicitation";

async fn counted(server: &Server) -> u64 {
    let params = json!({ "uri": "demo://counter" });
    let read = crate::client::modern(90, "resources/read", params);
    let read = post_modern(&server.mcp, &read).header("mcp-name", "demo://counter");
    let read = response(read.send().await.unwrap()).await;
    let text = read["result"]["contents"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("{read}"));
    let counter: Value = serde_json::from_str(text).unwrap();
    counter["value"].as_u64().unwrap()
}

struct Client {
    url: String,
    session: String,
}

impl Client {
    async fn open(server: &Server, revision: &str, capabilities: Value) -> Self {
        let params = json!({
            "protocolVersion": revision,
            "capabilities": capabilities,
            "clientInfo": { "name": "test", "version": "1" },
        });
        let opened = post(&server.mcp, &request(0, "initialize", params));
        let opened = opened.send().await.unwrap();
        let session = opened.headers()["mcp-session-id"].to_str().unwrap();
        let client = Self {
            url: server.mcp.clone(),
            session: session.to_owned(),
        };
        assert_eq!(client.post(&initialized()).await.status(), 202);
        client
    }

    async fn post(&self, message: &Value) -> reqwest::Response {
        let post = post(&self.url, message).header("mcp-session-id", &self.session);
        post.send().await.unwrap()
    }
}

fn answer(question: &Value, action: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": action } })
}

#[tokio::test]
async fn a_legacy_client_asks_on_the_stream_of_the_call() {
    let server = Server::start_with(&["--demo"], RULES).await;
    let elicitation = json!({ "elicitation": {} });
    let client = Client::open(&server, "2025-06-18", elicitation).await;
    let listed = response(client.post(&request(1, "tools/list", json!({}))).await).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == TOOL), "{listed}");
    for (id, action, count) in [(2, "decline", 0), (3, "cancel", 0), (4, "accept", 1)] {
        let mut events = Events::of(client.post(&call(id, TOOL, json!({}))).await);
        let question = events.message().await;
        assert_eq!(question["method"], "elicitation/create", "{question}");
        let message = question["params"]["message"].as_str().unwrap();
        assert!(message.starts_with("Allow one call of the tool increment_counter"));
        assert_eq!(counted(&server).await, 0);
        assert_eq!(client.post(&answer(&question, action)).await.status(), 202);
        let result = events.message().await;
        assert_eq!(result["id"], id, "{result}");
        let refused = result["result"]["isError"] == true;
        assert_eq!(refused, action != "accept", "{result}");
        assert_eq!(counted(&server).await, count);
        assert!(events.next().await.is_none());
    }
    // Other tools need no approval.
    let echo = call(5, "echo", json!({ "text": "x" }));
    assert_eq!(text(&response(client.post(&echo).await).await), "x");
    let unable = Client::open(&server, "2025-06-18", json!({})).await;
    let refused = response(unable.post(&call(6, TOOL, json!({}))).await).await;
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    assert_eq!(counted(&server).await, 1);
}

#[tokio::test]
async fn a_client_on_a_websocket_is_asked_too() {
    let environment = [RULES[0], ("SHOAL_SERVER__WEBSOCKET", "true")];
    let server = Server::start_with(&["--demo"], &environment).await;
    let stream = stream_to(&server, None).await;
    let mut client = websocket::Client::open_on(stream, "mcp.resume").await;
    let question = client.ask(&call(1, TOOL, json!({}))).await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    assert_eq!(counted(&server).await, 0);
    let result = client.ask(&answer(&question, "accept")).await;
    assert_eq!(result["id"], 1, "{result}");
    assert_eq!(counted(&server).await, 1);
}

fn asking_call(id: u64, tool: &str, arguments: Value, more: &Value) -> Value {
    let mut message = modern_call(id, tool, arguments);
    let capabilities = &mut message["params"]["_meta"];
    capabilities["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
    for (name, value) in more.as_object().unwrap() {
        message["params"][name] = value.clone();
    }
    message
}

#[tokio::test]
async fn a_modern_client_comes_back_with_the_answer() {
    let server = Server::start_with(&["--demo"], RULES).await;
    let calling = |id, more: &Value| asking_call(id, TOOL, json!({}), more);
    let ask = async |message: &Value| {
        let asked = post_modern(&server.mcp, message).send().await.unwrap();
        response(asked).await
    };
    let unable = ask(&modern_call(1, TOOL, json!({}))).await;
    let needed = &unable["error"]["data"]["requiredCapabilities"];
    assert_eq!(*needed, json!({ "elicitation": {} }), "{unable}");
    let asked = ask(&calling(2, &json!({}))).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let state = &asked["result"]["requestState"];
    let with = |action: &str| {
        let responses = json!({ "approval": { "action": action } });
        json!({ "requestState": state, "inputResponses": responses })
    };
    let done = ask(&calling(4, &with("accept"))).await;
    assert!(done["result"]["content"].is_array(), "{done}");
    // The same state means the same call, which has already run.
    let again = ask(&calling(5, &with("accept"))).await;
    assert_eq!(counted(&server).await, 1, "{again}");
}

#[tokio::test]
async fn after_a_no_the_same_state_begins_nothing() {
    let server = Server::start_with(&["--demo"], RULES).await;
    let ask = async |more: &Value| {
        let message = asking_call(1, TOOL, json!({}), more);
        let asked = post_modern(&server.mcp, &message).send().await.unwrap();
        response(asked).await
    };
    for no in ["decline", "cancel", "maybe"] {
        let asked = ask(&json!({})).await;
        let state = &asked["result"]["requestState"];
        let with = |action: &str| {
            let responses = json!({ "approval": { "action": action } });
            json!({ "requestState": state, "inputResponses": responses })
        };
        let refused = ask(&with(no)).await;
        assert_eq!(refused["result"]["isError"], true, "{no} {refused}");
        // A refused call stays refused.
        for action in ["accept", no, "accept"] {
            let late = ask(&with(action)).await;
            match action {
                "accept" => assert_eq!(late["error"]["code"], -32602, "{no} {late}"),
                _ => assert_eq!(late["result"]["isError"], true, "{no} {late}"),
            }
        }
        assert_eq!(counted(&server).await, 0, "{no}");
    }
}

#[tokio::test]
async fn what_the_rules_say_of_a_legacy_call_is_recorded_once() {
    let place = ConfigFile::new("");
    let file = place.beside("audit.jsonl");
    let environment = [RULES[0], ("SHOAL_AUDIT__FILE", file.to_str().unwrap())];
    let mut server = Server::start_with(&["--demo"], &environment).await;
    let elicitation = json!({ "elicitation": {} });
    let client = Client::open(&server, "2025-06-18", elicitation).await;
    for (id, action) in [(1, "decline"), (2, "accept")] {
        let mut events = Events::of(client.post(&call(id, TOOL, json!({}))).await);
        let question = events.message().await;
        assert_eq!(client.post(&answer(&question, action)).await.status(), 202);
        assert_eq!(events.message().await["id"], id);
    }
    let echo = call(3, "echo", json!({ "text": "x" }));
    assert_eq!(text(&response(client.post(&echo).await).await), "x");
    server.signal(Signal::SIGTERM);
    assert_eq!(server.exit_code().await, 0, "{}", server.log());

    let events = read(&file);
    let policy = |tool: &str, outcome: &str, rule: &str| {
        let members = json!({ "gen_ai.tool.name": tool, "shoal.outcome": outcome, "shoal.policy.rule": rule });
        count(&events, "policy", members)
    };
    assert_eq!(policy(TOOL, "asked", "ask"), 2, "{events:#?}");
    assert_eq!(count(&events, "policy", json!({})), 2, "{events:#?}");
    for (tool, outcome, rule) in [
        (TOOL, "tool_error", None),
        (TOOL, "completed", Some("ask")),
        ("echo", "completed", Some("all")),
    ] {
        let members = json!({ "gen_ai.tool.name": tool, "shoal.outcome": outcome, "shoal.policy.rule": rule });
        assert_eq!(count(&events, "call", members), 1, "{tool} {events:#?}");
    }
    for outcome in ["declined", "accepted"] {
        let approved = count(&events, "approval", json!({ "shoal.outcome": outcome }));
        assert_eq!(approved, 1, "{events:#?}");
    }
}

#[tokio::test]
async fn what_a_retry_records_names_the_call_that_it_goes_on_with() {
    let place = ConfigFile::new("");
    let file = place.beside("audit.jsonl");
    let environment = [RULES[0], ("SHOAL_AUDIT__FILE", file.to_str().unwrap())];
    let mut server = Server::start_with(&["--demo", "--conformance"], &environment).await;
    let ask = async |message: Value| {
        let asked = post_modern(&server.mcp, &message).send().await.unwrap();
        response(asked).await
    };
    // Asked by Shoal's approval, by the tool during its call, and by the tool's result.
    for (tool, arguments, content) in [
        (TOOL, json!({}), Value::Null),
        (
            "book_table",
            json!({ "restaurant": "Etna" }),
            json!({ "guests": 2, "date": "2026-12-24", "time": "19:30" }),
        ),
        (ROUNDS, json!({}), json!({ "name": "Ada" })),
    ] {
        let asked = ask(asking_call(1, tool, arguments.clone(), &json!({}))).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        let questions = asked["result"]["inputRequests"].as_object().unwrap();
        let key = questions.keys().next().unwrap();
        let given = json!({
            "requestState": asked["result"]["requestState"],
            "inputResponses": { key: { "action": "accept", "content": content } },
        });
        let done = ask(asking_call(2, tool, arguments, &given)).await;
        assert_eq!(done["result"]["resultType"], "complete", "{done}");
    }
    server.signal(Signal::SIGTERM);
    assert_eq!(server.exit_code().await, 0, "{}", server.log());

    let events = read(&file);
    let of = |kind: &str, tool: &str| -> Vec<&Value> {
        let kind = format!("shoal.audit.{kind}");
        let fits =
            |event: &&Value| event["event.name"] == kind && event["gen_ai.tool.name"] == tool;
        events.iter().filter(fits).collect()
    };
    for tool in [TOOL, "book_table", ROUNDS] {
        let calls = of("call", tool);
        let [parked, ended] = calls[..] else {
            panic!("{events:#?}");
        };
        assert_eq!(parked["shoal.outcome"], "parked", "{parked}");
        assert_eq!(ended["shoal.outcome"], "completed", "{ended}");
        assert_eq!(parked["shoal.call.continues"], Value::Null, "{parked}");
        assert_eq!(
            ended["shoal.call.continues"], parked["shoal.call.id"],
            "{ended}"
        );
        assert_ne!(ended["shoal.call.id"], parked["shoal.call.id"]);
    }
    let approvals = of("approval", TOOL);
    let ended = of("call", TOOL)[1];
    assert_eq!(approvals.len(), 1, "{events:#?}");
    for name in ["shoal.call.id", "shoal.call.continues"] {
        assert_eq!(approvals[0][name], ended[name], "{events:#?}");
    }
}
