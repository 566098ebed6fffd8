use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use shoal_testkit::cluster::{Cluster, Tools};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::client::{Client, SOON, text_of};

pub(crate) struct Upstream {
    pub(crate) url: String,
    child: Child,
}

impl Upstream {
    pub(crate) async fn start(port: &str) -> Self {
        let script = "/../worker/tests/fixtures/streamable.py";
        let mut child = Command::new("python3")
            .arg("-u")
            .arg([env!("CARGO_MANIFEST_DIR"), script].concat())
            .args(["--port", port])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines.next_line().await.unwrap().expect("it starts");
        Self { url, child }
    }

    /// Restarts the server, which then has no sessions.
    async fn restart(&mut self) {
        self.child.kill().await.unwrap();
        let port = self.url.trim_end_matches("/mcp").rsplit(':').next();
        let port = port.unwrap().to_owned();
        *self = Self::start(&port).await;
    }

    pub(crate) async fn seen(&self, method: &str) -> Value {
        let url = self.url.replace("/mcp", "/seen");
        let seen: Value = reqwest::get(url).await.unwrap().json().await.unwrap();
        seen["headers"][method].clone()
    }
}

async fn before(upstream: &Upstream) -> Cluster {
    let pool = format!(
        "[pools.remote]\nbackend = {{ http = {{ url = \"{}\", forward = [\"x-team\"], restart_delay = \"50ms\", max_restart_delay = \"500ms\" }} }}\nqueue_age = \"40s\"\n",
        upstream.url
    );
    let cluster = Cluster::builder().edges(2).sessions(2).workers(2);
    super::start(cluster.tools(Tools::Configured(pool))).await
}

#[tokio::test]
async fn headers_that_a_pool_asks_for_reach_its_server_from_any_edge() {
    let upstream = Upstream::start("0").await;
    let cluster = before(&upstream).await;
    let client = Client::open(cluster.url()).await;
    let headers = [("x-team", "blue"), ("x-other", "no")];
    for edge in cluster.edges() {
        let client = client.at(edge.mcp_url().unwrap()).bringing(&headers);
        let said = client.text(1, "echo", &json!({ "text": "x" })).await;
        assert_eq!(said, "x");
        let seen = upstream.seen("tools/call").await;
        assert_eq!(
            (&seen["x-team"], &seen["x-other"]),
            (&json!("blue"), &Value::Null)
        );
    }
    cluster.end().await;
}

#[tokio::test]
async fn no_client_notices_that_a_server_is_restarted_under_load() {
    let mut upstream = Upstream::start("0").await;
    let cluster = before(&upstream).await;
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(Client::open(cluster.url()).await);
    }
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let load = clients.iter().map(|client| async {
        for id in 1.. {
            let arguments = json!({ "text": id.to_string() });
            let messages = client.answered(id, "echo", &arguments).await;
            assert_eq!(text_of(messages.last().unwrap()), id.to_string());
            answered.fetch_add(1, Ordering::Relaxed);
            if over.load(Ordering::Relaxed) {
                break;
            }
        }
    });
    let goes_on = async || {
        let enough = answered.load(Ordering::Relaxed) + 20;
        let wait = async {
            while answered.load(Ordering::Relaxed) < enough {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = tokio::time::timeout(SOON, wait).await;
        waited.expect("calls are answered");
    };
    let restarts = async {
        goes_on().await;
        for _ in 0..3 {
            upstream.restart().await;
            goes_on().await;
        }
        over.store(true, Ordering::Relaxed);
    };
    tokio::join!(futures::future::join_all(load), restarts);
    cluster.end().await;
}
