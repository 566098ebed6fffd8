use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use serde_json::{Value, json};
use shoal_dispatch::{Config, PoolConfig, ScaleToZero};
use shoal_policy::{PolicyConfig, RulesFile, RulesInForce};
use shoal_ports::{
    Call, CallFailure, CallOutcome, Dispatcher as _, ForwardedHeaders, ListOwner, ListScope,
    Period, PoolCatalog, RawObjectOrEmpty, Repeat, ResourceUpdated, SessionId, WorkerId,
};
use shoal_protocol::{Method, RawJson, Revision, RpcError, code};
use tokio::sync::Semaphore;

use crate::fake_worker::{FakeWorker, Script};
use crate::setting::{
    CallExt as _, Setting, call, configured, items, legacy, modern, setting, tools,
};

const LEGACY: Revision = Revision::V2025_11_25;
const MODERN: Revision = Revision::V2026_07_28;

fn each_its_own() -> PoolCatalog {
    PoolCatalog {
        lists: ListScope::Principal,
        headers: vec!["authorization".into()],
        ..tools(&[])
    }
}

fn listing(names: &[&str]) -> String {
    let named = |key: &str| -> Vec<Value> {
        let named = names.iter().map(|name| json!({ key: name, "name": name }));
        named.collect()
    };
    json!({
        "tools": names.iter().map(|name| json!({ "name": name, "inputSchema": { "type": "object" } })).collect::<Vec<_>>(),
        "resources": named("uri"),
        "resourceTemplates": [],
        "prompts": named("name"),
    })
    .to_string()
}

async fn by_principal(call: Call, mut script: Script) {
    let principal = call.caller.principal.as_str();
    match (&call.method, principal) {
        (Method::ToolsCall, _) => script.say(&format!("{principal:?}")).await,
        (_, "eve") => {
            script
                .outcome(CallOutcome::Error(RpcError::internal("who is eve?")))
                .await
        }
        _ => {
            script
                .result(&listing(&["common", &format!("{principal}s")]))
                .await
        }
    }
}

async fn names(setting: &Setting, call: Call) -> Vec<String> {
    let result = setting.result(call).await;
    let items = result["tools"].as_array().unwrap().iter();
    items
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect()
}

fn list(principal: &str) -> Call {
    call(MODERN, Method::ToolsList, json!({})).from(principal)
}

fn calls_of(worker: &FakeWorker, method: &Method) -> usize {
    let started = worker.started.lock();
    started.iter().filter(|call| call.method == *method).count()
}

fn changes(worker: &FakeWorker, session: &SessionId, numbers: Option<u64>) {
    worker.own_lists.send_modify(|own| {
        let own = Arc::make_mut(own);
        let owner = ListOwner::Session(session.clone());
        match numbers {
            Some(number) => drop(own.insert(owner, [number; 3])),
            None => drop(own.remove(&owner)),
        }
    });
}

fn of_session(mut call: Call, session: &SessionId) -> Call {
    Arc::make_mut(&mut call.caller).session = Some(session.clone());
    call
}

#[tokio::test]
async fn callers_see_and_call_what_is_listed_to_them() {
    let setting = setting();
    let own = setting.add(FakeWorker::new("o1", "own", each_its_own()).on_call(by_principal));
    let shared = setting.add(FakeWorker::new("s1", "shared", tools(&["plain"])));
    for (principal, other) in [("alice", "bobs"), ("bob", "alices")] {
        let seen = names(&setting, list(principal)).await;
        assert_eq!(seen, ["common", &format!("{principal}s"), "plain"]);
        let plan = setting
            .plan(modern(&seen[1], json!({})).from(principal))
            .await;
        assert_eq!(
            plan.call.repeat,
            Repeat::Never,
            "nothing says that it is safe"
        );
        let said = setting
            .result(modern(&seen[1], json!({})).from(principal))
            .await;
        assert_eq!(said["structuredContent"], json!(principal));
        let unknown = setting
            .error(modern(other, json!({})).from(principal))
            .await;
        assert_eq!(unknown.code, code::INVALID_PARAMS);
    }
    let page = setting.result(list("alice")).await;
    assert_eq!(page["cacheScope"], "private");
    assert_eq!(
        calls_of(&own, &Method::ToolsList),
        2,
        "once for each caller"
    );
    let plain = modern("plain", json!({})).from("carol");
    assert!(setting.dispatch.plan(plain).now_or_never().is_some());
    assert_eq!(calls_of(&own, &Method::ToolsList), 2);
    assert_eq!(shared.calls(), 0);
}

#[tokio::test]
async fn what_a_request_brings_tells_callers_of_one_principal_apart() {
    let setting = setting();
    let worker = setting.add(FakeWorker::new("o1", "own", each_its_own()).on_call(by_principal));
    let bringing = |token: &'static str| {
        let mut call = list("alice");
        let header = ("authorization".into(), token.into());
        Arc::make_mut(&mut call.caller).headers = ForwardedHeaders::new([header]);
        call
    };
    for token in ["a", "b", "a", "b"] {
        names(&setting, bringing(token)).await;
    }
    assert_eq!(calls_of(&worker, &Method::ToolsList), 2);
}

#[tokio::test]
async fn a_caller_whom_the_server_refuses_is_told_so_and_keeps_the_rest() {
    let setting = setting();
    setting.add(FakeWorker::new("o1", "own", each_its_own()).on_call(by_principal));
    for call in [list("eve"), modern("common", json!({})).from("eve")] {
        let error = setting.error(call).await;
        assert_eq!(
            (error.code, &*error.message),
            (code::INTERNAL_ERROR, "who is eve?")
        );
    }
    setting.add(FakeWorker::new("s1", "shared", tools(&["plain"])));
    assert_eq!(names(&setting, list("eve")).await, ["plain"]);
    let error = setting.error(modern("common", json!({})).from("eve")).await;
    assert_eq!(error.message, "who is eve?");
}

#[tokio::test]
async fn what_all_see_keeps_its_names() {
    let setting = setting();
    let own = setting.add(FakeWorker::new("o1", "a", each_its_own()).on_call(by_principal));
    let shared = setting.add(FakeWorker::new("s1", "b", tools(&["common"])));
    assert_eq!(names(&setting, list("alice")).await, ["alices", "common"]);
    setting
        .result(modern("common", json!({})).from("alice"))
        .await;
    assert_eq!((calls_of(&own, &Method::ToolsCall), shared.calls()), (0, 1));
}

#[tokio::test]
async fn one_question_is_asked_for_all_who_wait_whoever_gives_up() {
    let setting = setting();
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let worker = FakeWorker::new("o1", "own", each_its_own()).on_call(move |call, script| {
        let held = held.clone();
        async move {
            let _permit = held.acquire().await.unwrap();
            by_principal(call, script).await;
        }
    });
    let worker = setting.add(worker);
    let mut gives_up = Box::pin(setting.outcome(list("alice")));
    assert!(gives_up.as_mut().now_or_never().is_none());
    setting
        .until(|_| calls_of(&worker, &Method::ToolsList) == 1)
        .await;
    drop(gives_up);
    let waiting = (0..4).map(|_| names(&setting, list("alice")));
    let waiting = futures::future::join_all(waiting);
    let answer = async {
        tokio::task::yield_now().await;
        gate.add_permits(4);
    };
    let (seen, ()) = tokio::join!(waiting, answer);
    for names in seen {
        assert_eq!(names, ["common", "alices"]);
    }
    assert_eq!(calls_of(&worker, &Method::ToolsList), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_asked_for_again_after_a_while_and_before_something_is_unknown() {
    let setting = setting();
    let worker = setting.add(FakeWorker::new("o1", "own", each_its_own()).on_call(by_principal));
    let asked = || calls_of(&worker, &Method::ToolsList);
    names(&setting, list("alice")).await;
    tokio::time::advance(Duration::from_secs(59)).await;
    names(&setting, list("alice")).await;
    setting
        .result(modern("common", json!({})).from("alice"))
        .await;
    assert_eq!(asked(), 1);
    setting
        .error(modern("nothing", json!({})).from("alice"))
        .await;
    assert_eq!(asked(), 2, "it may be new");
    setting
        .error(modern("nothing", json!({})).from("alice"))
        .await;
    assert_eq!(asked(), 2, "not a moment later");
    tokio::time::advance(Duration::from_secs(61)).await;
    names(&setting, list("alice")).await;
    assert_eq!(asked(), 3);
}

#[tokio::test]
async fn a_server_that_is_away_for_a_moment_has_not_taken_anything_back() {
    let setting = setting();
    let worker = setting.add(FakeWorker::new("o1", "own", each_its_own()).on_call(by_principal));
    names(&setting, list("alice")).await;
    worker.connect(false);
    let failure = setting.failure(list("bob")).await;
    assert!(
        matches!(failure, CallFailure::NotExecuted { .. }),
        "{failure:?}"
    );
    assert_eq!(names(&setting, list("alice")).await, ["common", "alices"]);
    let failure = setting
        .failure(modern("alices", json!({})).from("alice").repeatable())
        .await;
    assert!(
        matches!(failure, CallFailure::NotExecuted { .. }),
        "{failure:?}"
    );
}

#[tokio::test]
async fn a_session_whose_process_changed_its_lists_sees_and_calls_what_is_there() {
    let setting = setting();
    let own = |call: Call, mut script: Script| async move {
        match call.method {
            Method::ToolsCall => script.say("true").await,
            _ => script.result(&listing(&["plain", "added"])).await,
        }
    };
    let [one, two] = ["w1", "w2"].map(|id| {
        let worker = FakeWorker::new(id, "p", tools(&["plain", "dropped"]));
        setting.add(worker.on_call(own))
    });
    let (session, other) = (SessionId::new("s"), SessionId::new("other"));
    let facts = setting.dispatch.facts();
    let versions = |of: &SessionId| {
        let principal = list("alice").caller.principal.clone();
        facts.borrow().versions_of(Some(of), &principal)
    };
    let tools = |of| of_session(call(LEGACY, Method::ToolsList, json!({})), of);
    let (before, others) = (versions(&session), versions(&other));
    assert_eq!(names(&setting, tools(&session)).await, ["plain", "dropped"]);
    // By load alone, Shoal would now choose the other worker.
    two.load.lock().running = 5;
    changes(&two, &session, Some(7));
    setting.until(|_| versions(&session) != before).await;
    assert_eq!(versions(&other), others);
    assert_eq!(names(&setting, tools(&session)).await, ["plain", "added"]);
    assert_eq!(names(&setting, tools(&other)).await, ["plain", "dropped"]);
    let added = legacy("added", json!({}));
    let plan = setting.plan(of_session(added.clone(), &session)).await;
    assert_eq!(plan.worker.unwrap().worker, WorkerId::new("w2"));
    for (tool, of) in [("added", &other), ("dropped", &session)] {
        let error = setting.error(of_session(legacy(tool, json!({})), of)).await;
        assert_eq!(error.code, code::INVALID_PARAMS, "{tool}");
    }
    assert_eq!(
        calls_of(&one, &Method::ToolsList),
        0,
        "it has nothing of the session"
    );
    assert_eq!(calls_of(&two, &Method::ToolsList), 1);
    let first = versions(&session);
    changes(&two, &session, Some(8));
    setting.until(|_| versions(&session) != first).await;
    names(&setting, tools(&session)).await;
    assert_eq!(calls_of(&two, &Method::ToolsList), 2);
    changes(&two, &session, None);
    setting.until(|_| versions(&session) == before).await;
    assert_eq!(names(&setting, tools(&session)).await, ["plain", "dropped"]);
}

#[tokio::test]
async fn prefixes_and_rules_apply_to_lists_of_single_callers() {
    let pool = PoolConfig {
        prefix: "p_".into(),
        ..PoolConfig::default()
    };
    let rules: RulesFile = toml::from_str(
        r#"
        [[rules]]
        name = "no common"
        effect = "deny"
        tools = ["p_common"]

        [[rules]]
        name = "all others"
        effect = "allow"
        tools = ["*"]
        "#,
    )
    .unwrap();
    let policy = PolicyConfig {
        rules: rules.rules.unwrap(),
        ..PolicyConfig::default()
    };
    let setting = configured(Config {
        policies: RulesInForce::open(&policy).unwrap().map(Arc::new),
        pools: BTreeMap::from([("own".to_owned(), pool)]),
        ..Config::default()
    });
    let worker = setting.add(FakeWorker::new("o1", "own", each_its_own()).on_call(by_principal));
    assert_eq!(names(&setting, list("alice")).await, ["p_alices"]);
    setting
        .result(modern("p_alices", json!({})).from("alice"))
        .await;
    assert_eq!(worker.last_params()["name"], "alices");
    setting
        .error(modern("p_common", json!({})).from("alice"))
        .await;
    setting
        .error(modern("alices", json!({})).from("alice"))
        .await;
    assert_eq!(calls_of(&worker, &Method::ToolsCall), 1);
}

#[tokio::test]
async fn resources_and_prompts_of_single_callers_are_found() {
    let setting = setting();
    setting.add(FakeWorker::new("s1", "shared", tools(&["plain"])));
    let worker = setting.add(FakeWorker::new("o1", "own", each_its_own()).on_call(
        |call, mut script| async move {
            match call.method {
                Method::ResourcesRead => {
                    let twice = r#""cacheScope":"private","cache\u0053cope":"public""#;
                    script
                        .result(&format!(r#"{{"contents":[],{twice}}}"#))
                        .await;
                }
                Method::PromptsGet => script.result(r#"{"messages":[]}"#).await,
                _ => by_principal(call, script).await,
            }
        },
    ));
    for (method, name, value) in [
        (Method::ResourcesRead, "uri", "alices"),
        (Method::PromptsGet, "name", "alices"),
    ] {
        let asked =
            |principal: &str| call(MODERN, method.clone(), json!({ name: value })).from(principal);
        let result = setting.result(asked("alice")).await;
        // A cache may not give it to bob, whatever the backend says.
        let scope = matches!(method, Method::ResourcesRead).then_some("private");
        assert_eq!(result["cacheScope"].as_str(), scope);
        assert_eq!(calls_of(&worker, &method), 1);
        setting.error(asked("bob")).await;
        assert_eq!(calls_of(&worker, &method), 1);
    }
}

fn updated() -> ResourceUpdated {
    ResourceUpdated {
        uri: "r://1".to_owned(),
        params: RawJson::from_static(r#"{"uri":"r://1"}"#),
    }
}

/// A worker watches resources for all callers and does not know whose resource this is.
#[tokio::test(start_paused = true)]
async fn a_resource_that_one_caller_sees_is_not_subscribed_to() {
    let setting = setting();
    let own = FakeWorker::new("o1", "own", each_its_own()).on_call(by_principal);
    let own = setting.add(own);
    let resources = |setting: &Setting| {
        let facts = setting.dispatch.facts().borrow().clone();
        let resources = facts.capabilities.member("resources");
        resources.unwrap().as_str().to_owned()
    };
    assert_eq!(resources(&setting), r#"{"listChanged":true}"#);
    let caller = |principal: &str| list(principal).caller;
    for principal in ["alice", "bob"] {
        let caller = caller(principal);
        let asked = setting.dispatch.subscribe(Some(&caller), "alices");
        let refused = asked.await.unwrap_err();
        assert_eq!(refused.code, code::METHOD_NOT_FOUND, "{refused:?}");
        assert!(refused.message.contains("read the resource again"));
    }
    // A renewed subscription, which has no caller, is refused too.
    let again = setting.dispatch.subscribe(None, "alices").await;
    assert_eq!(again.unwrap_err().code, code::METHOD_NOT_FOUND);
    let shared = PoolCatalog {
        resources: items(json!([{ "uri": "r://1", "name": "r" }])),
        ..tools(&[])
    };
    let shared = setting.add(FakeWorker::new("s1", "shared", shared));
    assert!(resources(&setting).contains(r#""subscribe":true"#));
    let alice = caller("alice");
    let subscribed = setting.dispatch.subscribe(Some(&alice), "r://1").await;
    subscribed.unwrap();
    assert!(shared.subscribed.lock().iter().all(|uri| uri == "r://1"));
    let mut updates = setting.dispatch.resource_updates();
    shared.report(updated());
    assert_eq!(updates.recv().await.unwrap().uri, "r://1");
    shared.announce(Some(each_its_own()), None);
    setting.until(|d| d.status().subscriptions == 0).await;
    assert_eq!(*shared.unsubscribed.lock(), ["r://1"]);
    shared.report(updated());
    let again = setting.add(FakeWorker::new("s2", "shared", each_its_own()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(updates.try_recv().is_err());
    assert_eq!(*again.subscribed.lock(), Vec::<String>::new());
    assert_eq!(*own.subscribed.lock(), Vec::<String>::new());
    for worker in [&shared, &again] {
        worker.announce(Some(tools(&[])), None);
    }
    setting.until(|d| d.status().subscriptions == 1).await;
    setting.dispatch.unsubscribe("r://1").await;
    setting.until(|d| d.status().subscriptions == 0).await;
}

#[tokio::test]
async fn what_takes_too_much_room_is_refused() {
    let setting = setting();
    let large = json!([{ "name": "x".repeat(8 << 20) }]);
    let large = RawJson::of(&json!({ "tools": large, "resources": [], "prompts": [] }));
    setting.add(
        FakeWorker::new("o1", "own", each_its_own()).on_call(move |_, mut script| {
            let large = large.clone();
            async move { script.outcome(CallOutcome::Result(large)).await }
        }),
    );
    let error = setting.error(list("alice")).await;
    assert!(error.message.contains("bytes"), "{}", error.message);
}

/// Only a worker knows a caller's lists, so a request for them wakes the pool.
#[tokio::test(start_paused = true)]
async fn a_pool_at_zero_is_woken_by_whoever_asks_what_it_lists() {
    let own = PoolConfig {
        scale_to_zero: Some(ScaleToZero {
            wait: Period::seconds(20),
            ..ScaleToZero::default()
        }),
        ..PoolConfig::default()
    };
    let setting = Arc::new(configured(Config {
        pools: BTreeMap::from([("own".to_owned(), own)]),
        ..Config::default()
    }));
    let recalled = vec![("own".to_owned(), Arc::new(each_its_own()))];
    setting.dispatch.recall(recalled);
    let failure = setting.failure(modern("alices", json!({}))).await;
    let why = failure.to_string();
    assert!(why.contains("none came within 20 s"), "{why}");
    let CallFailure::NotReady { retry_after, .. } = failure else {
        panic!("{failure:?}");
    };
    tokio::time::sleep(retry_after).await;
    let calls = [modern("alices", json!({})), list("alice")].map(|call| {
        let setting = setting.clone();
        tokio::spawn(async move { setting.result(call).await })
    });
    setting.until(|d| d.status().pools[0].awaiting > 0).await;
    setting.add(FakeWorker::new("o1", "own", each_its_own()).on_call(by_principal));
    let [said, listed] = futures::future::join_all(calls).await.try_into().unwrap();
    assert_eq!(said.unwrap()["structuredContent"], "alice");
    assert_eq!(listed.unwrap()["tools"][1]["name"], "alices");
    setting.until(|d| d.status().pools[0].awaiting == 0).await;
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_pool_at_zero_who_needs_another() {
    let scaled = PoolConfig {
        scale_to_zero: Some(ScaleToZero::default()),
        ..PoolConfig::default()
    };
    let setting = configured(Config {
        pools: BTreeMap::from([("away".to_owned(), scaled)]),
        ..Config::default()
    });
    let recalled = vec![("away".to_owned(), Arc::new(each_its_own()))];
    setting.dispatch.recall(recalled);
    setting.add(FakeWorker::new("o1", "own", each_its_own()).on_call(by_principal));
    let began = tokio::time::Instant::now();
    let listed = setting.result(list("alice")).await;
    assert_eq!(listed["tools"][1]["name"], "alices");
    let said = setting.result(modern("alices", json!({}))).await;
    assert_eq!(said["structuredContent"], "alice");
    assert!(began.elapsed() < Duration::from_secs(5));
    let pools = setting.dispatch.status().pools;
    let away = pools.iter().find(|pool| *pool.name == *"away").unwrap();
    assert_eq!(away.awaiting, 1);
}

#[tokio::test]
async fn a_prompt_that_nobody_lists_is_unknown_while_lists_differ_by_caller() {
    let setting = setting();
    let said =
        |_: Call, mut script: Script| async move { script.result(r#"{"messages":[]}"#).await };
    setting.add(FakeWorker::new("s1", "shared", tools(&[])).on_call(said));
    let get = || call(LEGACY, Method::PromptsGet, json!({ "name": "other" }));
    setting.result(get()).await;
    // Prompts may now differ by caller, so an unlisted one goes to neither pool.
    let own = PoolCatalog {
        capabilities: RawObjectOrEmpty(RawJson::from_static(r#"{"tools":{}}"#)),
        ..each_its_own()
    };
    setting.add(FakeWorker::new("o1", "own", own).on_call(by_principal));
    assert_eq!(setting.error(get()).await.code, code::INVALID_PARAMS);
}
