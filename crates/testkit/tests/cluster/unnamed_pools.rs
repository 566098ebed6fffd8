use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use shoal_testkit::cluster::{Cluster, Member, Tools};
use tokio::time::sleep;

use crate::client::{modern_call, within};
use crate::start;

const ALL_BUT_ECHO: &str = "[[rules]]\nname = 'others'\neffect = 'allow'\n\n\
     [[rules]]\nname = 'no echo'\neffect = 'deny'\ntools = ['echo']\n";

/// Replaces the file atomically, as the kubelet does.
pub(crate) fn put(file: &Path, text: &str) {
    let next = file.with_extension("next");
    fs::write(&next, text).unwrap();
    fs::rename(next, file).unwrap();
}

pub(crate) async fn call(edge: &Member, tool: &str) -> Value {
    let arguments = json!({ "text": "x" });
    let answer = modern_call(edge.mcp_url().unwrap(), tool, &arguments);
    let answer = within(answer).await.unwrap();
    let mut data = answer
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    let last = data.rfind(|data| !data.is_empty());
    serde_json::from_str(last.unwrap_or(&answer)).unwrap()
}

async fn is_unnamed(edge: &Member) -> Value {
    let status = edge.admin().status().await.unwrap();
    status["pools"][0]["unnamed"].clone()
}

#[tokio::test]
async fn a_new_pool_takes_no_call_before_its_rules_are_in_force() {
    let builder = Cluster::builder().edges(1).sessions(1).workers(1);
    let builder = builder.tools(Tools::Demo).lease(Duration::from_secs(6));
    let cluster = start(builder).await;
    let edge = cluster.edges()[0];
    let [config, rules] = ["edge.toml", "rules.toml"].map(|name| cluster.directory().file(name));
    let reload = "[reload]\nwatch = true\nwatch_every = '100ms'\n";
    let catalog = "[catalog]\nunnamed_pools = false\n";
    // With this interval, only a reload of the configuration rereads the rules.
    let policy = format!("[policy]\nfile = {:?}\nreread = '1h'\n", rules);
    let before = [catalog, reload, &policy].concat();
    put(&rules, "rules = []\n");
    put(&config, &before);
    edge.variable("SHOAL_CONFIG", config.to_str().unwrap());
    edge.kill().await.unwrap();
    edge.start_again().await.unwrap();
    within(async {
        while is_unnamed(edge).await != true {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let ready = edge.wait_until_ready(Duration::from_secs(40)).await;
    ready.unwrap();
    let answer = call(edge, "echo").await;
    assert!(answer["error"].is_object(), "{answer}");

    put(&rules, ALL_BUT_ECHO);
    put(
        &config,
        &format!("{before}[pools.demo]\nbackend = 'demo'\n"),
    );
    within(async {
        while is_unnamed(edge).await != false {
            let answer = call(edge, "echo").await;
            assert!(answer["error"].is_object(), "{answer}");
        }
    })
    .await;
    let answer = call(edge, "echo").await;
    assert_eq!(answer["error"]["code"], -32_602, "{answer}");
    let answer = call(edge, "add").await;
    assert_ne!(answer["error"]["code"], 50_301, "{answer}");

    put(&rules, "rules = []\n");
    put(
        &config,
        &format!("{before}[pools.demo]\nbackend = 'demo'\nlinger = '1m'\n"),
    );
    within(async {
        while call(edge, "echo").await["result"].is_null() {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;

    put(&rules, ALL_BUT_ECHO);
    put(
        &config,
        &format!("{before}[pools.demo]\nbackend = 'demo'\nlinger = '2m'\n"),
    );
    within(async {
        while call(edge, "echo").await["error"].is_null() {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    put(&rules, "rules = []\n");
    put(&config, &before);
    within(async {
        while is_unnamed(edge).await != true {
            let answer = call(edge, "echo").await;
            assert!(answer["error"].is_object(), "{answer}");
        }
    })
    .await;
    for tool in ["echo", "add"] {
        let answer = call(edge, tool).await;
        assert!(answer["error"].is_object(), "{answer}");
    }
}
