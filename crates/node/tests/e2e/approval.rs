//! Tools that a person must agree to, over the wire.

use serde_json::{Value, json};

use crate::client::{
    Events, call, initialized, modern_call, post, post_modern, request, response, text,
};
use crate::process::Server;
use crate::websocket::{self, stream_to};

const RULES: &[(&str, &str)] = &[(
    "SHOAL_POLICY__RULES",
    r#"[{ name = "all", effect = "allow" }, { name = "ask", effect = "ask", tools = ["increment_counter"] }]"#,
)];
const TOOL: &str = "increment_counter";

/// How often the tool has run.
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

/// A legacy client that can ask a person.
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
    // Others are not asked about, and a client that cannot ask is told so.
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

#[tokio::test]
async fn a_modern_client_comes_back_with_the_answer() {
    let server = Server::start_with(&["--demo"], RULES).await;
    let calling = |id, more: &Value| {
        let mut message = modern_call(id, TOOL, json!({}));
        let capabilities = &mut message["params"]["_meta"];
        capabilities["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
        for (name, value) in more.as_object().unwrap() {
            message["params"][name] = value.clone();
        }
        message
    };
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
    let declined = ask(&calling(3, &with("decline"))).await;
    assert_eq!(declined["result"]["isError"], true, "{declined}");
    assert_eq!(counted(&server).await, 0);
    let done = ask(&calling(4, &with("accept"))).await;
    assert!(done["result"]["content"].is_array(), "{done}");
    // The same state again is the same call, which has been run.
    let again = ask(&calling(5, &with("accept"))).await;
    assert_eq!(counted(&server).await, 1, "{again}");
}
