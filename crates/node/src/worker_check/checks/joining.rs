use serde_json::{Value, json};
use shoal_rpc::proto::types::v1::Node;
use shoal_rpc::proto::worker::v1::node_frame::Frame as Said;
use shoal_rpc::proto::worker::v1::{Cancel, Detach, NodeFrame, Nodes};
use tokio::time::timeout;

use crate::worker_check::call_reader::CallReader;
use crate::worker_check::check_failure::{CheckResult, expect, failed};
use crate::worker_check::link::Setting;
use crate::worker_check::listener::WorkerListener;

pub(super) async fn hello(listener: &mut WorkerListener) -> CheckResult {
    let link = listener.link().await?;
    let hello = &link.hello;
    expect(
        !hello.worker.is_empty(),
        "a worker with a name",
        "an empty one",
    )?;
    expect(
        hello.incarnation != 0,
        "an incarnation drawn at random",
        "0",
    )?;
    let versions = hello.versions.unwrap_or_default();
    expect(
        versions.highest >= 3,
        "version 3 or later, which has session state",
        format!("{} to {}", versions.lowest, versions.highest),
    )
}

pub(super) async fn announce(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    let said = link.announced(|said| said.catalog.is_some()).await?;
    expect(!said.pool.is_empty(), "a pool with a name", "an empty one")?;
    let catalog = said.catalog.unwrap_or_default();
    for tool in &catalog.tools {
        let tool: Value = match serde_json::from_slice(tool) {
            Ok(tool) => tool,
            Err(error) => return failed("tools that are JSON", error),
        };
        let is_tool = tool["name"].is_string() && tool["inputSchema"]["type"] == "object";
        expect(
            is_tool,
            "a tool with a name and an inputSchema of type object",
            &tool,
        )?;
    }
    let lists = [
        &catalog.resources,
        &catalog.resource_templates,
        &catalog.prompts,
    ];
    let objects = lists.into_iter().flatten().chain(&catalog.server_info);
    for text in objects.filter(|text| !text.is_empty()) {
        let object = serde_json::from_slice::<Value>(text).is_ok_and(|value| value.is_object());
        expect(object, "JSON objects in the catalog", format!("{text:?}"))?;
    }
    let capabilities = &catalog.capabilities;
    let object = capabilities.is_empty()
        || serde_json::from_slice::<Value>(capabilities).is_ok_and(|value| value.is_object());
    expect(
        object,
        "capabilities that are a JSON object, or nothing",
        format!("{capabilities:?}"),
    )
}

pub(super) async fn load(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    while link.load.is_none_or(|load| load.capacity == 0) {
        link.read("a load with a capacity above 0").await?;
    }
    Ok(())
}

pub(super) async fn pong(listener: &mut WorkerListener) -> CheckResult {
    listener.link().await?.ping().await
}

pub(super) async fn unknown(listener: &mut WorkerListener) -> CheckResult {
    let mut link = listener.link().await?;
    link.send(NodeFrame { frame: None }).await?;
    let flight = 4_000_000_000;
    let reason = "nobody is there".to_owned();
    link.say(Said::Cancel(Cancel { flight, reason })).await?;
    let nobody = CallReader {
        number: flight,
        read: 0,
        reader: 0,
    };
    link.answer(&nobody, 1, &json!({})).await?;
    link.say(Said::Detach(Detach {
        flight,
        steering: false,
    }))
    .await?;
    link.ping().await
}

pub(super) async fn nodes(listener: &mut WorkerListener) -> CheckResult {
    let link = listener.link().await?;
    let other = WorkerListener::listen("127.0.0.1:0", listener.patience).await;
    let mut other = match other {
        Ok(other) => other,
        Err(error) => return failed("a second address on this machine", error),
    };
    let node = |id: &str, address: &str| Node {
        id: id.to_owned(),
        address: address.to_owned(),
        session: true,
        edge: true,
        ..Node::default()
    };
    let first = node("worker-check", &listener.address);
    let nodes = vec![first.clone(), node("worker-check-2", &other.address)];
    link.say(Said::Nodes(Nodes { nodes })).await?;
    let second = timeout(listener.long(), other.link()).await;
    let expected = "a link to each node that the worker is told of";
    let second = match second {
        Ok(second) => second?,
        Err(_) => return failed(expected, "no link to the second one"),
    };
    let same = second.hello.incarnation == link.hello.incarnation
        && second.hello.worker == link.hello.worker;
    expect(
        same,
        "the same name and incarnation on every link",
        format!("{:?}", second.hello),
    )?;
    // With this list, the worker no longer dials the second node.
    link.say(Said::Nodes(Nodes { nodes: vec![first] })).await?;
    second.close().await
}

pub(super) async fn redial(listener: &mut WorkerListener) -> CheckResult {
    let first = listener.link().await?;
    let before = first.hello.clone();
    first.hang_up();
    let after = listener.link().await?.hello.clone();
    let same = (before.worker, before.incarnation) == (after.worker.clone(), after.incarnation);
    expect(same, "the same name and incarnation", format!("{after:?}"))
}

pub(super) async fn oldest_version(listener: &mut WorkerListener) -> CheckResult {
    let setting = Setting {
        oldest: true,
        ..Setting::default()
    };
    let mut link = listener.link_with(setting).await?;
    let call = link.call("echo", json!({ "text": "old" }));
    let mut flight = link.start(&call).await?;
    let text = link.text(&mut flight).await?;
    expect(text == "old", "\"old\"", text)
}
