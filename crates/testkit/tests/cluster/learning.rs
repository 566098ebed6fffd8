//! Nodes that start while a worker is late must not refuse permanently.

use std::time::Duration;

use serde_json::{Value, json};
use shoal_testkit::cluster::{Cluster, Member};
use shoal_testkit::fault_proxy::Fault;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use crate::client::{Client, text_of, within};
use crate::start;

const LOOK_FOR: Duration = Duration::from_secs(3);
/// How long a started node holds back lists, because a pool may be missing.
const KEEPS_BACK: Duration = Duration::from_secs(15);
const LATE: &str = "test_simple_text";

async fn cluster_of(sessions: usize) -> Cluster {
    let builder = Cluster::builder().edges(1).sessions(sessions).workers(2);
    let builder = builder
        .lease(Duration::from_secs(12))
        .setting("cluster.learning", "5s")
        .setting("redis.response_timeout", "8s");
    let cluster = start(builder.fault_proxies()).await;
    let second = cluster.workers()[1];
    second.set("pools.late.backend", "conformance");
    second.kill().await.unwrap();
    second.start_again().await.unwrap();
    within(async {
        while !text(&modern(&cluster, "tools/call", LATE).await).contains("simple text") {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    within(async {
        while !remembered(&cluster).await {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    cluster
}

fn text(answer: &Value) -> String {
    answer["result"]["content"][0]["text"].to_string()
}

async fn remembered(cluster: &Cluster) -> bool {
    let redis = cluster.redis().unwrap().address();
    let mut redis = TcpStream::connect(redis).await.unwrap();
    let question = b"GET shoal:{nodes}:pools\r\n";
    redis.write_all(question).await.unwrap();
    let mut answer = [0; 256];
    let length = within(redis.read(&mut answer)).await.unwrap();
    String::from_utf8_lossy(&answer[..length]).contains("late")
}

async fn modern(cluster: &Cluster, method: &str, name: &str) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    let params = json!({ "name": name, "arguments": {}, "_meta": meta });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let url = cluster.edges()[0].mcp_url().unwrap();
    let post = reqwest::Client::new().post(url).json(&request);
    let mut post = post
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    if method == "tools/call" {
        post = post.header("mcp-name", name);
    }
    let answer = within(post.send()).await.unwrap();
    let headers = answer.headers().clone();
    let text = within(answer.text()).await.unwrap();
    let text = text
        .lines()
        .find_map(|line| line.strip_prefix("data: ").filter(|data| !data.is_empty()))
        .unwrap_or(&text);
    let answer: Value = serde_json::from_str(text).unwrap();
    // The edge sends the headers of a streamed answer before the outcome is known.
    let streamed = headers["content-type"] == "text/event-stream";
    if answer["error"]["code"] == 50_301 && method == "tools/call" && !streamed {
        assert!(headers.contains_key("retry-after"), "{answer}");
    }
    answer
}

fn cut(cluster: &Cluster, nodes: &[&Member], fault: Fault) {
    for node in nodes {
        cluster.between(cluster.workers()[1], node, fault);
    }
}

#[tokio::test]
async fn a_tool_of_a_pool_that_dials_late_is_never_unknown() {
    let cluster = cluster_of(1).await;
    let nodes = [cluster.edges()[0], cluster.sessions()[0]];
    cut(&cluster, &nodes, Fault::Cut);
    for node in nodes {
        node.kill().await.unwrap();
    }
    let [edge, session] = nodes;
    session.start_again().await.unwrap();
    let began = Instant::now();
    edge.start_again().await.unwrap();
    let calls = async {
        let until = Instant::now() + LOOK_FOR;
        while Instant::now() < until {
            let call = modern(&cluster, "tools/call", LATE).await;
            assert_eq!(call["error"]["code"], 50_301, "{call}");
            sleep(Duration::from_millis(50)).await;
        }
    };
    let list = async {
        let list = modern(&cluster, "tools/list", "").await;
        if began.elapsed() < KEEPS_BACK {
            assert_eq!(list["error"]["code"], 50_301, "half a list: {list}");
        }
    };
    tokio::join!(list, calls);
    cluster.heal();
    within(async {
        while !text(&modern(&cluster, "tools/call", LATE).await).contains("simple text") {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    assert_eq!(
        modern(&cluster, "tools/call", "none").await["error"]["code"],
        -32602
    );
}

#[tokio::test]
async fn a_tool_stays_known_while_all_session_nodes_are_away() {
    let cluster = cluster_of(2).await;
    let client = Client::open(cluster.url()).await;
    let sessions = cluster.sessions();
    cut(&cluster, &sessions, Fault::Cut);
    for node in &sessions {
        node.kill().await.unwrap();
    }
    for node in &sessions {
        node.start_again().await.unwrap();
    }
    let mut healed = false;
    let answer = within(async {
        for id in 1.. {
            let answer = client.call(id, LATE, &json!({})).await;
            if answer.body["result"].is_object() {
                return answer;
            }
            // The edge may have sent the first call to a killed node. Then the edge does not know
            // whether a worker has the call.
            let perhaps_sent = id == 1 && answer.body["error"]["code"] == 50_002;
            let not_yet = perhaps_sent || answer.body["error"]["code"] == 50_301;
            assert!(not_yet || answer.status == 503, "{answer:?}");
            if not_yet && !std::mem::replace(&mut healed, true) {
                cluster.heal();
            }
            sleep(Duration::from_millis(100)).await;
        }
        unreachable!("ids do not end")
    })
    .await;
    assert!(
        healed && text_of(&answer.body).contains("simple text"),
        "{answer:?}"
    );
}
