use serde_json::{Value, json};
use shoal_dispatch::Config;
use shoal_ports::{CallOutcome, CatalogSettings, PoolCatalog};
use shoal_protocol::{Method, RawJson, Revision, code};

use crate::fake_worker::FakeWorker;
use crate::setting::{Setting, call, configured, setting, tools};

const LEGACY: Revision = Revision::V2025_11_25;
const MODERN: Revision = Revision::V2026_07_28;

async fn all_names(setting: &Setting, revision: Revision) -> Vec<String> {
    let (mut names, mut params) = (Vec::new(), json!({}));
    loop {
        let page = setting
            .result(call(revision, Method::ToolsList, params))
            .await;
        let items = page["tools"].as_array().unwrap();
        names.extend(items.iter().map(|t| t["name"].as_str().unwrap().to_owned()));
        match page.get("nextCursor") {
            Some(cursor) => params = json!({"cursor":cursor}),
            None => return names,
        }
    }
}

#[tokio::test]
async fn pages_hold_every_item_once_in_order() {
    let setting = configured(Config {
        catalog: CatalogSettings {
            page_size: 2,
            ..Config::default().catalog
        },
        ..Config::default()
    });
    setting.add(FakeWorker::new("b1", "b", tools(&["b1", "b2", "b3"])));
    setting.add(FakeWorker::new("a1", "a", tools(&["z", "a"])));
    for revision in [LEGACY, MODERN] {
        let names = all_names(&setting, revision).await;
        assert_eq!(names, ["z", "a", "b1", "b2", "b3"]);
    }
}

#[tokio::test]
async fn a_cursor_of_another_list_or_of_nobody_is_refused() {
    let setting = configured(Config {
        catalog: CatalogSettings {
            page_size: 1,
            ..Config::default().catalog
        },
        ..Config::default()
    });
    setting.add(FakeWorker::new("a1", "a", tools(&["one", "two"])));
    let page = setting
        .result(call(LEGACY, Method::ToolsList, json!({})))
        .await;
    let cursor = page["nextCursor"].clone();
    for (method, cursor) in [
        (Method::ToolsList, json!("bm9uc2Vuc2U")),
        (Method::ToolsList, json!(7)),
        (Method::ResourcesList, cursor),
    ] {
        let error = setting
            .error(call(LEGACY, method, json!({"cursor":cursor})))
            .await;
        assert_eq!(error.code, code::INVALID_PARAMS);
    }
    for none in [json!(null), json!("")] {
        let params = json!({"cursor":none});
        let first = setting
            .result(call(LEGACY, Method::ToolsList, params))
            .await;
        assert_eq!(first["tools"][0]["name"], "one");
    }
}

#[tokio::test]
async fn a_list_of_one_page_has_no_use_for_cursors_of_other_servers() {
    let setting = configured(Config::default());
    setting.add(FakeWorker::new("a1", "a", tools(&["one", "two"])));
    for cursor in [json!("x"), json!("eyJvZmZzZXQiOjUwfQ=="), json!(7)] {
        let params = json!({"cursor":cursor});
        let page = setting
            .result(call(LEGACY, Method::ToolsList, params))
            .await;
        assert_eq!(page["tools"].as_array().unwrap().len(), 2, "{cursor}");
    }
    // Shoal wrote this cursor (`tools:1`) for a list with a second page.
    let stale = json!({"cursor":"dG9vbHM6MQ"});
    let error = setting.error(call(LEGACY, Method::ToolsList, stale)).await;
    assert_eq!(error.code, code::INVALID_PARAMS);
}

#[tokio::test]
async fn items_stay_as_they_were_written() {
    let raw = r#"{ "name" : "odd", "inputSchema":{ "type":"object" } ,"x":1.0, "n":12345678901234567890123}"#;
    let setting = setting();
    setting.add(FakeWorker::new(
        "a1",
        "a",
        PoolCatalog {
            tools: vec![RawJson::from_static(raw)],
            ..PoolCatalog::default()
        },
    ));
    for revision in [LEGACY, MODERN] {
        let outcome = setting
            .outcome(call(revision, Method::ToolsList, json!({})))
            .await;
        let CallOutcome::Result(result) = outcome else {
            panic!("no result");
        };
        assert!(result.as_str().contains(raw), "{result:?}");
    }
}

#[tokio::test]
async fn a_modern_list_says_how_long_it_is_good_and_whose_it_is() {
    let setting = setting();
    setting.add(FakeWorker::new("a1", "a", tools(&["one"])));
    let page = setting
        .result(call(MODERN, Method::ToolsList, json!({})))
        .await;
    assert_eq!(page["resultType"], "complete");
    assert_eq!(page["ttlMs"], 60_000);
    assert_eq!(page["cacheScope"], "public");
    let info = &page["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info, &json!({"name":"fake","version":"1"}));
    let page = setting
        .result(call(LEGACY, Method::ToolsList, json!({})))
        .await;
    let members: Vec<_> = page.as_object().unwrap().keys().collect();
    assert_eq!(members, ["tools"]);
}

#[tokio::test]
async fn a_list_is_good_no_longer_than_any_pool_says() {
    let setting = setting();
    let ttl = |ttl_ms| PoolCatalog {
        ttl_ms,
        ..tools(&["one"])
    };
    setting.add(FakeWorker::new(
        "a1",
        "a",
        ttl([Some(5_000), None, None, Some(90_000)]),
    ));
    setting.add(FakeWorker::new(
        "b1",
        "b",
        ttl([Some(7_000), Some(0), None, None]),
    ));
    for (method, expected) in [
        (Method::ToolsList, 5_000),
        (Method::ResourcesList, 0),
        (Method::ResourceTemplatesList, 60_000),
        (Method::PromptsList, 60_000),
    ] {
        let page = setting
            .result(call(MODERN, method.clone(), json!({})))
            .await;
        assert_eq!(page["ttlMs"], expected, "{method}");
    }
}

#[tokio::test]
async fn a_list_that_no_pool_has_is_no_method() {
    let setting = setting();
    let mut catalog = tools(&["one"]);
    catalog.capabilities.0 = RawJson::from_static("{}");
    setting.add(FakeWorker::new("a1", "a", catalog));
    let error = setting
        .error(call(LEGACY, Method::PromptsList, json!({})))
        .await;
    assert_eq!(error.code, code::METHOD_NOT_FOUND);
    let page: Value = setting
        .result(call(LEGACY, Method::ToolsList, json!({})))
        .await;
    assert_eq!(page["tools"].as_array().unwrap().len(), 1);
}
