//! Published servers. `npx` fetches them, so these tests run only on demand: `cargo test -p
//! shoal-worker packages -- --ignored`.

use std::time::Duration;

use serde_json::json;
use shoal_ports::CallOutcome;
use shoal_protocol::{Method, RawJson};

use super::harness::{Client, TestBackend, scratch, text};
use crate::{Isolation, StdioConfig};

fn npx(package: &str, argument: &str, isolation: Isolation) -> StdioConfig {
    let mut config = StdioConfig::new("npx");
    config.args = ["-y", package, argument].map(str::to_owned).into();
    config.isolation = isolation;
    config.start_timeout = Duration::from_secs(120).into();
    config
}

fn everything(outcome: &CallOutcome) -> &str {
    match outcome {
        CallOutcome::Result(result) => result.as_str(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
#[ignore = "needs npm and its registry"]
async fn server_everything_lists_calls_and_asks() {
    for isolation in [Isolation::Shared, Isolation::Session] {
        let config = npx(
            "@modelcontextprotocol/server-everything",
            "stdio",
            isolation,
        );
        let running = TestBackend::start_slowly(config).await;
        let wanted = "trigger-sampling-request";
        let catalog =
            running.catalog_where(|c| c.tools.iter().any(|t| t.as_str().contains(wanted)));
        let catalog = catalog.await;
        assert!(catalog.resources.len() >= 7 && catalog.resource_templates.len() == 2);
        assert_eq!(catalog.prompts.len(), 4);

        let mut client = Client::askable("user");
        let echo = running
            .call(&client, "echo", json!({ "message": "hi" }))
            .await;
        assert_eq!(text(&echo), "Echo: hi");
        client.progress_token = Some(RawJson::from_static("\"mine\""));
        let arguments = json!({ "duration": 0.3, "steps": 3 });
        running
            .call(&client, "trigger-long-running-operation", arguments)
            .await;
        let progress = client.notes(&Method::Progress);
        assert_eq!(progress.len(), 3);
        assert_eq!(progress[0]["progressToken"], "mine");

        let elicited = running
            .call(&client, "trigger-elicitation-request", json!({}))
            .await;
        assert!(everything(&elicited).contains("User provided the requested information"));
        let sampled = running
            .call(&client, wanted, json!({ "prompt": "x" }))
            .await;
        assert!(
            everything(&sampled).contains("sampled for user"),
            "{sampled:?}"
        );
        let methods: Vec<_> = client.asked();
        let asked = |method: &str| methods.iter().filter(|m| m.starts_with(method)).count();
        assert_eq!(
            (asked("elicitation/create"), asked("sampling/createMessage")),
            (1, 1)
        );
        if isolation == Isolation::Session {
            let roots = running.call(&client, "get-roots-list", json!({})).await;
            assert!(everything(&roots).contains("file:///user"), "{roots:?}");
        }
        running
            .0
            .subscribe("demo://resource/dynamic/text/1")
            .await
            .unwrap();
        running.0.shutdown().await;
    }
}

#[tokio::test]
#[ignore = "needs npm and its registry"]
async fn server_filesystem_keeps_its_directories() {
    for isolation in [Isolation::Shared, Isolation::Session] {
        let directory = scratch("files");
        std::fs::create_dir(&*directory).unwrap();
        let file = directory.join("hello.txt");
        std::fs::write(&file, "hello").unwrap();
        let path = directory.to_str().unwrap();
        let config = npx("@modelcontextprotocol/server-filesystem", path, isolation);
        let running = TestBackend::start_slowly(config).await;
        for client in [Client::named("plain"), Client::modern("modern", "{}")] {
            let read = running
                .call(&client, "read_text_file", json!({ "path": file }))
                .await;
            assert_eq!(text(&read), "hello");
            let allowed = running
                .call(&client, "list_allowed_directories", json!({}))
                .await;
            assert!(everything(&allowed).contains(path));
        }
        running.0.shutdown().await;
    }
}
