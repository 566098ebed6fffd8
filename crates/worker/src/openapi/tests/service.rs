use std::time::Duration;

use serde_json::Value;
use shoal_ports::CallOutcome;
use tokio::process::Child;

use super::harness::{TestBackend, served};
use crate::{OpenApiBackend, OpenApiConfig, ToolChoice};
use shoal_outbound::Outbound;

const SCRIPT: &str = "petstore.py";

pub(super) struct Petstore {
    /// Without a path.
    pub(super) url: String,
    child: Child,
}

impl Petstore {
    pub(super) async fn start() -> Self {
        let (child, url) = served(SCRIPT, &[]).await;
        Self { url, child }
    }

    pub(super) async fn stop(&mut self) {
        self.child.kill().await.unwrap();
    }

    pub(super) async fn come_again(&mut self) {
        let port = self.url.rsplit(':').next().unwrap().to_owned();
        (self.child, self.url) = served(SCRIPT, &["--port", &port]).await;
    }

    pub(super) fn config(&self) -> OpenApiConfig {
        OpenApiConfig {
            restart_delay: Duration::from_millis(20).into(),
            max_restart_delay: Duration::from_millis(200).into(),
            health_interval: Duration::from_millis(200).into(),
            ..OpenApiConfig::new(format!("{}/openapi.json", self.url))
        }
    }

    pub(super) async fn backend(&self) -> TestBackend {
        self.backend_of(self.config()).await
    }

    pub(super) async fn backend_of(&self, config: OpenApiConfig) -> TestBackend {
        TestBackend::of(
            OpenApiBackend::start(config, ToolChoice::default(), None, &Outbound::default())
                .unwrap(),
        )
        .await
    }

    pub(super) async fn seen(&self) -> Value {
        let url = format!("{}/seen", self.url);
        reqwest::get(url).await.unwrap().json().await.unwrap()
    }

    pub(super) async fn seen_where(&self, what: &str, holds: impl Fn(&Value) -> bool) {
        let wait = async {
            while !holds(&self.seen().await) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(20), wait).await;
        waited.unwrap_or_else(|_| panic!("not in time: {what}"));
    }
}

pub(super) fn result(outcome: CallOutcome) -> Value {
    match outcome {
        CallOutcome::Result(result) => result.read().unwrap(),
        other => panic!("{other:?}"),
    }
}

pub(super) fn told(outcome: CallOutcome) -> String {
    let result = result(outcome);
    assert_eq!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}
