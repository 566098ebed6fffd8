use std::time::Duration;

use serde_json::{Value, json};
use shoal_ports::{CallFailure, CallOutcome, Repeat};
use shoal_protocol::code;

use super::harness::{Client, error, failure, text};
use super::service::{Petstore, result, told};

#[tokio::test]
async fn each_kind_of_content_has_its_form() {
    let service = Petstore::start().await;
    let running = service.backend().await;
    let client = Client::named("a");
    let of = async |what: &str| {
        let called = running.call(
            &client,
            "get_pets_petId_what",
            json!({ "petId": "1", "what": what }),
        );
        result(called.await)
    };
    let photo = of("photo").await;
    assert_eq!(
        (
            &photo["content"][0]["type"],
            &photo["content"][0]["mimeType"]
        ),
        (&json!("image"), &json!("image/png"))
    );
    assert!(
        photo["content"][0]["data"]
            .as_str()
            .unwrap()
            .starts_with("iVBORw0KGgo")
    );
    let voice = of("voice").await;
    assert_eq!(
        voice["content"],
        json!([{ "type": "audio", "data": "UklGRg==", "mimeType": "audio/wav" }])
    );
    let papers = &of("papers").await["content"][0];
    assert_eq!(papers["type"], "resource");
    assert_eq!(
        papers["resource"],
        json!({ "uri": "openapi:get_pets_petId_what", "mimeType": "application/pdf", "blob": "JVBERg==" })
    );
    assert_eq!(of("story").await["content"][0]["text"], "Es war einmal …\n");
    let list = of("list").await;
    assert_eq!(
        (&list["content"][0]["text"], &list["structuredContent"]),
        (&json!("[1, 2]"), &Value::Null)
    );
    let deleted = result(
        running
            .call(&client, "deletePet", json!({ "petId": "1" }))
            .await,
    );
    assert_eq!(
        deleted,
        json!({ "content": [{ "type": "text", "text": "204 No Content" }] })
    );
}

#[tokio::test]
async fn refusals_are_for_the_model_to_read() {
    let service = Petstore::start().await;
    let running = service.backend().await;
    let client = Client::named("a");
    let unknown = told(
        running
            .call(&client, "getPet", json!({ "petId": "7" }))
            .await,
    );
    assert_eq!(unknown, "404 Not Found\n{\"error\": \"there is no pet 7\"}");
    let status = async |code: u16| {
        running
            .call(&client, "status", json!({ "code": code }))
            .await
    };
    for code in [400, 500, 502] {
        let told = told(status(code).await);
        assert!(
            told.starts_with(&code.to_string()) && told.contains("as asked"),
            "{told}"
        );
    }
    assert!(told(status(302).await).contains("not followed"));
    assert!(told(status(401).await).contains("credentials"));
    for answered in [429, 503] {
        let declined = error(status(answered).await);
        assert_eq!(declined.code, code::OVERLOADED);
        let mut call = client.call(json!({ "name": "status", "arguments": { "code": answered } }));
        call.repeat = Repeat::Safe;
        let failed = failure(running.run(&client, &call).await);
        let CallFailure::Overloaded { retry_after, .. } = failed else {
            panic!("{failed:?}");
        };
        assert_eq!(retry_after, Duration::from_secs(7));
    }
    let failed = failure(running.call(&client, "dies", json!({})).await);
    assert!(
        matches!(failed, CallFailure::OutcomeUnknown { .. }),
        "{failed:?}"
    );
    assert_eq!(service.seen().await["runs"]["POST /v1/dies"], 1);
}

#[tokio::test]
async fn an_answer_has_a_limit_in_bytes_and_in_time() {
    let service = Petstore::start().await;
    let mut config = service.config();
    config.answer_bytes = 1000;
    let running = service.backend_of(config.clone()).await;
    let client = Client::named("a");
    let fits = running
        .call(&client, "large", json!({ "bytes": 1000 }))
        .await;
    assert_eq!(text(&fits).as_str().unwrap().len(), 1000);
    let large = running
        .call(&client, "large", json!({ "bytes": 1001 }))
        .await;
    assert!(error(large).message.contains("larger than 1000 bytes"));
    config.call_timeout = Duration::from_millis(300).into();
    let running = service.backend_of(config).await;
    let slow = failure(running.call(&client, "slow", json!({})).await);
    assert!(
        matches!(slow, CallFailure::OutcomeUnknown { .. }),
        "{slow:?}"
    );
}

#[tokio::test]
async fn a_cancelled_call_is_dropped_at_the_service() {
    let service = Petstore::start().await;
    let running = service.backend().await;
    let client = Client::named("a");
    let call = running.spawn(&client, "slow", json!({}));
    service
        .seen_where("it runs", |seen| seen["runs"]["GET /v1/slow"] == 1)
        .await;
    client.cancel();
    let outcome = call.await.unwrap();
    assert!(
        matches!(outcome, CallOutcome::Failed(CallFailure::Cancelled)),
        "{outcome:?}"
    );
    service
        .seen_where("its connection has ended", |seen| seen["dropped"] == 1)
        .await;
}
