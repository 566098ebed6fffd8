use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use shoal_dispatch::Config;
use shoal_policy::{PolicyConfig, RulesFile, RulesInForce};
use shoal_ports::{
    Call, CallFailure, CallOutcome, CatalogSettings, ClientInfo, Dispatcher as _, Grant, Memo,
    PoolCatalog,
};
use shoal_protocol::{Method, RawJson, Revision, RpcError, code};

use crate::fake_worker::{FakeWorker, Script};
use crate::setting::{CallExt as _, Setting, call, configured, items, legacy, modern, tools};

const LEGACY: Revision = Revision::V2025_11_25;
const MODERN: Revision = Revision::V2026_07_28;

const BY_NAME: &str = r#"
    [[rules]]
    name = "alice"
    effect = "allow"
    principals = ["alice"]
    tools = ["a*"]
    prompts = ["a*"]
    resources = ["file:///a/*", "file:///{+a}"]

    [[rules]]
    name = "bob"
    effect = "allow"
    principals = ["bob"]
    tools = ["b*"]
    prompts = ["b*"]
    resources = ["file:///b/*"]
"#;

fn config(rules: &str) -> Config {
    let file: RulesFile = toml::from_str(rules).unwrap();
    let policy = PolicyConfig {
        rules: file.rules.unwrap(),
        ..PolicyConfig::default()
    };
    Config {
        catalog: CatalogSettings {
            page_size: 2,
            ..Config::default().catalog
        },
        policies: RulesInForce::open(&policy).unwrap().map(Arc::new),
        ..Config::default()
    }
}

fn offers() -> PoolCatalog {
    PoolCatalog {
        prompts: items(json!([{ "name": "a-prompt" }, { "name": "b-prompt" }])),
        resources: items(json!([
            { "uri": "file:///a/1", "name": "1" }, { "uri": "file:///b/1", "name": "1" },
        ])),
        resource_templates: items(json!([{ "uriTemplate": "file:///{+a}", "name": "t" }])),
        ..tools(&["a1", "b1", "a2", "b2", "a3"])
    }
}

fn ruled(config: Config) -> Setting {
    let setting = configured(config);
    setting.add(FakeWorker::new("w1", "p", offers()));
    setting
}

async fn seen(
    setting: &Setting,
    principal: &str,
    revision: Revision,
    method: Method,
) -> Vec<String> {
    let (member, key) = match method {
        Method::ToolsList => ("tools", "name"),
        Method::PromptsList => ("prompts", "name"),
        Method::ResourcesList => ("resources", "uri"),
        _ => ("resourceTemplates", "uriTemplate"),
    };
    let (mut names, mut params) = (Vec::new(), json!({}));
    loop {
        let asked = call(revision, method.clone(), params).from(principal);
        let page = setting.result(asked).await;
        let items = page[member].as_array().unwrap();
        assert!(items.len() <= 2);
        names.extend(
            items
                .iter()
                .map(|item| item[key].as_str().unwrap().to_owned()),
        );
        match page.get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => return names,
        }
    }
}

async fn refused(setting: &Setting, asked: Call) -> Option<RpcError> {
    match setting.dispatch.plan(asked).await {
        Ok(_) => None,
        Err(CallOutcome::Refused(error)) => Some(error),
        Err(other) => panic!("neither planned nor refused: {other:?}"),
    }
}

#[tokio::test]
async fn lists_hold_what_their_caller_may_use() {
    let setting = ruled(config(BY_NAME));
    for revision in [LEGACY, MODERN] {
        for _ in 0..2 {
            let seen = |who, method| seen(&setting, who, revision, method);
            assert_eq!(seen("alice", Method::ToolsList).await, ["a1", "a2", "a3"]);
            assert_eq!(seen("bob", Method::ToolsList).await, ["b1", "b2"]);
            assert!(seen("eve", Method::ToolsList).await.is_empty());
            assert_eq!(seen("bob", Method::PromptsList).await, ["b-prompt"]);
            assert_eq!(seen("alice", Method::ResourcesList).await, ["file:///a/1"]);
            assert_eq!(
                seen("alice", Method::ResourceTemplatesList).await,
                ["file:///{+a}"]
            );
            assert!(seen("bob", Method::ResourceTemplatesList).await.is_empty());
        }
    }
}

#[tokio::test]
async fn a_cursor_of_a_longer_list_leads_nowhere() {
    let setting = ruled(config(BY_NAME));
    let first = call(LEGACY, Method::ToolsList, json!({}));
    let cursor = setting.result(first).await["nextCursor"].clone();
    let next = call(LEGACY, Method::ToolsList, json!({ "cursor": cursor }));
    assert!(refused(&setting, next.clone().from("bob")).await.is_some());
    assert_eq!(setting.result(next).await["tools"][0]["name"], "a3");
}

#[tokio::test]
async fn what_may_not_be_used_is_unknown() {
    let setting = ruled(config(BY_NAME));
    let params = |name: &str| json!({ "name": name });
    let uri = |uri: &str| json!({ "uri": uri });
    let completes =
        |reference: Value| json!({ "ref": reference, "argument": { "name": "x", "value": "" } });
    let prompt = |name: &str| completes(json!({ "type": "ref/prompt", "name": name }));
    let resource = |uri: &str| completes(json!({ "type": "ref/resource", "uri": uri }));
    for revision in [LEGACY, MODERN] {
        for (method, alices, bobs, unknown) in [
            (Method::ToolsCall, params("a1"), params("b1"), params("c")),
            (
                Method::PromptsGet,
                params("a-prompt"),
                params("b-prompt"),
                params("c"),
            ),
            (
                Method::ResourcesRead,
                uri("file:///a/1"),
                uri("file:///b/1"),
                uri("x:y"),
            ),
            (
                Method::Complete,
                prompt("a-prompt"),
                prompt("b-prompt"),
                prompt("c"),
            ),
            (
                Method::Complete,
                resource("file:///a/1"),
                resource("file:///b/1"),
                resource("x:y"),
            ),
        ] {
            let asked = |who: &str, params: &Value| {
                refused(
                    &setting,
                    call(revision, method.clone(), params.clone()).from(who),
                )
            };
            assert!(asked("alice", &alices).await.is_none(), "{method} {alices}");
            assert!(asked("bob", &bobs).await.is_none(), "{method} {bobs}");
            let hidden = asked("alice", &bobs).await.unwrap();
            // Bob may not use Alice's item either.
            assert!(asked("bob", &alices).await.is_some());
            let nothing = asked("alice", &unknown).await.unwrap();
            assert_eq!(hidden.code, nothing.code, "{method}");
            let words = |error: &RpcError| error.message.split(':').next().unwrap().to_owned();
            assert_eq!(words(&hidden), words(&nothing));
        }
    }
}

#[tokio::test]
async fn the_refusal_of_an_unknown_name_tells_no_pool() {
    let setting = configured(config(
        r#"
        [[rules]]
        name = "one pool"
        effect = "allow"
        pools = ["open"]
        "#,
    ));
    let worker = FakeWorker::new("ledger-7", "ledger", tools(&["book"]));
    worker.announce(None, Some("its database is away"));
    setting.add(worker);
    setting
        .dispatch
        .expect(&BTreeSet::from(["vault".to_owned()]));
    for call in [legacy("book", json!({})), modern("book", json!({}))] {
        let failure = setting.failure(call).await;
        assert!(
            matches!(failure, CallFailure::NotReady { .. }),
            "{failure:?}"
        );
        let told = failure.to_string();
        for hidden in ["ledger", "vault", "database"] {
            assert!(!told.contains(hidden), "{told}");
        }
    }
}

#[tokio::test]
async fn another_spelling_opens_nothing() {
    let rules = r#"
        [[rules]]
        name = "all"
        effect = "allow"
        [[rules]]
        name = "no secrets"
        effect = "deny"
        resources = ["file:///a/Secret%20plans/*"]
    "#;
    let setting = ruled(config(rules));
    let may = async |uri: &str| {
        let read = call(MODERN, Method::ResourcesRead, json!({ "uri": uri }));
        refused(&setting, read).await.is_none()
    };
    assert!(may("file:///a/2").await && may("file:///a/x%20y").await);
    for uri in [
        "file:///a/Secret%20plans/1",
        "file:///a/Secret plans/1",
        "file:///a/secret%20PLANS/1",
        "file:///a/%53ecret%20plans/1",
        "file:///a//Secret%20plans/1",
        "file:///a/b/../Secret%20plans/1",
        "FILE:///a/Secret%20plans/1",
        "file:///a/%2553ecret%20plans/1",
        "file:///a/Secret%20plans;v=1/1",
        "file:///a/b/..;/Secret%20plans/1",
        "file:///a/\u{17f}ecret%20plans/1",
    ] {
        assert!(!may(uri).await, "{uri}");
    }
}

#[tokio::test]
async fn what_is_allowed_must_be_so_however_it_is_read() {
    let setting = ruled(config(BY_NAME));
    let may = async |uri: &str| {
        let read = call(MODERN, Method::ResourcesRead, json!({ "uri": uri }));
        refused(&setting, read).await.is_none()
    };
    assert!(may("file:///a/2").await);
    for uri in [
        "file:///a/../b/1",
        "file:///a/%2e%2e/b/1",
        "file:///%61/2",
        "file:///b/2",
    ] {
        assert!(!may(uri).await, "{uri}");
    }
}

#[tokio::test]
async fn subscriptions_need_what_reading_needs() {
    let setting = ruled(config(BY_NAME));
    let caller = legacy("a1", json!({})).caller;
    let subscribe = async |uri: &str| setting.dispatch.subscribe(Some(&caller), uri).await;
    assert!(subscribe("file:///a/1").await.is_ok());
    let error = subscribe("file:///b/1").await.unwrap_err();
    assert_eq!(error.code, code::RESOURCE_NOT_FOUND);
    assert!(
        setting
            .dispatch
            .subscribe(None, "file:///b/1")
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn a_hidden_tool_does_not_ask_for_headers() {
    let setting = configured(config(BY_NAME));
    let mut catalog = tools(&[]);
    let schema = json!({ "type": "object",
        "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } });
    catalog.tools = items(json!([{ "name": "a1", "inputSchema": schema }]));
    setting.add(FakeWorker::new("w1", "p", catalog));
    let params = RawJson::of(&json!({ "name": "a1", "arguments": { "region": "eu" } }));
    let check = |who: &str| {
        let caller = modern("a1", json!({})).from(who).caller;
        (setting.dispatch).check_param_headers(&caller, Some(&params), &|_| None)
    };
    assert!(check("alice").is_err() && check("bob").is_ok());
}

#[tokio::test]
async fn a_retry_is_asked_about_before_it_begins_again() {
    let setting = ruled(config(BY_NAME));
    let retry = |who: &str| {
        let answers = json!({ "x": { "action": "accept", "content": {} } });
        modern("b1", json!({}))
            .from(who)
            .with("inputResponses", answers)
    };
    // The rules decide about a retry when it starts, not when it is planned.
    let (hers, his) = (setting.outcome(retry("alice")).await, retry("bob"));
    let CallOutcome::Refused(error) = hers else {
        panic!("{hers:?}");
    };
    assert!(error.message.contains("unknown tool"), "{error:?}");
    assert!(refused(&setting, his).await.is_none());
}

#[tokio::test]
async fn rules_about_clients_are_asked_with_the_client() {
    let rule = |when: &str| format!("[[rules]]\nname = 'r'\neffect = 'allow'\nwhen = '{when}'\n");
    let by_client = ruled(config(&rule("client.name == \"good\"")));
    let named = |name: &str| {
        let mut asked = legacy("a1", json!({}));
        let info = RawJson::of(&json!({ "name": name, "version": "1" }));
        Arc::make_mut(&mut asked.caller).client_info = Some(ClientInfo::new(info));
        asked
    };
    assert!(refused(&by_client, named("good")).await.is_none());
    assert!(refused(&by_client, named("bad")).await.is_some());
}

#[tokio::test]
async fn what_was_granted_to_a_caller_counts_in_both_eras() {
    let rules = r#"
        [[rules]]
        name = "scope"
        effect = "allow"
        tools = ["a1"]
        scopes = ["a"]

        [[rules]]
        name = "claim"
        effect = "allow"
        tools = ["b1"]
        when = 'has(claims.team) && claims.team == "b" && issuer == "https://id.example.com"'
    "#;
    let setting = ruled(config(rules));
    assert!(setting.dispatch.asks_of_grants());
    assert!(!ruled(Config::default()).dispatch.asks_of_grants());
    let granted = |mut asked: Call, scopes: &[&str], claims: Value| {
        let grant = Grant {
            scopes: scopes.iter().map(|scope| Arc::from(*scope)).collect(),
            claims: RawJson::of(&claims),
            until: None,
            read: Memo::default(),
        };
        Arc::make_mut(&mut asked.caller).grant = Some(Arc::new(grant));
        asked
    };
    let theirs = json!({ "iss": "https://id.example.com", "team": "b" });
    for asked in [legacy, modern] {
        let may = async |tool: &str, scopes: &[&str], claims: &Value| {
            let asked = granted(asked(tool, json!({})), scopes, claims.clone());
            refused(&setting, asked).await.is_none()
        };
        assert!(may("a1", &["x", "a"], &json!({})).await);
        assert!(!may("a1", &["x"], &theirs).await);
        assert!(may("b1", &[], &theirs).await);
        assert!(!may("b1", &["a"], &json!({ "team": "b" })).await);
        assert!(refused(&setting, asked("a1", json!({}))).await.is_some());
    }
}

#[tokio::test]
async fn lists_that_depend_on_the_caller_are_not_shared() {
    let scope = async |setting: &Setting| {
        let list = call(MODERN, Method::ToolsList, json!({}));
        setting.result(list).await["cacheScope"].clone()
    };
    assert_eq!(scope(&ruled(config(BY_NAME))).await, "private");
    assert_eq!(scope(&ruled(Config::default())).await, "public");
}

#[tokio::test]
async fn a_resource_under_rules_is_not_shared_whatever_its_backend_says() {
    for (config, scope) in [(config(BY_NAME), "private"), (Config::default(), "public")] {
        let catalog = PoolCatalog {
            resources: items(json!([{ "uri": "file:///a/1", "name": "1" }])),
            ..PoolCatalog::default()
        };
        let setting = configured(config);
        setting.add(
            FakeWorker::new("w1", "a", catalog).on_call(async |_, mut script: Script| {
                let said = r#"{"contents":[],"cacheScope":"public","ttlMs":5}"#;
                script.result(said).await;
            }),
        );
        let read = call(
            MODERN,
            Method::ResourcesRead,
            json!({ "uri": "file:///a/1" }),
        );
        let result = setting.result(read.from("alice")).await;
        assert_eq!(
            (&result["cacheScope"], &result["ttlMs"]),
            (&json!(scope), &json!(5))
        );
    }
}

pub(crate) struct TestFile(pub(crate) PathBuf);

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn changed_rules_are_in_force_at_once_and_told() {
    let name = format!("shoal-dispatch-policy-{}.toml", std::process::id());
    let file = TestFile(std::env::temp_dir().join(name));
    std::fs::write(&file.0, BY_NAME).unwrap();
    let policy = PolicyConfig {
        file: Some(file.0.clone()),
        ..PolicyConfig::default()
    };
    let rules = Arc::new(RulesInForce::open(&policy).unwrap().unwrap());
    let setting = ruled(Config {
        policies: Some(rules.clone()),
        ..config(BY_NAME)
    });
    let mut facts = setting.dispatch.facts();
    let before = facts.borrow_and_update().versions;
    assert_eq!(
        seen(&setting, "bob", LEGACY, Method::ToolsList).await,
        ["b1", "b2"]
    );
    std::fs::write(&file.0, BY_NAME.replace(r#"["b*"]"#, r#"["a3"]"#)).unwrap();
    assert!(rules.reread());
    assert_eq!(
        seen(&setting, "bob", LEGACY, Method::ToolsList).await,
        ["a3"]
    );
    assert!(
        refused(&setting, legacy("b1", json!({})).from("bob"))
            .await
            .is_some()
    );
    assert!(!facts.has_changed().unwrap());
    setting.dispatch.rules_changed();
    let after = facts.borrow_and_update().versions;
    assert!(
        before
            .iter()
            .zip(after)
            .all(|(before, after)| *before != after)
    );
    std::fs::write(&file.0, "[[rules]]\nname = 'all'\neffect = 'allow'\n").unwrap();
    assert!(rules.reread());
    assert_eq!(
        seen(&setting, "eve", LEGACY, Method::ToolsList).await.len(),
        5
    );
}

/// A backend may read another spelling as a prompt that the rules hide.
#[tokio::test]
async fn a_prompt_that_nobody_lists_is_unknown_where_there_are_rules() {
    let get = |name: &str| call(LEGACY, Method::PromptsGet, json!({ "name": name }));
    let open = ruled(Config::default());
    assert_eq!(refused(&open, get("a-other")).await, None);
    let setting = ruled(config(BY_NAME));
    assert_eq!(refused(&setting, get("a-prompt")).await, None);
    let error = refused(&setting, get("a-other")).await.unwrap();
    assert_eq!(error.message, "unknown prompt: a-other");
}
