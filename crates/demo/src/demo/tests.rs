use rmcp::{
    model::{
        ArgumentInfo, CompleteRequestParams, ErrorCode, GetPromptRequestParams, LoggingLevel,
        ReadResourceRequestParams, Reference, ResourceContents, SetLevelRequestParams,
        SubscribeRequestParams,
    },
    service::ServiceError,
};
use serde_json::{Value, json};

use super::DemoServer;
use crate::tests::{Client, Session, Told, modern_meta, params, text};

async fn plain() -> Session<DemoServer> {
    Client::plain().connect(DemoServer::new()).await
}

async fn read(session: &Session<DemoServer>, uri: &str) -> Result<Value, ServiceError> {
    let result = session
        .client
        .read_resource(ReadResourceRequestParams::new(uri))
        .await?;
    Ok(match &result.contents[0] {
        ResourceContents::TextResourceContents { text, .. } => json!(text),
        ResourceContents::BlobResourceContents { blob, .. } => json!({ "blob": blob }),
        other => panic!("unknown contents {other:?}"),
    })
}

#[tokio::test]
async fn tools_declare_what_may_be_repeated() {
    let session = plain().await;
    let tools = session.client.list_all_tools().await.expect("lists");
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    let expected = [
        "add",
        "book_table",
        "connect_account",
        "count_up",
        "echo",
        "echo_once",
        "echo_slowly",
        "fail",
        "increment_counter",
        "list_roots",
        "long_job",
        "recall",
        "remember",
        "summarize",
        "toggle_bonus_tool",
        "write_log",
    ];
    assert_eq!(names, expected);
    assert!(tools.iter().all(|tool| tool.description.is_some()));
    let hints = |name: &str| {
        let tool = tools
            .iter()
            .find(|tool| tool.name == name)
            .expect("is listed");
        let hints = tool.annotations.as_ref().expect("has annotations");
        (
            hints.read_only_hint,
            hints.idempotent_hint,
            hints.destructive_hint,
        )
    };
    assert_eq!(hints("echo"), (Some(true), Some(true), None));
    assert_eq!(hints("echo_once"), (Some(false), Some(false), Some(false)));
    assert_eq!(hints("long_job").0, Some(false));
    let slow = tools.iter().find(|tool| tool.name == "echo_slowly");
    assert_eq!(slow.expect("is listed").annotations, None);
    let job = tools
        .iter()
        .find(|tool| tool.name == "long_job")
        .expect("is listed");
    let steps = &job.input_schema["properties"]["steps"];
    assert_eq!(
        (&steps["minimum"], &steps["maximum"]),
        (&json!(1), &json!(10_000))
    );
}

#[tokio::test]
async fn basic_tools_answer_from_their_arguments() {
    let session = plain().await;
    assert_eq!(session.text("echo", json!({ "text": "hi" })).await, "hi");
    assert_eq!(
        session.text("echo_once", json!({ "text": "hi" })).await,
        "hi"
    );
    let arguments = json!({ "text": "hi" });
    assert_eq!(session.text("echo_slowly", arguments).await, "hi");
    let sum = session.call("add", json!({ "a": 1, "b": 2.5 })).await;
    assert_eq!(sum.structured_content, Some(json!({ "sum": 3.5 })));
    assert_eq!(text(&sum), r#"{"sum":3.5}"#);
    let failure = session.call("fail", json!({ "message": "no" })).await;
    assert_eq!(
        (failure.is_error, text(&failure).as_str()),
        (Some(true), "no")
    );
    let overflow = session
        .call("add", json!({ "a": f64::MAX, "b": f64::MAX }))
        .await;
    assert_eq!(overflow.is_error, Some(true));
}

#[tokio::test]
async fn counter_changes_are_seen_by_every_clone() {
    let server = DemoServer::new();
    let mut one = Client::plain().connect(server.clone()).await;
    let two = Client::plain().connect(server).await;
    one.client
        .subscribe(SubscribeRequestParams::new("demo://counter"))
        .await
        .expect("subscribes");
    assert_eq!(one.text("increment_counter", json!({})).await, "1");
    assert_eq!(one.told().await, Told::Updated("demo://counter".to_owned()));
    assert_eq!(one.text("increment_counter", json!({ "by": 5 })).await, "6");
    assert_eq!(
        read(&two, "demo://counter").await.expect("reads"),
        json!(r#"{"value":6}"#)
    );
}

#[tokio::test]
async fn bonus_tool_comes_and_goes() {
    let mut session = plain().await;
    let bonus = || params("bonus", json!({}));
    assert!(session.client.call_tool(bonus()).await.is_err());
    assert_eq!(
        session.text("toggle_bonus_tool", json!({})).await,
        "bonus tool added"
    );
    assert_eq!(session.told().await, Told::ToolsChanged);
    let tools = session.client.list_all_tools().await.expect("lists");
    assert!(tools.iter().any(|tool| tool.name == "bonus"));
    assert_eq!(
        session.text("bonus", json!({})).await,
        "you found the bonus tool"
    );
    assert_eq!(
        session.text("toggle_bonus_tool", json!({})).await,
        "bonus tool removed"
    );
    assert!(session.client.call_tool(bonus()).await.is_err());
}

#[tokio::test]
#[expect(deprecated, reason = "logging remains part of every revision")]
async fn write_log_sends_what_the_request_may_have() {
    let mut session = plain().await;
    session
        .client
        .set_level(SetLevelRequestParams::new(LoggingLevel::Debug))
        .await
        .expect("is set");
    let warning = json!({ "level": "warning", "message": "careful" });
    assert_eq!(session.text("write_log", warning.clone()).await, "logged");
    let Told::Logged(message) = session.told().await else {
        panic!("expected a log message")
    };
    assert_eq!(
        (message.level, message.data),
        (LoggingLevel::Warning, json!("careful"))
    );
    assert_eq!(message.logger.as_deref(), Some("demo"));

    // Since 2026-07-28, a request names its log level.
    for level in [None, Some(LoggingLevel::Error), Some(LoggingLevel::Warning)] {
        let mut meta = modern_meta(Default::default());
        if let Some(level) = level {
            meta.set_log_level(level);
        }
        let context = session.context(meta);
        session
            .call_directly("write_log", warning.clone(), context)
            .await
            .expect("completes");
    }
    session.call("increment_counter", json!({})).await;
    assert!(matches!(session.told().await, Told::Logged(_)));
    assert!(matches!(session.told().await, Told::Updated(_)));
}

#[tokio::test]
async fn resources_can_be_read() {
    let session = plain().await;
    let listed = session.client.list_all_resources().await.expect("lists");
    let uris: Vec<&str> = listed
        .iter()
        .map(|resource| resource.uri.as_str())
        .collect();
    assert_eq!(uris, ["demo://readme", "demo://counter", "demo://logo"]);
    for uri in uris {
        read(&session, uri).await.expect("reads");
    }
    assert!(read(&session, "demo://logo").await.expect("reads")["blob"].is_string());
    assert_eq!(
        read(&session, "demo://greeting/Ada").await.expect("reads"),
        json!("Hello, Ada!")
    );
    let templates = session
        .client
        .list_all_resource_templates()
        .await
        .expect("lists");
    assert_eq!(templates[0].uri_template, "demo://greeting/{name}");

    let error = read(&session, "demo://nothing")
        .await
        .expect_err("is unknown");
    let ServiceError::McpError(error) = error else {
        panic!("expected a protocol error")
    };
    assert_eq!(error.code, ErrorCode::RESOURCE_NOT_FOUND);
    assert_eq!(error.data, Some(json!({ "uri": "demo://nothing" })));
}

#[tokio::test]
async fn prompts_take_their_arguments() {
    let session = plain().await;
    let prompts = session.client.list_all_prompts().await.expect("lists");
    let arguments = |name: &str| -> Vec<(String, Option<bool>)> {
        let prompt = prompts
            .iter()
            .find(|prompt| prompt.name == name)
            .expect("is listed");
        assert!(prompt.description.is_some());
        let arguments = prompt.arguments.iter().flatten();
        arguments
            .map(|argument| (argument.name.clone(), argument.required))
            .collect()
    };
    let (required, optional) = (Some(true), Some(false));
    assert_eq!(
        arguments("greet"),
        [("name".into(), required), ("language".into(), optional)]
    );
    assert_eq!(arguments("code_review"), [("code".into(), required)]);

    let greet = GetPromptRequestParams::new("greet").with_arguments(rmcp::model::object(
        json!({ "name": "Ada", "language": "French" }),
    ));
    let prompt = session.client.get_prompt(greet).await.expect("is given");
    let text = prompt.messages[0]
        .content
        .as_text()
        .expect("is text")
        .text
        .as_str();
    assert_eq!(text, "Greet Ada warmly, in French.");
    assert!(
        session
            .client
            .get_prompt(GetPromptRequestParams::new("greet"))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn completion_filters_by_what_was_typed() {
    let session = plain().await;
    let complete = async |reference, argument: &str, typed: &str| {
        let params = CompleteRequestParams::new(reference, ArgumentInfo::new(argument, typed));
        session
            .client
            .complete(params)
            .await
            .expect("completes")
            .completion
            .values
    };
    let greet = || Reference::for_prompt("greet");
    assert_eq!(complete(greet(), "language", "").await.len(), 7);
    assert_eq!(complete(greet(), "language", "fr").await, ["French"]);
    assert!(complete(greet(), "name", "A").await.is_empty());
    let greeting = Reference::for_resource("demo://greeting/{name}");
    assert_eq!(complete(greeting, "name", "A").await, ["Ada", "Alan"]);
}

#[tokio::test]
async fn without_shoal_nothing_is_remembered_and_the_tools_say_so() {
    let session = plain().await;
    for (tool, arguments) in [
        ("remember", json!({ "key": "k", "value": "v" })),
        ("recall", json!({ "key": "k" })),
        ("count_up", json!({})),
    ] {
        let result = session.call(tool, arguments).await;
        assert_eq!(result.is_error, Some(true));
        let said = text(&result);
        assert!(said.contains("Shoal does not run this server"), "{said}");
    }
}
