use serde_json::{Value, json};
use shoal_demo::{ConformanceServer, DemoServer};
use shoal_ports::{CallOutcome, RunningCall, Worker};
use shoal_protocol::{Method, Outcome, RawJson, RpcError, code};

use super::client::{Client, Said, answer, ended, result, said, text, until};
use super::probe::Probe;

async fn question(running: &mut RunningCall) -> (shoal_ports::AskId, Method, Value) {
    match said(running).await {
        Said::Asked(ask, method, params) => (ask, method, params),
        other => panic!("expected a question, got {other:?}"),
    }
}

fn booking(guests: u32) -> Value {
    json!({ "action": "accept", "content": { "guests": guests, "date": "Friday" } })
}

#[tokio::test]
async fn form_is_asked_and_answered() {
    let client = Client::of(DemoServer::new()).await;
    let call = client.tool("book_table", json!({ "restaurant": "Chez Shoal" }));
    let mut running = client.start(call).await;
    let (ask, method, params) = question(&mut running).await;
    assert_eq!(method, Method::Elicit);
    assert!(params["requestedSchema"]["properties"]["guests"].is_object());
    assert!(
        params.get("_meta").is_none(),
        "rmcp's own token stays here: {params}"
    );
    answer(&running, ask, &booking(4));
    assert_eq!(
        text(&ended(&mut running).await),
        "booked Chez Shoal for 4 on Friday"
    );
}

#[tokio::test]
async fn sampling_and_roots_are_asked_and_answered() {
    let client = Client::of(DemoServer::new()).await;
    let mut running = client
        .start(client.tool("summarize", json!({ "text": "long" })))
        .await;
    let (ask, method, _) = question(&mut running).await;
    assert_eq!(method, Method::CreateMessage);
    let sample = json!({
        "role": "assistant", "content": { "type": "text", "text": "short" }, "model": "m"
    });
    answer(&running, ask, &sample);
    assert!(text(&ended(&mut running).await).contains("short"));

    let mut running = client.start(client.tool("list_roots", json!({}))).await;
    let (ask, method, _) = question(&mut running).await;
    assert_eq!(method, Method::RootsList);
    answer(
        &running,
        ask,
        &json!({ "roots": [{ "uri": "file:///one" }] }),
    );
    assert!(text(&ended(&mut running).await).contains("file:///one"));
}

#[tokio::test]
async fn modern_client_can_be_asked_too() {
    let client = Client::of(DemoServer::new()).await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    let params = json!({ "name": "book_table", "arguments": { "restaurant": "R" }, "_meta": meta });
    let mut running = client
        .start(client.request(Method::ToolsCall, params))
        .await;
    let (ask, ..) = question(&mut running).await;
    answer(&running, ask, &booking(2));
    assert_eq!(text(&ended(&mut running).await), "booked R for 2 on Friday");
}

#[tokio::test]
async fn refusal_of_the_client_reaches_the_tool() {
    let client = Client::of(Probe::default()).await;
    let mut running = client.start(client.tool("roots", json!({}))).await;
    let (ask, ..) = question(&mut running).await;
    let refusal = RpcError::new(-1, "these are private");
    assert!(running.control.answer(ask, Outcome::Error(refusal)).await);
    assert!(text(&ended(&mut running).await).contains("these are private"));
}

#[tokio::test]
async fn answer_that_does_not_fit_reaches_the_tool_as_an_error() {
    let client = Client::of(Probe::default()).await;
    let mut running = client.start(client.tool("roots", json!({}))).await;
    let (ask, ..) = question(&mut running).await;
    answer(&running, ask, &json!({ "roots": "none" }));
    assert!(text(&ended(&mut running).await).contains("Unexpected"));
}

#[tokio::test]
async fn client_that_declared_nothing_is_not_asked() {
    let client = Client::of(Probe::default()).await.that_cannot_be_asked();
    let mut running = client.start(client.tool("roots", json!({}))).await;
    let Said::Ended(outcome) = said(&mut running).await else {
        panic!("expected no question");
    };
    let capability = code::MISSING_CLIENT_CAPABILITY.to_string();
    let told = text(&outcome);
    assert!(
        told.contains(&capability) && told.contains("roots"),
        "{told}"
    );
}

#[tokio::test]
async fn tool_that_gives_up_takes_its_question_back() {
    let client = Client::of(Probe::default()).await;
    let mut running = client.start(client.tool("impatient", json!({}))).await;
    let (ask, ..) = question(&mut running).await;
    assert!(text(&ended(&mut running).await).contains("timeout"));
    assert!(
        !running
            .control
            .answer(ask, Outcome::Result(RawJson::from_static("{}")))
            .await
    );
}

#[tokio::test]
async fn concurrent_calls_get_their_own_questions_answers_and_messages() {
    let client = Client::of(DemoServer::new()).await;
    let mut calls = Vec::new();
    for guests in 1..=8 {
        let call = client.tool("book_table", json!({ "restaurant": guests.to_string() }));
        calls.push((guests, client.start(call).await));
    }
    let mut asked = Vec::new();
    for (guests, mut running) in calls {
        let (ask, _, params) = question(&mut running).await;
        assert!(
            params["message"]
                .as_str()
                .unwrap()
                .contains(&guests.to_string())
        );
        asked.push((guests, ask, running));
    }
    // Every call's first question has the same id, so only the call distinguishes them.
    for (guests, ask, running) in asked.iter().rev() {
        answer(running, *ask, &booking(*guests));
    }
    for (guests, _, mut running) in asked {
        let expected = format!("booked {guests} for {guests} on Friday");
        assert_eq!(text(&ended(&mut running).await), expected);
    }
}

#[tokio::test]
async fn cancelled_call_leaves_its_question() {
    let client = Client::of(Probe::default()).await;
    let mut running = client.start(client.tool("roots", json!({}))).await;
    let (ask, ..) = question(&mut running).await;
    running.control.cancel("enough");
    assert!(matches!(ended(&mut running).await, CallOutcome::Failed(_)));
    assert!(
        !running
            .control
            .answer(ask, Outcome::Result(RawJson::from_static("{}")))
            .await
    );
    until(|| client.worker.load().running == 0).await;
}

#[tokio::test]
async fn required_input_passes_through() {
    let client = Client::of(ConformanceServer::new()).await;
    let name = "test_input_required_result_elicitation";
    let required = result(&client.call(name, json!({})).await);
    assert_eq!(required["resultType"], "input_required");
    assert!(required["inputRequests"]["user_name"].is_object());

    let given = json!({ "action": "accept", "content": { "name": "Ada" } });
    let params = json!({ "name": name, "inputResponses": { "user_name": given } });
    let mut running = client
        .start(client.request(Method::ToolsCall, params))
        .await;
    assert_eq!(text(&ended(&mut running).await), "Hello, Ada!");
}
