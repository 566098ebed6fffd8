use serde_json::{Value, json};
use shoal_outbound::Outbound;
use tokio::process::Child;

use super::harness::{Client, TestBackend, served};
use super::service::result;
use crate::{OpenApiBackend, OpenApiConfig, ToolChoice};

async fn started() -> (Child, TestBackend) {
    let (child, url) = served("odd_service.py", &[]).await;
    let config = OpenApiConfig::new(format!("{url}/openapi.json"));
    let backend =
        OpenApiBackend::start(config, ToolChoice::default(), None, &Outbound::default()).unwrap();
    (child, TestBackend::of(backend).await)
}

async fn tool(running: &TestBackend, name: &str) -> Value {
    let catalog = running.catalog_where(|_| true).await;
    let mut tools = catalog.tools.iter().map(|tool| tool.read().unwrap());
    tools.find(|tool: &Value| tool["name"] == name).unwrap()
}

#[tokio::test]
async fn arguments_have_names_that_clients_take_and_arrive_under_the_services_own() {
    let (_service, running) = started().await;
    let schema = &tool(&running, "post_echo").await["inputSchema"];
    let listed: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    let names = [
        "include",
        "StartTime_lt",
        "filter_in_query",
        "filter",
        "data_id",
        "who",
    ];
    assert_eq!(listed, names);
    assert!(!schema.to_string().contains("x-shoal"), "{schema}");
    let sent = json!({
        "include": ["a", "b"], "StartTime_lt": "now", "filter_in_query": "x", "filter": "y", "data_id": "1",
        "who": { "type_2": "dog", "type": "pet", "friends": [{ "type_2": "cat" }] },
    });
    let got = result(running.call(&Client::named("a"), "post_echo", sent).await);
    let got: Value = serde_json::from_str(got["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(
        got["query"],
        json!([
            ["include[]", "a"],
            ["include[]", "b"],
            ["StartTime<", "now"],
            ["$filter", "x"],
            ["filter", "y"]
        ])
    );
    let who = json!({ "@type": "dog", "type": "pet", "friends": [{ "@type": "cat" }] });
    assert_eq!(got["body"], json!({ "data[id]": "1", "who": who }));
}

#[tokio::test]
async fn the_services_own_names_are_taken_unless_they_contradict() {
    let (_service, running) = started().await;
    let own = json!({
        "include[]": ["a"], "StartTime<": "now", "$filter": "x", "data[id]": "1",
        "who": { "@type": "dog", "friends": [{ "@type": "cat", "type": "pet" }] },
    });
    let got = result(
        running
            .call(&Client::named("a"), "post_echo", own.clone())
            .await,
    );
    let got: Value = serde_json::from_str(got["content"][0]["text"].as_str().unwrap()).unwrap();
    let query = json!([["include[]", "a"], ["StartTime<", "now"], ["$filter", "x"]]);
    assert_eq!(got["query"], query);
    assert_eq!(got["body"], json!({ "data[id]": "1", "who": own["who"] }));
    for (tool, arguments, why) in [
        (
            "post_echo",
            json!({ "include": ["a"], "include[]": ["b"] }),
            "\"include\" is given twice",
        ),
        (
            "post_echo",
            json!({ "who": { "friends": [{ "type_2": "a", "@type": "b" }] } }),
            "\"@type\" is given twice",
        ),
    ] {
        let got = result(running.call(&Client::named("a"), tool, arguments).await);
        assert_eq!(got["isError"], true, "{got}");
        assert!(
            got["content"][0]["text"].as_str().unwrap().contains(why),
            "{got}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_breaks_its_schema_is_not_lost() {
    let (_service, running) = started().await;
    let schema = tool(&running, "lies").await["outputSchema"].clone();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (answer, structured) in [
        (r#"{"id":1,"kind":"a"}"#, json!({ "id": 1, "kind": "a" })),
        // Answers often break the document in these ways.
        (
            r#"{"id":null,"kind":"c","more":{}}"#,
            json!({ "id": null, "kind": "c", "more": {} }),
        ),
        ("{}", json!({})),
        (r#"{"id":"1","kind":"a"}"#, json!({ "kind": "a" })),
        ("[1]", json!({ "result": [1] })),
        ("null", json!({ "result": null })),
        ("no JSON", json!({ "result": "no JSON" })),
    ] {
        let arguments = json!({ "answer": answer });
        let got = result(running.call(&Client::named("a"), "lies", arguments).await);
        assert_eq!(got["content"][0]["text"], answer);
        assert_eq!(got["structuredContent"], structured, "{answer}");
        assert!(got.get("isError").is_none(), "{got}");
        assert!(validator.is_valid(&got["structuredContent"]), "{got}");
    }
}
