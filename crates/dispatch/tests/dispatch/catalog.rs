use std::time::Duration;

use serde_json::{Value, json};
use shoal_dispatch::{Config, PoolConfig};
use shoal_ports::{CallOutcome, CatalogSettings, Dispatcher as _, PoolCatalog, Repeat};
use shoal_protocol::{Method, RawJson, Revision, code};

use crate::fake_worker::FakeWorker;
use crate::setting::{call, configured, items, legacy, setting, tools};

fn prefixed(pool: &str, prefix: &str) -> Config {
    let settings = PoolConfig {
        prefix: prefix.into(),
        ..PoolConfig::default()
    };
    Config {
        pools: [(pool.to_owned(), settings)].into(),
        ..Config::default()
    }
}

#[tokio::test]
async fn a_prefix_is_for_clients_only() {
    let setting = configured(prefixed("b", "b_"));
    let mut catalog = tools(&["same"]);
    catalog.prompts = items(json!([{"name":"ask"}]));
    setting.add(FakeWorker::new("w1", "a", tools(&["same"])));
    let worker = setting.add(FakeWorker::new("w2", "b", catalog));
    assert!(setting.dispatch.conflicts().is_empty());
    setting.result(legacy("b_same", json!({"a":1}))).await;
    assert_eq!(
        worker.last_params(),
        json!({"name":"same","arguments":{"a":1}})
    );
    let reference = json!({"ref":{"type":"ref/prompt","name":"b_ask"},"argument":{}});
    setting
        .result(call(Revision::V2025_06_18, Method::Complete, reference))
        .await;
    assert_eq!(worker.last_params()["ref"]["name"], "ask");
}

#[tokio::test]
async fn capabilities_are_those_of_all_pools_but_never_tasks() {
    let setting = setting();
    let declaring = |capabilities: &'static str| {
        let mut catalog = PoolCatalog::default();
        catalog.capabilities.0 = RawJson::from_static(capabilities);
        catalog
    };
    let a = r#"{"tools":{},"tasks":{},"logging":{},"experimental":{"x":{"v":1}}}"#;
    let b = r#"{"completions":{},"experimental":{"x":{"v":2},"y":{}},
        "extensions":{"io.modelcontextprotocol/tasks":{},"io.example/z":{}}}"#;
    setting.add(FakeWorker::new("w1", "a", declaring(a)));
    setting.add(FakeWorker::new("w2", "b", declaring(b)));
    let facts = setting.dispatch.facts().borrow().clone();
    let capabilities: Value = facts.capabilities.read().unwrap();
    assert_eq!(
        capabilities,
        json!({"tools":{"listChanged":true},"completions":{},"logging":{},
            "experimental":{"x":{"v":1},"y":{}},"extensions":{"io.example/z":{}}})
    );
    let info: Value = facts.server_info.read().unwrap();
    assert_eq!(info["name"], "shoal");
}

#[tokio::test]
async fn versions_change_with_content_and_with_announcements() {
    let setting = setting();
    let worker = setting.add(FakeWorker::new("w1", "a", tools(&["one"])));
    let mut facts = setting.dispatch.facts();
    let [tools0, resources0, prompts0] = facts.borrow_and_update().versions;
    worker.announce(Some(tools(&["one", "two"])), None);
    facts.changed().await.unwrap();
    let [tools1, resources1, _] = facts.borrow_and_update().versions;
    assert!(tools1 != tools0 && resources1 == resources0);
    // The worker announces a change of prompts, which counts although the prompts are the same.
    let mut again = tools(&["one", "two"]);
    again.generations = [0, 0, 1];
    worker.announce(Some(again), None);
    facts.changed().await.unwrap();
    let [tools2, _, prompts2] = facts.borrow_and_update().versions;
    assert!(tools2 == tools1 && prompts2 != prompts0);
}

#[tokio::test]
async fn tools_stay_listed_while_their_backend_restarts() {
    let setting = setting();
    let worker = setting.add(FakeWorker::new("w1", "a", tools(&["one"])));
    let versions = setting.dispatch.facts().borrow().versions;
    worker.announce(None, Some("the process exited"));
    setting.until(|d| !d.status().pools[0].ready).await;
    assert_eq!(setting.dispatch.facts().borrow().versions, versions);
    let failure = setting.failure(legacy("one", json!({}))).await.to_string();
    assert!(failure.contains("w1: the process exited"), "{failure}");
}

#[tokio::test]
async fn a_pool_that_has_not_spoken_makes_unknown_tools_unready() {
    let setting = setting();
    let worker = FakeWorker::new("w1", "a", tools(&["one"]));
    worker.announce(None, Some("starting"));
    let worker = setting.add(worker);
    let failure = setting.failure(legacy("one", json!({}))).await;
    assert!(failure.to_string().contains("starting"), "{failure}");
    worker.announce(Some(tools(&["one"])), None);
    setting.until(|d| d.status().pools[0].ready).await;
    setting.result(legacy("one", json!({}))).await;
    let error = setting.error(legacy("two", json!({}))).await;
    assert_eq!(error.message, "unknown tool: two");
}

#[tokio::test]
async fn a_tool_with_a_broken_header_annotation_is_hidden_from_modern_clients() {
    let setting = setting();
    let mut catalog = tools(&["good"]);
    catalog.tools.extend(items(json!([
        {"name":"hidden","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"a b"}}}},
        {"name":"unchecked","inputSchema":{"type":"nonsense"}}])));
    setting.add(FakeWorker::new("w1", "a", catalog));
    let count = async |revision| {
        let page = setting
            .result(call(revision, Method::ToolsList, json!({})))
            .await;
        page["tools"].as_array().unwrap().len()
    };
    assert_eq!(count(Revision::V2025_11_25).await, 3);
    assert_eq!(count(Revision::V2026_07_28).await, 2);
    setting.result(legacy("hidden", json!({}))).await;
    setting
        .result(legacy("unchecked", json!({"anything":1})))
        .await;
    let degraded = setting.dispatch.status().degraded;
    let tools: Vec<_> = degraded.iter().map(|d| d.tool.as_str()).collect();
    assert_eq!(tools, ["hidden", "unchecked", "unchecked"]);
}

#[tokio::test]
async fn nothing_that_a_pool_lists_breaks_a_list() {
    let setting = setting();
    let mut catalog = tools(&["good"]);
    catalog.tools.extend(items(json!([
        {"name":"\u{1b}[2Jbad","inputSchema":{"type":"object"}}, {"name":""}, {"name":7}, 5,
        {"name":"no_schema"}, {"name":"odd_schema","inputSchema":[]}])));
    catalog.prompts = items(json!([{"name":"fine"}, {"name":"a\nb"}]));
    catalog.resources = items(json!([{"uri":"a:b","name":"b"}, {"uri":"a:\u{0}","name":"nul"}]));
    setting.add(FakeWorker::new("w1", "a", catalog));
    let page = setting
        .result(call(Revision::V2025_11_25, Method::ToolsList, json!({})))
        .await;
    let listed: Vec<_> = page["tools"].as_array().unwrap().iter().collect();
    let names: Vec<_> = listed
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["good", "no_schema", "odd_schema"]);
    assert!(
        listed
            .iter()
            .all(|tool| tool["inputSchema"]["type"] == "object")
    );
    for (method, list) in [
        (Method::PromptsList, "prompts"),
        (Method::ResourcesList, "resources"),
    ] {
        let page = setting
            .result(call(Revision::V2026_07_28, method, json!({})))
            .await;
        assert_eq!(page[list].as_array().unwrap().len(), 1, "{page}");
    }
    let degraded = setting.dispatch.status().degraded;
    let told = |part: &str| degraded.iter().filter(|d| d.reason.contains(part)).count();
    assert_eq!(
        (told("is left out"), told("any object")),
        (6, 2),
        "{degraded:?}"
    );
    assert!(degraded.iter().any(|d| d.tool == r"\u{1b}[2Jbad"));
}

/// The official SDKs refuse a whole list for one malformed member.
#[tokio::test]
async fn a_malformed_item_is_listed_without_what_is_malformed() {
    let setting = setting();
    let catalog = PoolCatalog {
        server_info: Some(RawJson::from_static(r#"{"name":"a"}"#)),
        capabilities: shoal_ports::RawObjectOrEmpty(RawJson::from_static(
            r#"{"experimental":{"x":5,"y":{}},"extensions":5}"#,
        )),
        tools: items(json!([
            {"name":"t","inputSchema":{"type":"object"},"description":5,"annotations":[],"outputSchema":{"type":"array"}},
            {"name":"u","inputSchema":{"type":"object","properties":5}}
        ])),
        prompts: items(json!([{"name":"p","arguments":"none"}])),
        resources: items(json!([{"uri":"a:b","size":"large"}])),
        resource_templates: items(json!([{"uriTemplate":"a:{b}","name":5}])),
        ..PoolCatalog::default()
    };
    setting.add(FakeWorker::new("w1", "a", catalog));
    for (method, member, expected) in [
        (
            Method::ToolsList,
            "tools",
            json!([{"name":"t","inputSchema":{"type":"object"}}, {"name":"u","inputSchema":{"type":"object"}}]),
        ),
        (Method::PromptsList, "prompts", json!([{"name":"p"}])),
        (
            Method::ResourcesList,
            "resources",
            json!([{"uri":"a:b","name":"a:b"}]),
        ),
        (
            Method::ResourceTemplatesList,
            "resourceTemplates",
            json!([{"uriTemplate":"a:{b}","name":"a:{b}"}]),
        ),
    ] {
        let page = setting
            .result(call(Revision::V2025_11_25, method, json!({})))
            .await;
        assert_eq!(page[member], expected);
    }
    let facts = setting.dispatch.facts().borrow().clone();
    let capabilities: Value = facts.capabilities.read().unwrap();
    assert_eq!(capabilities["experimental"], json!({ "y": {} }));
    assert!(capabilities.get("extensions").is_none(), "{capabilities}");
    let info: Value = facts.server_info.read().unwrap();
    assert_eq!(info["name"], "shoal");
    let degraded = setting.dispatch.status().degraded;
    let told = degraded
        .iter()
        .map(|d| (d.tool.as_str(), d.reason.as_str()));
    let malformed: Vec<_> = told
        .filter(|(_, reason)| reason.contains("malformed: "))
        .collect();
    assert_eq!(malformed.len(), 4, "{degraded:?}");
    assert!(
        malformed[0]
            .1
            .ends_with("description, outputSchema, annotations"),
        "{malformed:?}"
    );
}

#[tokio::test]
async fn durability_follows_hints_and_configuration() {
    let mut config = prefixed("a", "a_");
    config.pools.get_mut("a").unwrap().repeatable = vec!["plain".into()];
    let setting = configured(config);
    let mut catalog = tools(&["plain", "other"]);
    catalog.tools.extend(items(
        json!([{"name":"safe","annotations":{"readOnlyHint":true}}]),
    ));
    setting.add(FakeWorker::new("w1", "a", catalog));
    for (tool, repeat) in [
        ("a_plain", Repeat::Safe),
        ("a_safe", Repeat::Safe),
        ("a_other", Repeat::Never),
    ] {
        let plan = setting.plan(legacy(tool, json!({}))).await;
        assert_eq!(plan.call.repeat, repeat, "{tool}");
    }
    let unknown = setting.dispatch.plan(legacy("unknown", json!({}))).await;
    assert!(
        matches!(unknown, Err(CallOutcome::Refused(_))),
        "{unknown:?}"
    );
}

#[tokio::test]
async fn param_headers_must_agree_with_the_arguments() {
    let setting = setting();
    let mut catalog = tools(&["plain"]);
    catalog
        .tools
        .extend(items(json!([{"name":"sql","inputSchema":{"type":"object",
        "properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}])));
    setting.add(FakeWorker::new("w1", "a", catalog));
    let check = |tool: &str, header: Option<&'static [u8]>| {
        let params = RawJson::of(&json!({"name":tool,"arguments":{"region":"eu"}}));
        let header = |name: &str| header.filter(|_| name == "region").map(<[u8]>::to_vec);
        let caller = call(Revision::V2026_07_28, Method::ToolsCall, json!({})).caller;
        (setting.dispatch).check_param_headers(&caller, Some(&params), &header)
    };
    assert!(check("sql", Some(b"eu")).is_ok());
    for header in [None, Some(&b"us"[..])] {
        assert_eq!(
            check("sql", header).unwrap_err().code,
            code::HEADER_MISMATCH
        );
    }
    assert!(check("plain", None).is_ok());
}

#[tokio::test(start_paused = true)]
async fn clients_are_told_later_than_calls_follow() {
    let setting = configured(Config {
        catalog: CatalogSettings {
            announce_after: Duration::from_millis(200).into(),
            ..Config::default().catalog
        },
        ..Config::default()
    });
    let mut facts = setting.dispatch.facts();
    let worker = setting.add(FakeWorker::new("w1", "a", tools(&["one"])));
    facts.changed().await.unwrap();
    let first = facts.borrow_and_update().versions;
    worker.announce(Some(tools(&["one", "two"])), None);
    setting.until(|d| d.status().pools[0].tools == 2).await;
    assert_eq!(facts.borrow().versions, first, "not told yet");
    facts.changed().await.unwrap();
    assert_ne!(facts.borrow().versions, first);
}
