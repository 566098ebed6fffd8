use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use shoal_protocol::Era;

use super::script::{Act, End, accepted, answered, refused, server};
use crate::stdio::client::{BridgeClient, ClientError, ClientHandler, FollowedTask, failed};
use crate::stdio::exchange::{Prompt, ServerExchange};

#[derive(Clone, Default)]
struct Echo(Arc<Mutex<Vec<Value>>>);

#[async_trait]
impl ClientHandler for Echo {
    fn capabilities(&self) -> Value {
        json!({ "elicitation": {} })
    }

    fn wants_progress(&self) -> bool {
        true
    }

    fn progress(&mut self, params: &Value) {
        self.0.lock().push(params["progress"].clone());
    }

    async fn answer(&mut self, method: &str, params: &Value) -> Option<Value> {
        tokio::time::sleep(2 * LIMIT).await;
        (method == "elicitation/create").then(|| json!({ "said": params["message"] }))
    }
}

const LIMIT: Duration = Duration::from_secs(60);

async fn connected(
    exchange: Arc<dyn ServerExchange>,
    era: Option<Era>,
) -> Result<BridgeClient, ClientError> {
    BridgeClient::over(exchange, era, Box::new(Echo::default()), LIMIT).await
}

fn code(connected: Result<BridgeClient, ClientError>) -> i64 {
    match connected.err().unwrap() {
        ClientError::Refused(error) => error.code,
        ClientError::TimedOut | ClientError::Lost { .. } => panic!("it took too long"),
    }
}

fn opened() -> Act {
    let headers = &[("mcp-session-id", "first")];
    let result = json!({ "protocolVersion": "2025-11-25" });
    Act::Json(
        200,
        headers,
        json!({ "jsonrpc": "2.0", "id": 2, "result": result }),
    )
}

#[tokio::test(start_paused = true)]
async fn where_no_server_of_mcp_is_is_told_at_once() {
    let page = || Act::Json(200, &[("content-type", "text/html")], json!("<html>"));
    for era in [None, Some(Era::Modern), Some(Era::Legacy)] {
        let began = tokio::time::Instant::now();
        let server = server([page(), page()]);
        match connected(server.exchange(), era).await.err().unwrap() {
            ClientError::Refused(error) => {
                assert!(error.message.contains("text/html"), "{}", error.message);
                assert!(error.message.contains("MCP endpoint"), "{}", error.message);
            }
            ClientError::TimedOut | ClientError::Lost { .. } => panic!("it took too long"),
        }
        assert!(began.elapsed() < LIMIT);
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_is_spoken_to_without_a_session() {
    let server = server([answered(1, json!({})), answered(2, json!({ "tools": [] }))]);
    let mut client = connected(server.exchange(), None).await.unwrap();
    let tools = client.request("tools/list", Map::new()).await.unwrap();
    assert_eq!(tools["tools"], json!([]));
    client.finish().await;
    let posted = server.posted();
    assert_eq!(posted.len(), 2);
    for request in posted {
        let version = &request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        assert_eq!(version, "2026-07-28");
    }
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_gets_a_session() {
    let tools = answered(3, json!({ "tools": [] }));
    let server = server([refused(400, -32600), opened(), accepted(), tools]);
    let mut client = connected(server.exchange(), None).await.unwrap();
    client.request("tools/list", Map::new()).await.unwrap();
    client.finish().await;
    let methods: Vec<_> = server
        .posted()
        .iter()
        .map(|request| request["method"].clone())
        .collect();
    let expected = [
        "server/discover",
        "initialize",
        "notifications/initialized",
        "tools/list",
    ];
    assert_eq!(methods, expected);
    assert!(server.posted()[3]["params"].get("_meta").is_none());
}

#[tokio::test(start_paused = true)]
async fn the_era_that_is_asked_for_is_the_one_that_is_tried() {
    let modern = server([refused(400, -32600)]);
    let error = connected(modern.exchange(), Some(Era::Modern)).await;
    assert_eq!(code(error), -32600);
    let legacy = server([refused(400, -32600)]);
    let error = connected(legacy.exchange(), Some(Era::Legacy)).await;
    assert_eq!(code(error), -32600);
    assert_eq!(legacy.posted()[0]["method"], "initialize");
    assert_eq!(legacy.posted().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_reached_is_not_taken_for_a_legacy_one() {
    let server = server(std::iter::repeat_with(|| Act::Refuse).take(100));
    let error = connected(server.exchange(), None).await.err().unwrap();
    assert!(error.to_string().contains("cannot be reached"), "{error}");
    assert!(
        server
            .posted()
            .iter()
            .all(|request| request["method"] == "server/discover")
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_not_there_is_not_waited_for_but_one_that_was_is() {
    let absent = server([Act::Refuse, Act::Refuse]);
    let client = connected(Arc::new(Prompt::new(absent.exchange())), None).await;
    assert!(client.is_err());
    assert_eq!(absent.posted().len(), 1);

    let discovered = || answered(1, json!({ "supportedVersions": ["2026-07-28"] }));
    let listed = answered(2, json!({ "tools": [] }));
    let there = server([discovered(), Act::Refuse, listed]);
    let client = connected(Arc::new(Prompt::new(there.exchange())), None).await;
    let mut client = client.unwrap();
    client.request("tools/list", Map::new()).await.unwrap();
    assert_eq!(there.posted().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_away_during_a_call_is_said_to_be_out_of_reach() {
    let headers = &[("mcp-session-id", "first")];
    let result = json!({ "protocolVersion": "2025-11-25" });
    let opened = json!({ "jsonrpc": "2.0", "id": 1, "result": result });
    let resumable = Act::Stream(vec!["id: a-1\ndata:"], End::Broken);
    let gone = || std::iter::repeat_with(|| Act::Refuse).take(1000);
    let began = [Act::Json(200, headers, opened), accepted(), resumable];
    let server = server(began.into_iter().chain(gone())).refusing_gets(gone());
    let exchange = Arc::new(Prompt::new(server.exchange()));
    let legacy = Some(Era::Legacy);
    let mut client = connected(exchange, legacy).await.unwrap();
    let error = client.request("tools/call", Map::new()).await.unwrap_err();
    let failure = failed("http://a/mcp", &error).to_string();
    for part in [
        "the connection was lost",
        "cannot be reached",
        "the tool may have run",
    ] {
        assert!(failure.contains(part), "{failure}");
    }
    assert!(!failure.contains("--timeout"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_own_stream_is_open_is_too_slow_whatever_other_streams_miss() {
    let headers = &[("mcp-session-id", "first")];
    let result = json!({ "protocolVersion": "2025-11-25" });
    let opened = json!({ "jsonrpc": "2.0", "id": 1, "result": result });
    let silent = Act::Stream(vec!["id: a-1\ndata:"], End::Open);
    let server = server([Act::Json(200, headers, opened), accepted(), silent])
        .refusing_gets(std::iter::repeat_with(|| Act::Refuse).take(1000));
    let exchange = Arc::new(Prompt::new(server.exchange()));
    let mut client = connected(exchange, Some(Era::Legacy)).await.unwrap();
    let error = client.request("tools/call", Map::new()).await;
    assert!(matches!(error, Err(ClientError::TimedOut)), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_never_reached_the_server_has_not_run() {
    let refusals = std::iter::repeat_with(|| Act::Refuse).take(1000);
    let server = server([answered(1, json!({}))].into_iter().chain(refusals));
    let exchange = Arc::new(Prompt::new(server.exchange()));
    let limit = Duration::from_secs(5);
    let client = BridgeClient::over(exchange, None, Box::new(Echo::default()), limit).await;
    let call = client.unwrap().request("tools/call", Map::new()).await;
    let failure = failed("http://a/mcp", &call.unwrap_err()).to_string();
    assert!(failure.contains("cannot be reached"), "{failure}");
    assert!(!failure.contains("may have run"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_that_asks_gets_answers_and_its_state_back() {
    let asks = json!({
        "resultType": "input_required",
        "inputRequests": { "who": { "method": "elicitation/create", "params": { "message": "Who?" } } },
        "requestState": "sealed",
    });
    let server = server([
        answered(1, json!({})),
        answered(2, asks),
        answered(3, json!({ "content": [] })),
    ]);
    let mut client = connected(server.exchange(), None).await.unwrap();
    let params = Map::from_iter([("name".to_owned(), json!("t"))]);
    let result = client.request("tools/call", params).await.unwrap();
    assert_eq!(result, json!({ "content": [] }));
    let posted = server.posted();
    let [first, second] = [&posted[1]["params"], &posted[2]["params"]];
    assert_eq!(first["_meta"]["progressToken"], 2);
    let declared = &first["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(declared, &json!({ "elicitation": {} }));
    assert_eq!(second["name"], "t");
    assert_eq!(
        second["inputResponses"],
        json!({ "who": { "said": "Who?" } })
    );
    assert_eq!(second["requestState"], "sealed");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_answered_comes_back_as_it_is() {
    let asks = json!({
        "resultType": "input_required",
        "inputRequests": { "roots": { "method": "roots/list" } },
    });
    let server = server([answered(1, json!({})), answered(2, asks.clone())]);
    let mut client = connected(server.exchange(), None).await.unwrap();
    let result = client.request("tools/call", Map::new()).await.unwrap();
    assert_eq!((result, server.posted().len()), (asks, 2));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_too_long_is_given_up() {
    let silent = Act::Stream(
        vec![
            "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progress\":3}}\n\n",
        ],
        End::Open,
    );
    let server = server([answered(1, json!({})), silent]);
    let seen = Echo::default();
    let client = BridgeClient::over(server.exchange(), None, Box::new(seen.clone()), LIMIT).await;
    let mut client = client.unwrap();
    let error = client.request("tools/call", Map::new()).await;
    assert!(matches!(error, Err(ClientError::TimedOut)), "{error:?}");
    assert_eq!(*seen.0.lock(), [json!(3)]);
    client.finish().await;
}

fn offers_tasks() -> Act {
    let extensions = json!({ "io.modelcontextprotocol/tasks": {} });
    answered(1, json!({ "capabilities": { "extensions": extensions } }))
}

fn task(id: u64, status: &str, more: Value) -> Act {
    let mut task = json!({ "taskId": "t", "status": status, "pollIntervalMs": 500 });
    task.as_object_mut()
        .unwrap()
        .extend(more.as_object().cloned().unwrap());
    answered(id, task)
}

async fn followed(client: &mut BridgeClient) -> Value {
    assert!(client.declare_tasks());
    match client.follow("t").await.unwrap() {
        FollowedTask::Ended(task) => task,
        FollowedTask::Asks => panic!("it asks"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_is_polled_where_nobody_tells_of_it_and_each_question_answered_once() {
    let asks = json!({ "inputRequests": {
        "who": { "method": "elicitation/create", "params": { "message": "Who?" } } } });
    let server = server([
        offers_tasks(),
        task(2, "input_required", asks.clone()),
        answered(3, json!({ "resultType": "complete" })),
        refused(400, -32601),
        task(5, "input_required", asks),
        task(6, "completed", json!({ "result": { "content": [] } })),
    ]);
    let mut client = connected(server.exchange(), None).await.unwrap();
    assert_eq!(followed(&mut client).await["result"]["content"], json!([]));
    let posted = server.posted();
    let methods: Vec<&str> = posted
        .iter()
        .map(|it| it["method"].as_str().unwrap())
        .collect();
    let expected = [
        "server/discover",
        "tasks/get",
        "tasks/update",
        "subscriptions/listen",
        "tasks/get",
        "tasks/get",
    ];
    assert_eq!(methods, expected);
    assert_eq!(
        posted[2]["params"]["inputResponses"],
        json!({ "who": { "said": "Who?" } })
    );
    let declared = &posted[1]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert!(
        declared["extensions"]["io.modelcontextprotocol/tasks"].is_object(),
        "{declared}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_told_of_is_not_polled_until_its_subscription_ends() {
    let told = Act::Stream(
        vec![
            r#"data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"taskIds":["t"]}}}"#,
            r#"data: {"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"t","status":"working"}}"#,
            r#"data: {"jsonrpc":"2.0","id":3,"result":{}}"#,
        ],
        End::Clean,
    );
    let server = server([
        offers_tasks(),
        task(2, "working", json!({})),
        told,
        task(4, "working", json!({})),
        task(5, "cancelled", json!({})),
    ]);
    let mut client = connected(server.exchange(), None).await.unwrap();
    assert_eq!(followed(&mut client).await["status"], "cancelled");
    assert_eq!(server.posted().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_of_tasks_is_not_asked_for_any() {
    let server = server([answered(1, json!({ "capabilities": {} }))]);
    let mut client = connected(server.exchange(), None).await.unwrap();
    assert!(!client.declare_tasks());
}
