use std::time::Duration;

use serde_json::{Value, json};
use shoal_testkit::cluster::{Cluster, Member, Tools};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::client::{Client, modern_call, text_of, within};
use crate::start;

/// Longer than the test takes, and shorter than a session's calls may take.
const WAIT: &str = "50s";

async fn cluster() -> Cluster {
    let builder = Cluster::builder().edges(1).sessions(1).workers(1);
    let builder = builder
        .tools(Tools::Demo)
        .lease(Duration::from_secs(6))
        .setting("pools.demo.backend", "demo")
        .setting("pools.demo.linger", "100ms")
        .setting("pools.demo.scale_to_zero.wait", WAIT);
    start(builder).await
}

async fn is_remembered(cluster: &Cluster) -> bool {
    let redis = cluster.redis().unwrap().address();
    let mut redis = TcpStream::connect(redis).await.unwrap();
    let question = b"EXISTS shoal:{nodes}:catalog:demo\r\n";
    redis.write_all(question).await.unwrap();
    let mut answer = [0; 4];
    within(redis.read_exact(&mut answer)).await.unwrap();
    &answer == b":1\r\n"
}

async fn again(member: &Member) {
    member.kill().await.unwrap();
    member.start_again().await.unwrap();
    let ready = member.wait_until_ready(Duration::from_secs(40)).await;
    ready.unwrap();
}

/// Sums the metric over all nodes, as a scaler does.
async fn awaiting(cluster: &Cluster) -> f64 {
    let mut sum = 0.0;
    for node in [cluster.edges(), cluster.sessions()].concat() {
        let of_node = node.admin().metric("shoal_pool_awaiting", "\"demo\"").await;
        sum += of_node.unwrap();
    }
    sum
}

async fn scale(cluster: &Cluster, calls: f64) {
    within(async {
        while awaiting(cluster).await < calls {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    cluster.workers()[0].start_again().await.unwrap();
}

fn message(answer: &str) -> Value {
    let mut data = answer
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    let last = data.rfind(|data| !data.is_empty());
    serde_json::from_str(last.unwrap_or(answer)).unwrap()
}

#[tokio::test]
async fn a_pool_at_zero_is_listed_and_its_first_calls_bring_a_worker() {
    let cluster = cluster().await;
    within(async {
        while !is_remembered(&cluster).await {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let [edge, session, worker] = [
        cluster.edges()[0],
        cluster.sessions()[0],
        cluster.workers()[0],
    ];
    let ended = worker.terminate(Duration::from_secs(20)).await.unwrap();
    assert!(ended.success());
    // The restarted edge has heard from no worker.
    session.kill().await.unwrap();
    edge.set("pools.demo.scale_to_zero.wait", "300ms");
    again(edge).await;

    let url = edge.mcp_url().unwrap();
    let arguments = json!({ "text": "hello" });
    let refused = within(modern_call(url, "echo", &arguments)).await.unwrap();
    let refused = message(&refused);
    assert_eq!(refused["error"]["code"], 50_301, "{refused}");
    let why = refused["error"]["message"].as_str().unwrap();
    assert!(
        why.contains("demo") && why.contains("none came within"),
        "{why}"
    );

    edge.unset("pools.demo.scale_to_zero.wait");
    session.start_again().await.unwrap();
    again(edge).await;
    edge.wait_until_it_knows(1, 0, Duration::from_secs(30))
        .await
        .unwrap();
    let client = Client::open(url).await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let list = client.post(&list).await.body;
    let tools = list["result"]["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "echo"), "{list}");

    let calls = async {
        tokio::join!(
            client.answered(2, "echo", &arguments),
            within(modern_call(url, "echo", &arguments)),
        )
    };
    let ((legacy, modern), ()) = tokio::join!(calls, scale(&cluster, 2.0));
    assert_eq!(text_of(legacy.last().unwrap()), "hello");
    assert_eq!(text_of(&message(&modern.unwrap())), "hello");
    assert!(awaiting(&cluster).await.abs() < 0.5);
}
