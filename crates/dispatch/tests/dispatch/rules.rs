use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use shoal_dispatch::{
    Config, PoolConfig, PromptRules, ResourceRules, Status, ToolHints, ToolRules,
};
use shoal_ports::{CallOutcome, Dispatcher as _, PoolCatalog, Repeat};
use shoal_protocol::{Method, Revision, code};

use crate::fake_worker::FakeWorker;
use crate::setting::{Setting, call, configured, items, legacy, tools};

const LEGACY: Revision = Revision::V2025_11_25;
const MODERN: Revision = Revision::V2026_07_28;

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|&(from, to)| (from.to_owned(), to.to_owned()))
        .collect()
}

fn ruled(pools: &[(&str, PoolConfig)]) -> Setting {
    let pools = pools.iter();
    configured(Config {
        pools: pools
            .map(|(name, pool)| ((*name).to_owned(), pool.clone()))
            .collect(),
        ..Config::default()
    })
}

async fn listed(setting: &Setting, method: Method, member: &str) -> Vec<Value> {
    let page = setting.result(call(MODERN, method, json!({}))).await;
    page[member].as_array().unwrap().clone()
}

#[tokio::test]
async fn tools_are_left_out_renamed_and_described() {
    let setting = ruled(&[(
        "a",
        PoolConfig {
            prefix: "a_".to_owned(),
            tools: ToolRules {
                allow: words(&["read_*", "stat"]),
                deny: words(&["read_secret"]),
                rename: pairs(&[("read_file", "cat")]),
                describe: pairs(&[("stat", "Says how large a file is.")]),
                ..ToolRules::default()
            },
            ..PoolConfig::default()
        },
    )]);
    let names = ["read_file", "read_secret", "stat", "write_file"];
    let worker = setting.add(FakeWorker::new("w1", "a", tools(&names)));
    let tools = listed(&setting, Method::ToolsList, "tools").await;
    assert_eq!(tools.len(), 2, "{tools:?}");
    assert_eq!(
        (&tools[0]["name"], &tools[1]["name"]),
        (&json!("a_cat"), &json!("a_stat"))
    );
    assert_eq!(tools[1]["description"], "Says how large a file is.");
    setting.result(legacy("a_cat", json!({}))).await;
    let sent: Value = worker.started.lock()[0]
        .params
        .as_ref()
        .unwrap()
        .read()
        .unwrap();
    assert_eq!(sent["name"], "read_file");
    for unknown in ["a_read_file", "a_read_secret", "a_write_file", "read_file"] {
        let error = setting.error(legacy(unknown, json!({}))).await;
        assert_eq!(error.code, code::INVALID_PARAMS, "{unknown}");
    }
    assert_eq!(worker.calls(), 1);
}

#[tokio::test]
async fn hints_of_the_operator_decide_whether_a_call_is_journaled() {
    let hints = ToolHints {
        idempotent: Some(true),
        ..ToolHints::default()
    };
    let setting = ruled(&[(
        "a",
        PoolConfig {
            tools: ToolRules {
                hints: BTreeMap::from([("put".to_owned(), hints)]),
                ..ToolRules::default()
            },
            ..PoolConfig::default()
        },
    )]);
    setting.add(FakeWorker::new("w1", "a", tools(&["put", "post"])));
    for (tool, repeat) in [("put", Repeat::Safe), ("post", Repeat::Never)] {
        let plan = setting.plan(legacy(tool, json!({}))).await;
        assert_eq!(plan.call.repeat, repeat, "{tool}");
    }
    let tools = listed(&setting, Method::ToolsList, "tools").await;
    assert_eq!(tools[0]["annotations"], json!({ "idempotentHint": true }));
    assert!(tools[1].get("annotations").is_none());
}

#[tokio::test]
async fn prompts_and_resources_are_left_out_too() {
    let catalog = PoolCatalog {
        prompts: items(json!([{"name":"greet"},{"name":"internal"}])),
        resources: items(json!([{"uri":"a:pub/1","name":"1"},{"uri":"a:key/1","name":"2"}])),
        resource_templates: items(json!([{"uriTemplate":"a:{+path}","name":"any"}])),
        ..tools(&[])
    };
    let setting = ruled(&[(
        "a",
        PoolConfig {
            prompts: PromptRules {
                deny: words(&["int*"]),
                rename: pairs(&[("greet", "hello")]),
                describe: pairs(&[("greet", "Says hello.")]),
                ..PromptRules::default()
            },
            resources: ResourceRules {
                deny: words(&["a:key/*"]),
                ..ResourceRules::default()
            },
            ..PoolConfig::default()
        },
    )]);
    setting.add(FakeWorker::new("w1", "a", catalog));
    let prompts = listed(&setting, Method::PromptsList, "prompts").await;
    assert_eq!(
        prompts,
        [json!({ "name": "hello", "description": "Says hello." })]
    );
    let resources = listed(&setting, Method::ResourcesList, "resources").await;
    assert_eq!(resources, [json!({ "uri": "a:pub/1", "name": "1" })]);
    let read = |uri: &str| call(LEGACY, Method::ResourcesRead, json!({ "uri": uri }));
    setting.result(read("a:pub/2")).await;
    for hidden in ["a:key/1", "a:key/2"] {
        let error = setting.error(read(hidden)).await;
        assert_eq!(error.code, LEGACY.resource_not_found(), "{hidden}");
    }
    let get = |name: &str| call(LEGACY, Method::PromptsGet, json!({ "name": name }));
    setting.result(get("hello")).await;
    assert_eq!(
        setting.error(get("internal")).await.code,
        code::INVALID_PARAMS
    );
}

#[tokio::test]
async fn an_unlisted_prompt_goes_to_the_only_pool_that_has_prompts() {
    let get = |name: &str| call(LEGACY, Method::PromptsGet, json!({ "name": name }));
    let with = |prompts: PromptRules| {
        let config = PoolConfig {
            prefix: "a-".to_owned(),
            prompts,
            ..PoolConfig::default()
        };
        let setting = ruled(&[("a", config)]);
        let worker = FakeWorker::new("w1", "a", tools(&[]));
        setting.add(worker.on_call(|call, mut script| async move {
            let given = call.params.unwrap();
            let got = format!(r#"{{"messages":[],"given":{}}}"#, given.as_str());
            script.result(&got).await;
        }));
        setting
    };
    let setting = with(PromptRules {
        rename: pairs(&[("greet", "hello")]),
        ..PromptRules::default()
    });
    for (name, own) in [("a-other", "other"), ("a-hello", "greet")] {
        let got = setting.result(get(name)).await;
        assert_eq!(got["given"], json!({ "name": own }), "{name}");
    }
    for unknown in ["other", "a-", "a-greet"] {
        setting.error(get(unknown)).await;
    }
    let setting = with(PromptRules {
        deny: words(&["int*"]),
        ..PromptRules::default()
    });
    setting.error(get("a-Internal")).await;
}

fn of_resources(allow: &[&str], deny: &[&str]) -> (Setting, Arc<FakeWorker>) {
    let catalog = PoolCatalog {
        resources: items(json!([
            {"uri":"demo://host/public/1","name":"1"},
            {"uri":"demo://host/private/1","name":"2"},
            {"uri":"C:\\odd","name":"odd"},
        ])),
        resource_templates: items(json!([
            {"uriTemplate":"demo://host/public/{id}","name":"public"},
            {"uriTemplate":"demo://host/private/{id}","name":"private"},
            {"uriTemplate":"{+any}","name":"any"},
        ])),
        ..tools(&[])
    };
    let setting = ruled(&[(
        "a",
        PoolConfig {
            resources: ResourceRules {
                allow: words(allow),
                deny: words(deny),
            },
            ..PoolConfig::default()
        },
    )]);
    let worker = setting.add(FakeWorker::new("w1", "a", catalog));
    (setting, worker)
}

/// Whether the resource can be read. Checks that it can be subscribed to exactly then.
async fn is_offered(setting: &Setting, uri: &str) -> bool {
    let read = call(MODERN, Method::ResourcesRead, json!({ "uri": uri }));
    let is_offered = matches!(setting.outcome(read).await, CallOutcome::Result(_));
    let subscribed = setting.dispatch.subscribe(None, uri).await;
    assert_eq!(subscribed.is_ok(), is_offered, "{uri:?}");
    is_offered
}

#[tokio::test]
async fn no_other_spelling_of_a_uri_passes_what_is_denied() {
    let deny = [
        "demo://host/private/*",
        "file:///data/private/*",
        "https://x.example/private*",
    ];
    let (setting, worker) = of_resources(&[], &deny);
    let mut passed = Vec::new();
    for uri in [
        "demo://host/private/1",
        "DEMO://host/private/1",
        "demo://HOST/private/1",
        "demo://host/Private/1",
        "demo://somebody@host/private/1",
        "demo://host:80/private/1",
        "demo://host//private/1",
        "demo://host/x/../private/1",
        "demo://host/./private/1",
        "demo://host/%2e/private/1",
        "demo://host/x/%2E%2e/private/1",
        "demo://host/public/?/../../private/1",
        "demo://host/%70rivate/1",
        "demo://host/%2570rivate/1",
        "demo://host/private%2F1",
        "demo://host/private%5c1",
        "demo://host\\private\\1",
        " demo://host/private/1",
        "demo://host/private/1 ",
        "demo:\t//host/private/1",
        "demo://host/pri\nvate/1",
        "demo://host/private/1%00",
        "demo://host/private/1?x#y",
        "file:///data/private/b",
        "FILE:///data/private/b",
        "file:/data/private/b",
        "file://localhost/data/private/b",
        "file://elsewhere/data/private/b",
        "file:///data//private/b",
        "file:////data/private/b",
        "file:data/private/b",
        "/data/private/b",
        "//host/private/1",
        "https://x.example:443/private",
        "https://x.example/private?x",
        "https://x.example/private#x",
        "https:x.example/private",
        "https:///x.example/private",
        "https://X.example/private",
        "https://\u{ff58}.example/private",
    ] {
        if is_offered(&setting, uri).await {
            passed.push(uri);
        }
    }
    assert!(passed.is_empty(), "{passed:#?}");
    assert_eq!(worker.calls(), 0);
    for uri in [
        "demo://host/public/1",
        "DEMO://host/public/1",
        "demo://host/public/a%20b",
        "demo://host/public/a b",
        "demo://host/public/100%25",
        "demo://host/public/caf\u{e9}?x=y#z",
        "postgres://user@host:5432/users/schema",
        "screen://shot/https://x.example/",
        "file:///data/public/b",
        "C:\\odd",
        "memo:1",
    ] {
        assert!(is_offered(&setting, uri).await, "{uri:?}");
    }
}

#[tokio::test]
async fn what_is_allowed_is_allowed_however_a_server_reads_it() {
    let allow = [
        "demo://host/public/*",
        "file:///data/*.md",
        "db://users?limit=*",
    ];
    let (setting, _) = of_resources(&allow, &[]);
    for uri in [
        "demo://host/public/1",
        "Demo://host/public/%31?x",
        "file:///data/a.md",
        "file://localhost/data/a.md",
        "db://users?limit=3",
    ] {
        assert!(is_offered(&setting, uri).await, "{uri:?}");
    }
    for uri in [
        "demo://host/public/../private/1",
        "demo://host/public/%2e%2E/private/1",
        "demo://host/public/..%2fprivate/1",
        "demo://HOST/public/1",
        "demo://host/Public/1",
        "demo://host/private/1",
        "file:///data/passwd?.md",
        "file:///data/passwd#.md",
        "file:///data/passwd%00.md",
        "db://users",
        "db://users?all",
        "C:\\odd",
    ] {
        assert!(!is_offered(&setting, uri).await, "{uri:?}");
    }
}

#[tokio::test]
async fn a_template_stands_for_its_resources_too() {
    let private = "demo://host/private/{id}";
    let (setting, _) = of_resources(&[], &[private]);
    assert!(is_offered(&setting, "demo://host/public/1").await);
    assert!(!is_offered(&setting, "demo://host/private/7").await);
    let templates = listed(&setting, Method::ResourceTemplatesList, "resourceTemplates").await;
    assert_eq!(templates.len(), 2, "{templates:?}");
    let (setting, _) = of_resources(&["demo://*/public/{id}", "demo://host/public/{id}"], &[]);
    assert!(is_offered(&setting, "demo://host/public/7").await);
    assert!(is_offered(&setting, "demo://other/public/7").await);
    assert!(!is_offered(&setting, "demo://host/private/7").await);
    assert!(!is_offered(&setting, "demo://host/public/7/8").await);
    let templates = listed(&setting, Method::ResourceTemplatesList, "resourceTemplates").await;
    assert_eq!(templates.len(), 1, "{templates:?}");
}

#[tokio::test]
async fn a_rename_ends_a_conflict_and_can_make_one() {
    let conflicts = |setting: &Setting| {
        let Status { conflicts, .. } = setting.dispatch.status();
        conflicts
            .into_iter()
            .map(|it| it.to_string())
            .collect::<Vec<_>>()
    };
    let renamed = |to: &str| PoolConfig {
        tools: ToolRules {
            rename: pairs(&[("echo", to)]),
            ..ToolRules::default()
        },
        ..PoolConfig::default()
    };
    for (to, expected) in [
        ("say", vec![]),
        (
            "echo",
            vec!["tool \"echo\" of pool b is hidden by that of pool a"],
        ),
    ] {
        let setting = ruled(&[("b", renamed(to))]);
        setting.add(FakeWorker::new("w1", "a", tools(&["echo"])));
        setting.add(FakeWorker::new("w2", "b", tools(&["echo"])));
        assert_eq!(conflicts(&setting), expected);
    }
}
