use serde_json::{Value, json};
use shoal_protocol::RawJson;

use super::harness::{Client, error};
use super::service::{Petstore, result, told};

#[tokio::test]
async fn operations_are_tools() {
    let service = Petstore::start().await;
    let running = service.backend().await;
    let catalog = running.catalog_where(|_| true).await;
    let tools: Vec<Value> = catalog
        .tools
        .iter()
        .map(|tool| tool.read().unwrap())
        .collect();
    let tool = |name: &str| {
        tools
            .iter()
            .find(|tool| tool["name"] == name)
            .unwrap_or_else(|| panic!("{name}"))
    };
    assert_eq!(tool("listPets")["title"], "Lists pets");
    assert_eq!(
        tool("listPets")["annotations"],
        json!({ "readOnlyHint": true })
    );
    let offered = tool("listPets")["inputSchema"]["properties"]
        .as_object()
        .unwrap();
    let offered: Vec<&String> = offered.keys().collect();
    assert_eq!(
        offered,
        ["limit", "tags", "filter", "X-Request-Tag", "theme"]
    );
    let create = &tool("createPet")["inputSchema"];
    assert_eq!(create["required"], json!(["name"]));
    assert_eq!(create["properties"]["friend"]["$ref"], "#/$defs/Pet");
    assert_eq!(
        create["$defs"]["Pet"]["properties"]["nick"]["type"],
        json!(["string", "null"])
    );
    assert_eq!(
        tool("getPet")["outputSchema"]["properties"]["id"]["type"],
        json!(["integer", "null"])
    );
    assert_eq!(tool("deletePet")["annotations"]["destructiveHint"], true);
    assert_eq!(
        tool("upload")["inputSchema"]["properties"]["file"]["contentEncoding"],
        "base64"
    );
    let server: Value = catalog.server_info.as_ref().unwrap().read().unwrap();
    assert_eq!(server, json!({ "name": "Petstore", "version": "1.2" }));
    tool("get_pets_petId_what");
}

#[tokio::test]
async fn arguments_reach_their_places() {
    let service = Petstore::start().await;
    let running = service.backend().await;
    let client = Client::named("a");
    let arguments = json!({
        "limit": 3, "tags": ["a b", "c&d"], "filter": { "kind": "dog", "size": { "min": 1 } },
        "X-Request-Tag": "mine", "theme": "dark; x=y",
    });
    let listed = result(running.call(&client, "listPets", arguments).await);
    assert_eq!(listed["structuredContent"]["pets"][0]["name"], "Rex");
    let last = &service.seen().await["last"];
    assert_eq!(
        last["query"],
        "limit=3&tags=a%20b&tags=c%26d&filter%5Bkind%5D=dog&filter%5Bsize%5D%5Bmin%5D=1"
    );
    assert_eq!(last["headers"]["x-request-tag"], "mine");
    assert_eq!(last["headers"]["cookie"], "theme=dark%3B%20x%3Dy");
    let created = running
        .call(&client, "createPet", json!({ "name": "Mia", "nick": null }))
        .await;
    assert_eq!(
        result(created)["structuredContent"],
        json!({ "id": 2, "name": "Mia", "nick": null })
    );
    let last = &service.seen().await["last"];
    assert_eq!(last["headers"]["content-type"], "application/json");
    let sent = json!({ "petId": "1", "what": "file", "note": "hi", "file": "AAECAw==" });
    result(running.call(&client, "upload", sent).await);
    let body = service.seen().await["last"]["body"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(body.contains("name=\"file\"; filename=\"file\"\r\nContent-Type: application/octet-stream\r\n\r\n\0\u{1}\u{2}\u{3}\r\n"), "{body:?}");
    assert!(body.contains("name=\"note\"\r\n\r\nhi\r\n"), "{body:?}");
}

#[tokio::test]
async fn a_number_that_would_be_rounded_is_not_sent() {
    let service = Petstore::start().await;
    let running = service.backend().await;
    let client = Client::named("a");
    let mut call = client.call(json!({}));
    for (number, sent) in [
        ("3", Some("limit=3")),
        ("9007199254740993", Some("limit=9007199254740993")),
        ("18446744073709551617", None),
        ("1.00000000000000000000001", None),
    ] {
        let params = format!(r#"{{"name":"listPets","arguments":{{"limit":{number}}}}}"#);
        call.params = Some(RawJson::parse_text(params.into()).unwrap());
        let before = service.seen().await["last"].clone();
        let outcome = running.run(&client, &call).await;
        let last = service.seen().await["last"].clone();
        match sent {
            Some(query) => assert_eq!(last["query"], query),
            None => {
                let said = told(outcome);
                assert!(
                    said.contains(number) && said.contains("more digits"),
                    "{said}"
                );
                assert_eq!(last, before);
            }
        }
    }
}

#[tokio::test]
async fn a_hostile_argument_does_not_leave_its_place() {
    let service = Petstore::start().await;
    let running = service.backend().await;
    let client = Client::named("a");
    let fetched = told(
        running
            .call(&client, "getPet", json!({ "petId": "../../seen?x#y" }))
            .await,
    );
    assert!(fetched.starts_with("404"), "{fetched}");
    assert_eq!(
        service.seen().await["last"]["path"],
        "/v1/pets/..%2F..%2Fseen%3Fx%23y"
    );
    let before = service.seen().await["runs"].clone();
    for pet in ["..", ".", ""] {
        told(
            running
                .call(&client, "getPet", json!({ "petId": pet }))
                .await,
        );
    }
    let split = json!({ "X-Request-Tag": "a\r\nX-Admin: 1" });
    let split = told(running.call(&client, "listPets", split).await);
    assert!(
        split.contains("line breaks") && !split.contains("X-Admin"),
        "{split}"
    );
    let missing = told(running.call(&client, "getPet", json!({})).await);
    assert!(missing.contains("\"petId\" is missing"), "{missing}");
    assert_eq!(service.seen().await["runs"], before);
    let given = json!({ "Authorization": "Bearer mine", "nobody": "knows" });
    result(running.call(&client, "listPets", given).await);
    let last = &service.seen().await["last"];
    assert_eq!(
        (&last["headers"]["authorization"], &last["query"]),
        (&Value::Null, &json!(""))
    );
    let unknown = error(running.call(&client, "seen", json!({})).await);
    assert!(unknown.message.contains("unknown tool"));
}
