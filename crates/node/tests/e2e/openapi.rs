use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::client::{Session, call, modern, modern_call, post_modern, request, response, text};
use crate::process::{SOON, Server, shoal};

async fn petstore(flags: &[&str]) -> (Child, String) {
    let script = "/../worker/tests/fixtures/petstore.py";
    let mut child = Command::new("python3")
        .arg("-u")
        .arg([env!("CARGO_MANIFEST_DIR"), script].concat())
        .args(flags)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let url = lines.next_line().await.unwrap().expect("it starts");
    (child, url)
}

async fn seen(url: &str) -> Value {
    let seen = reqwest::get(format!("{url}/seen")).await.unwrap();
    seen.json().await.unwrap()
}

async fn seen_where(url: &str, holds: impl Fn(&Value) -> bool) {
    let wait = async {
        while !holds(&seen(url).await) {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, wait).await.expect("it is seen");
}

fn names(listed: &Value) -> Vec<&str> {
    let tools = listed["result"]["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn operations_are_tools_for_clients_of_both_eras() {
    let (_service, url) = petstore(&[]).await;
    let server = Server::start(&["--openapi", &format!("{url}/openapi.json")]).await;
    let session = Session::open(&server.mcp).await;
    let legacy = session.ask(&request(1, "tools/list", json!({}))).await;
    let listing = post_modern(&server.mcp, &modern(2, "tools/list", json!({})));
    let modern = response(listing.send().await.unwrap()).await;
    assert!(names(&legacy).contains(&"getPet") && names(&legacy) == names(&modern));

    let rex = json!({ "id": 1, "name": "Rex", "nick": null });
    let found = session
        .ask(&call(3, "getPet", json!({ "petId": "1" })))
        .await;
    assert_eq!(found["result"]["structuredContent"], rex, "{found}");
    let finding = post_modern(
        &server.mcp,
        &modern_call(4, "getPet", json!({ "petId": "1" })),
    );
    let found = response(finding.send().await.unwrap()).await;
    assert_eq!(found["result"]["structuredContent"], rex, "{found}");

    let missing = session
        .ask(&call(5, "getPet", json!({ "petId": "9" })))
        .await;
    assert_eq!(missing["result"]["isError"], true);
    assert!(text(&missing).starts_with("404 Not Found"), "{missing}");
    let refused = session
        .ask(&call(6, "createPet", json!({ "name": 7 })))
        .await;
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert!(seen(&url).await["runs"].get("POST /v1/pets").is_none());
}

#[tokio::test]
async fn a_cancelled_call_ends_at_the_service() {
    let (_service, url) = petstore(&[]).await;
    let server = Server::start(&["--openapi", &format!("{url}/openapi.json")]).await;
    let session = Session::open(&server.mcp).await;
    let slow = call(1, "slow", json!({}));
    let asking = session.ask(&slow);
    let cancelling = async {
        seen_where(&url, |seen| seen["runs"]["GET /v1/slow"] == 1).await;
        let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": { "requestId": 1 } });
        session.post(&cancelled).send().await.unwrap();
        seen_where(&url, |seen| seen["dropped"] == 1).await;
    };
    let ((), answer) = tokio::time::timeout(2 * SOON, async { tokio::join!(cancelling, asking) })
        .await
        .expect("it ends");
    assert_eq!(answer["error"]["code"], -32800, "{answer}");
    let slow = post_modern(&server.mcp, &modern_call(2, "slow", json!({})));
    let asking = tokio::spawn(slow.send());
    seen_where(&url, |seen| seen["runs"]["GET /v1/slow"] == 2).await;
    asking.abort();
    seen_where(&url, |seen| seen["dropped"] == 2).await;
}

#[tokio::test]
async fn no_client_notices_that_the_service_is_restarted() {
    let (mut service, url) = petstore(&[]).await;
    let document = format!("document = '{url}/openapi.json'");
    let pool = format!("{{ openapi = {{ {document}, max_restart_delay = '200ms' }} }}");
    let environment = [
        ("SHOAL_POOLS__PETS__BACKEND", &*pool),
        // The service may start slowly on a busy machine.
        ("SHOAL_POOLS__PETS__QUEUE_AGE", "60s"),
    ];
    let server = Server::start_with(&[], &environment).await;
    let session = Session::open(&server.mcp).await;
    let port = url.rsplit(':').next().unwrap();
    for round in 0..2 {
        let listed = session.ask(&call(10 + round, "listPets", json!({}))).await;
        assert!(listed["result"].is_object(), "{listed}");
        let pid = Pid::from_raw(i32::try_from(service.id().unwrap()).unwrap());
        kill(pid, Signal::SIGKILL).unwrap();
        service.wait().await.unwrap();
        let request = call(20 + round, "listPets", json!({}));
        let flags = ["--port", port];
        let (waited, came) = tokio::join!(session.ask(&request), petstore(&flags));
        service = came.0;
        assert!(waited["result"].is_object(), "{waited}");
    }
    server.wait_for_readiness(200).await;
}

#[tokio::test]
async fn what_cannot_be_used_is_refused_at_once() {
    for (document, told) in [
        ("/there/is/none.yaml", "No such file"),
        ("ftp://host/openapi.json", "no URL of an OpenAPI document"),
    ] {
        let arguments = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
            "--openapi",
            document,
        ];
        let output = tokio::time::timeout(SOON, shoal(&arguments).output()).await;
        let output = output.expect("it ends").unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(told), "{error}");
    }
}

#[tokio::test]
async fn the_pools_rules_filter_operations() {
    let (_service, url) = petstore(&[]).await;
    let pool = format!("{{ openapi = {{ document = '{url}/openapi.json' }} }}");
    let environment = [
        ("SHOAL_POOLS__PETS__BACKEND", &*pool),
        (
            "SHOAL_POOLS__PETS__TOOLS",
            "{ allow = ['*Pet'], deny = ['deletePet'], rename = { getPet = 'find' } }",
        ),
        ("SHOAL_POOLS__PETS__PREFIX", "pets-"),
    ];
    let server = Server::start_with(&[], &environment).await;
    let session = Session::open(&server.mcp).await;
    let listed = session.ask(&request(1, "tools/list", json!({}))).await;
    let mut listed = names(&listed);
    listed.sort_unstable();
    assert_eq!(listed, ["pets-createPet", "pets-find"]);
    let found = session
        .ask(&call(2, "pets-find", json!({ "petId": "1" })))
        .await;
    assert_eq!(
        found["result"]["structuredContent"]["name"], "Rex",
        "{found}"
    );
}

#[tokio::test]
async fn flags_choose_operations_and_what_is_left_out_is_listed() {
    let (_service, url) = petstore(&[]).await;
    let file = std::env::temp_dir().join(format!("{}.yaml", uuid::Uuid::new_v4()));
    let document = format!(
        "openapi: 3.1.0\nservers: [{{url: '{url}/v1'}}]\npaths:\n  \
         /a: {{get: {{operationId: one, tags: [x]}}, put: {{operationId: two, tags: [y]}}}}\n  \
         /b: {{get: {{operationId: three, tags: [x]}}, post: {{operationId: four, tags: [x], parameters: [{{name: p, in: nowhere}}]}}}}\n"
    );
    std::fs::write(&file, document).unwrap();
    let document = file.to_str().unwrap();
    let server = Server::start(&["--openapi", document, "--tag", "x", "--allow", "t*,four"]).await;
    let session = Session::open(&server.mcp).await;
    let listed = session.ask(&request(1, "tools/list", json!({}))).await;
    assert_eq!(names(&listed), ["three"]);
    let arguments = ["tools", "--left-out", "--admin", &server.admin];
    let output = shoal(&arguments).output().await.unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(
        told.starts_with("openapi  POST /b: ") && told.contains("nowhere"),
        "{told}"
    );
    assert_eq!(told.lines().count(), 1, "{told}");

    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--openapi",
        document,
        "--path",
        "/c",
    ];
    let output = tokio::time::timeout(SOON, shoal(&arguments).output()).await;
    let error = String::from_utf8(output.expect("it ends").unwrap().stderr).unwrap();
    assert!(
        error.contains("none of its 4 operations is chosen"),
        "{error}"
    );
    std::fs::remove_file(&file).unwrap();
}

#[tokio::test]
async fn a_long_list_and_tools_in_less_detail_are_told_with_what_helps() {
    let (_service, url) = petstore(&[]).await;
    let file = std::env::temp_dir().join(format!("{}.json", uuid::Uuid::new_v4()));
    let about = |words: usize| "word ".repeat(words);
    let mut paths = serde_json::Map::new();
    for at in 0..101 {
        let parameter =
            json!({ "name": "q", "in": "query", "description": about(at), "schema": {} });
        let operation = json!({ "operationId": format!("op{at}"), "parameters": [parameter] });
        paths.insert(format!("/{at}"), json!({ "get": operation }));
    }
    let document = json!({ "openapi": "3.1.0", "servers": [{ "url": url }], "paths": paths });
    std::fs::write(&file, document.to_string()).unwrap();
    let pool = format!(
        "{{ openapi = {{ document = '{}', schema_bytes = 520 }} }}",
        file.display()
    );
    let server = Server::start_with(&[], &[("SHOAL_POOLS__MANY__BACKEND", &pool)]).await;
    server
        .said("choose some with --allow, --tag or --path")
        .await;
    server.said("tokens=").await;

    let printed = |arguments: Vec<String>| async move {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = shoal(&arguments).output().await.unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let stats = printed(words(&format!("tools --stats --url {}", server.mcp))).await;
    let lines: Vec<&str> = stats.lines().collect();
    assert_eq!(lines.len(), 1 + 101 + 1, "{stats}");
    assert!(lines[102].starts_with("all tools "), "{stats}");
    let stats = printed(words(&format!(
        "tools --stats --output json --url {}",
        server.mcp
    )))
    .await;
    let stats: Value = serde_json::from_str(&stats).unwrap();
    let tools = stats["tools"].as_array().unwrap();
    let each = tools.iter().map(|tool| tool["tokens"].as_u64().unwrap());
    assert_eq!(stats["tokens"].as_u64(), Some(each.sum()));

    // The description of `op100`'s parameter has 500 of the 520 bytes that a schema may have.
    let cut = printed(words(&format!("tools --cut --admin {}", server.admin))).await;
    let last =
        "many  op100: its inputSchema is listed with short descriptions and without examples";
    assert_eq!(cut.lines().last(), Some(last), "{cut}");
    assert!(!cut.contains("op10:"), "{cut}");
    let status = printed(words(&format!("status --admin {}", server.admin))).await;
    let told = "pool many: tools listed in less detail (`shoal tools --cut`): op";
    assert!(status.contains(told), "{status}");
    let told = server.log();
    let once = told.matches("choose some with --allow").count();
    assert_eq!(once, 1, "{told}");
    std::fs::remove_file(&file).unwrap();
}
