use rmcp::{
    model::{
        CallToolRequestParams, CallToolResponse, ElicitResult, ElicitationAction, ErrorCode,
        GetPromptRequestParams, InputRequiredResult, InputResponses, object,
    },
    service::ServiceError,
};
use serde_json::{Value, json};

use super::ConformanceServer;
use crate::tests::{Client, Session, Told, text};

async fn able(content: Value) -> Session<ConformanceServer> {
    let elicited = ElicitResult::new(ElicitationAction::Accept).with_content(content);
    Client::able(elicited)
        .connect_modern(ConformanceServer::new())
        .await
}

async fn once(
    session: &Session<ConformanceServer>,
    tool: &'static str,
    answers: Value,
    state: Option<&str>,
) -> Result<CallToolResponse, ServiceError> {
    let answers: InputResponses = serde_json::from_value(answers).expect("is an object");
    let mut call = CallToolRequestParams::new(tool).with_input_responses(answers);
    call.request_state = state.map(str::to_owned);
    session.client.call_tool_once(call).await
}

fn asked(response: CallToolResponse) -> InputRequiredResult {
    match response {
        CallToolResponse::InputRequired(result) => result,
        other => panic!("expected a request for input, got {other:?}"),
    }
}

#[tokio::test]
async fn every_tool_is_described_and_content_tools_return_their_kind() {
    let session = able(json!({})).await;
    let tools = session.client.list_all_tools().await.expect("lists");
    assert!(tools.iter().all(|tool| tool.description.is_some()));
    for (tool, kinds) in [
        ("test_simple_text", vec!["text"]),
        ("test_image_content", vec!["image"]),
        ("test_audio_content", vec!["audio"]),
        ("test_embedded_resource", vec!["resource"]),
        (
            "test_multiple_content_types",
            vec!["text", "image", "resource"],
        ),
    ] {
        let result = session.call(tool, json!({})).await;
        let content = serde_json::to_value(&result.content).expect("is JSON");
        let found: Vec<&str> = content
            .as_array()
            .expect("is a list")
            .iter()
            .map(|block| block["type"].as_str().expect("has a type"))
            .collect();
        assert_eq!(found, kinds, "{tool}");
    }
    assert_eq!(
        session
            .call("test_error_handling", json!({}))
            .await
            .is_error,
        Some(true)
    );
}

#[tokio::test]
async fn schemas_are_listed_word_for_word() {
    let session = able(json!({})).await;
    let tools = session.client.list_all_tools().await.expect("lists");
    let schema = |name: &str| {
        &tools
            .iter()
            .find(|tool| tool.name == name)
            .expect("is listed")
            .input_schema
    };
    let full = schema("json_schema_2020_12_tool");
    for keyword in [
        "$schema",
        "$defs",
        "allOf",
        "if",
        "then",
        "else",
        "additionalProperties",
    ] {
        assert!(full.contains_key(keyword), "{keyword}");
    }
    assert_eq!(full["$defs"]["address"]["$anchor"], "addressDef");
    let mirrored = schema("test_custom_header");
    assert_eq!(mirrored["properties"]["region"]["x-mcp-header"], "Region");
}

#[tokio::test]
async fn input_is_asked_for_until_it_is_given() {
    let session = able(json!({ "name": "Ada", "color": "blue", "ok": true })).await;
    for (tool, answer) in [
        ("test_input_required_result_elicitation", "Hello, Ada!"),
        (
            "test_input_required_result_sampling",
            "a sample of 100 tokens",
        ),
        (
            "test_input_required_result_list_roots",
            "Client roots: file:///one, file:///two",
        ),
        (
            "test_input_required_result_request_state",
            "state-ok: confirmed",
        ),
        (
            "test_input_required_result_tampered_state",
            "state-ok: confirmed",
        ),
        (
            "test_input_required_result_multiple_inputs",
            "a sample of 50 tokens Ada, working in file:///one, file:///two",
        ),
        ("test_input_required_result_multi_round", "Ada likes blue."),
        ("test_input_required_result_capabilities", "Ada"),
        ("test_streaming_elicitation", "Streamed to Ada."),
    ] {
        assert_eq!(session.text(tool, json!({})).await, answer, "{tool}");
    }
}

#[tokio::test]
async fn answers_that_are_missing_or_malformed_are_asked_for_again() {
    let session = able(json!({})).await;
    let tool = "test_input_required_result_elicitation";
    let wrong = json!({ "wrong_key": { "action": "accept", "content": { "data": "wrong" } } });
    let empty = json!({ "user_name": { "action": "accept", "content": {} } });
    for answers in [wrong, json!({ "user_name": 12345 }), empty] {
        let again = asked(
            once(&session, tool, answers, None)
                .await
                .expect("is answered"),
        );
        assert!(
            again
                .input_requests
                .expect("asks")
                .contains_key("user_name")
        );
    }
    let declined = json!({ "user_name": { "action": "decline" } });
    let response = once(&session, tool, declined, None)
        .await
        .expect("is answered");
    let CallToolResponse::Complete(result) = response else {
        panic!("expected a result")
    };
    assert_eq!(text(&result), "Hello, stranger! You declined.");
}

#[tokio::test]
async fn a_state_that_was_not_given_out_is_rejected() {
    let session = able(json!({})).await;
    let confirmed = || json!({ "confirm": { "action": "accept", "content": { "ok": true } } });
    let tool = "test_input_required_result_tampered_state";
    let first = asked(
        once(&session, tool, json!({}), None)
            .await
            .expect("is answered"),
    );
    let state = first.request_state.expect("has a state");
    // The server must also refuse another tool's valid state.
    for forged in [
        format!("{state}-TAMPERED"),
        r#"{"awaiting":"name"}"#.to_owned(),
    ] {
        let error = once(&session, tool, confirmed(), Some(&forged))
            .await
            .expect_err("is rejected");
        let ServiceError::McpError(error) = error else {
            panic!("expected a protocol error")
        };
        assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
    }
    let fresh = once(&session, tool, confirmed(), None)
        .await
        .expect("is answered");
    assert!(asked(fresh).request_state.is_some());
}

#[tokio::test]
async fn undeclared_capabilities_are_named_in_the_error() {
    let session = Client::plain()
        .connect_modern(ConformanceServer::new())
        .await;
    for (tool, capability) in [
        ("test_missing_capability", "sampling"),
        ("test_input_required_result_elicitation", "elicitation"),
        ("test_input_required_result_sampling", "sampling"),
        ("test_input_required_result_list_roots", "roots"),
        ("test_input_required_result_capabilities", "sampling"),
        ("test_streaming_elicitation", "elicitation"),
    ] {
        let error = session
            .client
            .call_tool(CallToolRequestParams::new(tool))
            .await;
        let Err(ServiceError::McpError(error)) = error else {
            panic!("expected an error")
        };
        assert_eq!(
            error.code,
            ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY,
            "{tool}"
        );
        let required = &error.data.expect("has data")["requiredCapabilities"];
        assert!(required[capability].is_object(), "{tool}: {required}");
    }
}

#[tokio::test]
async fn a_prompt_can_need_input_too() {
    let session = able(json!({ "context": "tests" })).await;
    let prompt = GetPromptRequestParams::new("test_input_required_result_prompt");
    let prompt = session.client.get_prompt(prompt).await.expect("is given");
    let message = prompt.messages[0].content.as_text().expect("is text");
    assert_eq!(message.text, "Use this context: tests");
    let arguments = object(json!({ "resourceUri": "test://example-resource" }));
    let prompt = GetPromptRequestParams::new("test_prompt_with_embedded_resource");
    let prompt = session
        .client
        .get_prompt(prompt.with_arguments(arguments))
        .await
        .expect("is given");
    assert!(prompt.messages[0].content.as_resource().is_some());
}

#[tokio::test]
async fn questions_in_the_middle_of_a_call_reach_an_older_client() {
    let content = json!({ "username": "ada" });
    let elicited = ElicitResult::new(ElicitationAction::Accept).with_content(content);
    let session = Client::able(elicited)
        .connect(ConformanceServer::new())
        .await;
    let sampled = session
        .text("test_sampling", json!({ "prompt": "hi" }))
        .await;
    assert_eq!(sampled, "LLM response: a sample of 100 tokens");
    let answer = r#"action=accept, content={"username":"ada"}"#;
    let asked = session
        .text("test_elicitation", json!({ "message": "hi" }))
        .await;
    assert_eq!(asked, format!("User response: {answer}"));
    for tool in [
        "test_elicitation_sep1034_defaults",
        "test_elicitation_sep1330_enums",
    ] {
        let completed = session.text(tool, json!({})).await;
        assert_eq!(completed, format!("Elicitation completed: {answer}"));
    }
}

#[tokio::test]
async fn changes_are_announced_and_can_be_seen() {
    let mut session = Client::plain().connect(ConformanceServer::new()).await;
    session.call("test_trigger_tool_change", json!({})).await;
    assert_eq!(session.told().await, Told::ToolsChanged);
    let tools = session.client.list_all_tools().await.expect("lists");
    assert!(tools.iter().any(|tool| tool.name == "test_extra_tool"));
    session.call("test_trigger_prompt_change", json!({})).await;
    assert_eq!(session.told().await, Told::PromptsChanged);
    let prompts = session.client.list_all_prompts().await.expect("lists");
    assert!(
        prompts
            .iter()
            .any(|prompt| prompt.name == "test_extra_prompt")
    );
}

#[tokio::test]
async fn reconnection_asks_for_the_stream_to_be_closed_and_then_completes() {
    let mut session = Client::plain().connect(ConformanceServer::new()).await;
    let done = session.text("test_reconnection", json!({})).await;
    assert_eq!(done, "Reconnection test completed successfully");
    let close = Told::Other(
        "io.shoal/close_stream".to_owned(),
        Some(json!({ "retryMs": 200 })),
    );
    assert_eq!(session.told().await, close);
}
