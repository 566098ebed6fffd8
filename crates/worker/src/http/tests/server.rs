use std::time::Duration;

use serde_json::{Value, json};
use shoal_outbound::Outbound;
use tokio::process::Child;

use super::harness::{TestBackend, served};
use crate::{HttpBackend, HttpConfig};

const SCRIPT: &str = "streamable.py";

pub(super) fn started(config: HttpConfig) -> HttpBackend {
    let mut started = HttpBackend::start(config, &Outbound::default()).unwrap();
    started.swap_remove(0)
}

pub(super) struct Server {
    pub(super) url: String,
    child: Child,
    flags: Vec<String>,
}

impl Server {
    pub(super) async fn start(flags: &[&str]) -> Self {
        Self::start_of(flags.iter().map(|&flag| flag.to_owned()).collect()).await
    }

    pub(super) async fn start_of(flags: Vec<String>) -> Self {
        let (child, url) = served(
            SCRIPT,
            &flags.iter().map(String::as_str).collect::<Vec<_>>(),
        )
        .await;
        Self { url, child, flags }
    }

    /// Kills the server, which then has no sessions when it comes again.
    pub(super) async fn stop(&mut self) {
        self.child.kill().await.unwrap();
    }

    pub(super) async fn come_again(&mut self) {
        let port = self.port().to_owned();
        let own = self.flags.iter().map(String::as_str);
        let flags: Vec<&str> = own.chain(["--port", &port]).collect();
        (self.child, self.url) = served(SCRIPT, &flags).await;
    }

    fn port(&self) -> &str {
        let port = self.url.trim_end_matches("/mcp").rsplit(':').next();
        port.unwrap()
    }

    pub(super) fn config(&self) -> HttpConfig {
        HttpConfig {
            restart_delay: Duration::from_millis(20).into(),
            max_restart_delay: Duration::from_millis(200).into(),
            health_interval: Duration::from_millis(200).into(),
            shutdown_grace: Duration::from_millis(500).into(),
            ..HttpConfig::new(&self.url)
        }
    }

    pub(super) async fn backend(&self) -> TestBackend {
        self.backend_of(self.config()).await
    }

    pub(super) async fn backend_of(&self, config: HttpConfig) -> TestBackend {
        TestBackend::of(started(config)).await
    }

    pub(super) async fn seen(&self) -> Value {
        let url = self.url.replace("/mcp", "/seen");
        reqwest::get(url).await.unwrap().json().await.unwrap()
    }

    pub(super) async fn seen_where(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let wait = async {
            loop {
                let seen = self.seen().await;
                if holds(&seen) {
                    return seen;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(20), wait).await;
        match waited {
            Ok(seen) => seen,
            Err(_) => panic!("not in time: {what}: {}", self.seen().await),
        }
    }

    pub(super) async fn order(&self, order: Value) {
        let url = self.url.replace("/mcp", "/order");
        let ordered = reqwest::Client::new().post(url).body(order.to_string());
        assert!(ordered.send().await.unwrap().status().is_success());
    }

    pub(super) async fn forget(&self) {
        self.order(json!({ "forget": true })).await;
    }
}
