use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use shoal_ports::{
    AskId, Call, CallEventKind, CallFailure, CallOutcome, CallPlan, Caller, ClusterEvent,
    ClusterSubscription, Delivered, Dispatcher, ForwardedHeaders, GatewayError, LogFilter, NodeId,
    NodeLimits, OpenSession, Principal, Repeat, SessionGateway, SessionRef, SessionTransport,
};
use shoal_protocol::{Method, Outcome, RawJson, Revision, RpcError};
use shoal_session::{SessionConfig, Sessions};
use tokio::time::Instant;

use crate::support::{Bench, Driven, Fate, again, bound, initialize, post, within};

const LONG: Duration = Duration::from_secs(60);

fn opening(principal: &str) -> OpenSession {
    OpenSession {
        transport: SessionTransport::Task,
        ..initialize(principal, "2025-11-25")
    }
}

async fn task(bench: &Bench, principal: &str, tool: &str) -> (SessionRef, Arc<Driven>) {
    task_after(bench, principal, tool, Duration::ZERO).await
}

async fn task_after(
    bench: &Bench,
    principal: &str,
    tool: &str,
    wait: Duration,
) -> (SessionRef, Arc<Driven>) {
    let post = again(&bound(1, tool));
    let params = format!(r#"{{"name":"{tool}"}}"#);
    let caller = Caller {
        principal: Principal::new(principal),
        session: None,
        revision: Revision::V2026_07_28,
        client_info: None,
        capabilities: RawJson::from_static("{}"),
        headers: ForwardedHeaders::default(),
        grant: None,
    };
    let call = Call {
        id: post.delivery.into(),
        method: Method::ToolsCall,
        params: Some(RawJson::from_valid(params.into())),
        caller: Arc::new(caller),
        progress_token: None,
        log: LogFilter::Off,
        deadline: Instant::now() + LONG,
        repeat: Repeat::Never,
        trace: None,
        worker: None,
        ledger: None,
        attach_only: false,
        asks_first: false,
        epoch: None,
    };
    let plan = CallPlan {
        call,
        route: None,
        worker: None,
    };
    let begun = bench.script.start(&plan).await.unwrap();
    let opened = bench.sessions.open(opening(principal)).await.unwrap();
    let task = SessionRef::new(opened.session, Principal::new(principal));
    if !wait.is_zero() {
        tokio::time::sleep(wait).await;
    }
    let delivered = bench.sessions.deliver(&task, post).await.unwrap();
    assert!(matches!(delivered, Delivered::Stream(_)), "{delivered:?}");
    drop(begun);
    let driven = bench.script.call(tool).await;
    within(async {
        while driven.reads() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    (task, driven)
}

async fn ask(sessions: &Sessions, task: &SessionRef, method: &str, more: Value) -> Value {
    let mut params = json!({ "taskId": task.session.as_str() });
    if let Value::Object(more) = more {
        params.as_object_mut().unwrap().extend(more);
    }
    let request = json!({"jsonrpc":"2.0","id":7,"method":method,"params":params});
    let delivered = sessions.deliver(task, post(&request.to_string())).await;
    let Ok(Delivered::Json(text)) = delivered else {
        panic!("expected an answer, got {delivered:?}");
    };
    serde_json::from_slice(&text).unwrap()
}

async fn get(sessions: &Sessions, task: &SessionRef) -> Value {
    ask(sessions, task, "tasks/get", json!({})).await["result"].clone()
}

async fn status(sessions: &Sessions, task: &SessionRef, status: &str) -> Value {
    within(async {
        loop {
            let now = get(sessions, task).await;
            if now["status"] == status {
                return now;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await
}

async fn asks(driven: &Driven, ask: u64) {
    driven
        .send(CallEventKind::Ask {
            ask: AskId(ask),
            method: Method::Elicit,
            params: Some(RawJson::from_static(r#"{"message":"?"}"#)),
        })
        .await;
}

async fn keys_of(sessions: &Sessions, task: &SessionRef, count: usize) -> Vec<String> {
    within(async {
        loop {
            let now = status(sessions, task, "input_required").await;
            let asked = now["inputRequests"].as_object().unwrap();
            if asked.len() == count {
                return asked.keys().cloned().collect();
            }
        }
    })
    .await
}

async fn ends(driven: &Driven, outcome: CallOutcome) {
    driven.send(CallEventKind::Finished(outcome)).await;
}

#[tokio::test]
async fn a_call_becomes_a_task_without_running_twice_and_its_result_is_kept() {
    let bench = Bench::new(SessionConfig::default());
    let (task, tool) = task(&bench, "alice", "stream-long").await;
    assert!(task.session.is_task());
    let working = get(&bench.sessions, &task).await;
    assert_eq!(working["status"], "working");
    assert_eq!(working["taskId"], task.session.as_str());
    let shown = |filter: &str| {
        let shown = bench.sessions.list(filter, 9).items;
        shown
            .into_iter()
            .filter_map(|it| it.task)
            .collect::<Vec<_>>()
    };
    assert_eq!(shown("work"), ["working"]);
    tool.progress(1).await;
    tool.finish(r#"{"content":[],"isError":true}"#).await;
    let ended = status(&bench.sessions, &task, "completed").await;
    assert!(shown("work").is_empty());
    assert_eq!(shown("completed"), ["completed"]);
    let result = json!({"content":[],"isError":true,"resultType":"complete"});
    assert_eq!(ended["result"], result);
    assert_eq!(ended["createdAt"], working["createdAt"]);
    assert_eq!(bench.script.started.load(Ordering::SeqCst), 1, "once");
    within(async {
        while bench.script.acknowledged.lock().is_empty() || bench.sessions.status().journaled > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn what_a_call_asks_is_answered_key_by_key() {
    let bench = Bench::new(SessionConfig::default());
    let (task, tool) = task(&bench, "alice", "stream-asks").await;
    asks(&tool, 1).await;
    asks(&tool, 2).await;
    let keys = keys_of(&bench.sessions, &task, 2).await;
    let asked = get(&bench.sessions, &task).await;
    assert_eq!(
        asked["inputRequests"][&keys[0]]["method"],
        "elicitation/create"
    );

    let broken = json!({"inputResponses":{&keys[0]:5,&keys[1]:{"action":"accept"}}});
    let refused = ask(&bench.sessions, &task, "tasks/update", broken).await;
    assert_eq!(refused["error"]["code"], -32602);
    let still = get(&bench.sessions, &task).await;
    assert_eq!(still["inputRequests"].as_object().unwrap().len(), 2);

    let first = json!({"inputResponses":{&keys[0]:{"action":"accept"},"unknown":{}}});
    let acknowledged = ask(&bench.sessions, &task, "tasks/update", first.clone()).await;
    assert_eq!(acknowledged["result"], json!({"resultType":"complete"}));
    let left = get(&bench.sessions, &task).await;
    assert_eq!(left["status"], "input_required");
    let open: Vec<_> = left["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(open, [&keys[1]]);
    ask(&bench.sessions, &task, "tasks/update", first).await;
    let second = json!({"inputResponses":{&keys[1]:{"action":"decline"}}});
    ask(&bench.sessions, &task, "tasks/update", second).await;
    assert_eq!(get(&bench.sessions, &task).await["status"], "working");
    let answer = tool.answer_to(AskId(2)).await;
    let declined = RawJson::from_static(r#"{"action":"decline"}"#);
    assert!(matches!(answer, Outcome::Result(given) if given == declined));
    assert_eq!(tool.answers.lock().len(), 2);

    let malformed = ask(&bench.sessions, &task, "tasks/update", json!({})).await;
    assert_eq!(malformed["error"]["code"], -32602);
}

#[tokio::test]
async fn a_cancelled_task_is_cancelled_and_stays_so() {
    let bench = Bench::new(SessionConfig::default());
    let (task, tool) = task(&bench, "alice", "stream-long").await;
    let acknowledged = ask(&bench.sessions, &task, "tasks/cancel", json!({})).await;
    assert_eq!(acknowledged["result"], json!({"resultType":"complete"}));
    assert!(tool.cancelled.borrow().is_some());
    ends(&tool, CallOutcome::Failed(CallFailure::Cancelled)).await;
    let ended = status(&bench.sessions, &task, "cancelled").await;
    assert!(ended.get("result").is_none() && ended.get("error").is_none());
    let again = ask(&bench.sessions, &task, "tasks/cancel", json!({})).await;
    assert_eq!(again["result"], json!({"resultType":"complete"}));
}

async fn answers_while_it_is_cancelled(word: impl FnOnce(&Driven)) {
    let bench = Bench::new(SessionConfig::default());
    let (task, tool) = task(&bench, "alice", "stream-asks").await;
    asks(&tool, 1).await;
    asks(&tool, 2).await;
    let keys = keys_of(&bench.sessions, &task, 2).await;
    tool.late_word.send_replace(true);
    let both =
        json!({"inputResponses":{&keys[0]:{"action":"accept"},&keys[1]:{"action":"accept"}}});
    let updating = tokio::spawn({
        let (sessions, task) = (bench.sessions.clone(), task.clone());
        async move { ask(&sessions, &task, "tasks/update", both).await }
    });
    tool.answer_to(AskId(1)).await;
    ask(&bench.sessions, &task, "tasks/cancel", json!({})).await;
    ends(&tool, CallOutcome::Failed(CallFailure::Cancelled)).await;
    status(&bench.sessions, &task, "cancelled").await;
    word(&tool);
    let acknowledged = within(updating).await.unwrap();
    assert_eq!(acknowledged["result"], json!({"resultType":"complete"}));
    assert_eq!(get(&bench.sessions, &task).await["status"], "cancelled");
}

#[tokio::test]
async fn an_answer_to_a_call_that_is_cancelled_meanwhile_is_acknowledged() {
    answers_while_it_is_cancelled(|tool| {
        tool.late_word.send_replace(false);
    })
    .await;
}

#[tokio::test]
async fn the_end_of_a_call_ends_the_wait_for_its_workers_word() {
    answers_while_it_is_cancelled(|_| {}).await;
}

#[tokio::test]
async fn a_call_that_ends_while_the_store_is_away_keeps_no_answer_waiting() {
    let (bench, saves) = Bench::with_fate(SessionConfig::default());
    let (task, tool) = task(&bench, "alice", "stream-asks").await;
    asks(&tool, 1).await;
    let keys = keys_of(&bench.sessions, &task, 1).await;
    tool.late_word.send_replace(true);
    *saves.lock() = Fate::Away;
    let one = json!({"inputResponses":{&keys[0]:{"action":"accept"}}});
    let updating = tokio::spawn({
        let (sessions, task) = (bench.sessions.clone(), task.clone());
        async move { ask(&sessions, &task, "tasks/update", one).await }
    });
    tool.answer_to(AskId(1)).await;
    ends(&tool, CallOutcome::Failed(CallFailure::Cancelled)).await;
    let acknowledged = within(updating).await.unwrap();
    assert_eq!(acknowledged["result"], json!({"resultType":"complete"}));
    *saves.lock() = Fate::Works;
    status(&bench.sessions, &task, "cancelled").await;
}

#[tokio::test]
async fn a_call_that_fails_makes_the_task_fail_with_its_error() {
    let bench = Bench::new(SessionConfig::default());
    let (task, tool) = task(&bench, "alice", "stream-long").await;
    let error = RpcError::internal("broken").with_data(RawJson::from_static("1"));
    ends(&tool, CallOutcome::Error(error)).await;
    let failed = status(&bench.sessions, &task, "failed").await;
    assert_eq!(
        failed["error"],
        json!({"code":-32603,"message":"broken","data":1})
    );
    assert_eq!(failed["statusMessage"], "broken");
}

#[tokio::test]
async fn nobody_else_finds_a_task_and_no_session_is_one() {
    let bench = Bench::new(SessionConfig::default());
    let (task, _tool) = task(&bench, "alice", "stream-long").await;
    let stranger = SessionRef::new(task.session.clone(), Principal::new("bob"));
    let get = json!({"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":task.session.as_str()}});
    let refused = bench
        .sessions
        .deliver(&stranger, post(&get.to_string()))
        .await;
    assert_eq!(refused.unwrap_err(), GatewayError::NotFound);
    let session = bench.open("alice", "2025-11-25").await;
    let answer = ask(&bench.sessions, &session, "tasks/get", json!({})).await;
    assert_eq!(answer["error"]["code"], -32601);
}

async fn lease(bench: &Bench, node: &str) {
    let directory = &bench.store.directory;
    directory
        .renew_lease(&NodeId::new(node), LONG)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_task_outlives_its_node_with_what_it_asks() {
    let bench = Bench::new(SessionConfig::default());
    lease(&bench, "test").await;
    lease(&bench, "b").await;
    let second = bench.another_node("b");
    let (task, tool) = task(&bench, "alice", "stream-asks").await;
    asks(&tool, 1).await;
    let before = status(&bench.sessions, &task, "input_required").await;
    bench
        .store
        .directory
        .end_lease(&NodeId::new("test"))
        .await
        .unwrap();

    let after = status(&second, &task, "input_required").await;
    assert_eq!(after["inputRequests"], before["inputRequests"]);
    assert_eq!(after["createdAt"], before["createdAt"]);
    tool.finish(r#"{"content":[]}"#).await;
    status(&second, &task, "completed").await;
    assert_eq!(second.status().resumed_calls, 1);
    assert_eq!(bench.script.started.load(Ordering::SeqCst), 1, "once");
}

#[tokio::test]
async fn a_finished_task_outlives_its_node() {
    let bench = Bench::new(SessionConfig::default());
    lease(&bench, "test").await;
    lease(&bench, "b").await;
    let second = bench.another_node("b");
    let (task, tool) = task(&bench, "alice", "stream-long").await;
    tool.finish(r#"{"content":[]}"#).await;
    let before = status(&bench.sessions, &task, "completed").await;
    bench
        .store
        .directory
        .end_lease(&NodeId::new("test"))
        .await
        .unwrap();
    assert_eq!(get(&second, &task).await, before);
}

#[tokio::test]
async fn a_task_whose_worker_is_lost_says_that_the_outcome_is_unknown() {
    let bench = Bench::new(SessionConfig::default());
    lease(&bench, "test").await;
    lease(&bench, "b").await;
    let second = bench.another_node("b");
    let (task, _tool) = task(&bench, "alice", "stream-long").await;
    bench
        .store
        .directory
        .end_lease(&NodeId::new("test"))
        .await
        .unwrap();
    bench.script.calls.clear();
    let failed = status(&second, &task, "failed").await;
    assert_eq!(failed["error"]["code"], 50002);
    assert_eq!(bench.script.started.load(Ordering::SeqCst), 1, "once");
}

#[tokio::test]
async fn a_task_is_not_done_before_its_end_is_stored() {
    let (bench, saves) = Bench::with_fate(SessionConfig::default());
    let (task, tool) = task(&bench, "alice", "stream-long").await;
    *saves.lock() = Fate::Away;
    tool.finish(r#"{"content":[]}"#).await;
    for _ in 0..20 {
        assert_eq!(get(&bench.sessions, &task).await["status"], "working");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    *saves.lock() = Fate::Works;
    status(&bench.sessions, &task, "completed").await;
}

fn sleepy() -> SessionConfig {
    SessionConfig {
        passivate_after: Duration::from_millis(40),
        sweep_every: Duration::from_millis(10),
        ..SessionConfig::default()
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_store_has_lost_is_told_again_before_the_task_sleeps() {
    let (bench, saves) = Bench::with_fate(sleepy());
    let (task, tool) = task(&bench, "alice", "stream-long").await;
    *saves.lock() = Fate::Lost;
    tool.finish(r#"{"content":[]}"#).await;
    status(&bench.sessions, &task, "completed").await;
    for away in [Fate::Away, Fate::Unconfirmed] {
        *saves.lock() = away;
        tokio::time::sleep(LONG).await;
    }
    *saves.lock() = Fate::Works;
    tokio::time::sleep(LONG).await;
    assert_eq!(get(&bench.sessions, &task).await["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_end_the_store_has_lost_fails_and_stays_so() {
    let (bench, saves) = Bench::with_fate(sleepy());
    let (task, tool) = task(&bench, "alice", "stream-long").await;
    *saves.lock() = Fate::Lost;
    tool.finish(r#"{"content":[]}"#).await;
    status(&bench.sessions, &task, "completed").await;
    tokio::time::sleep(LONG).await;
    *saves.lock() = Fate::Works;
    let failed = get(&bench.sessions, &task).await;
    assert_eq!(failed["status"], "failed", "{failed}");
    assert_eq!(failed["error"]["code"], 50002);
    // The next owner must not resume the call from its journal.
    let directory = &bench.store.directory;
    let claim = directory.claim(&task.session, &NodeId::new("test")).await;
    let record: Value = serde_json::from_slice(&claim.unwrap().record).unwrap();
    assert_eq!(record["task"]["end"]["failed"]["code"], 50002, "{record}");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_sleeps_until_its_call_comes_has_lost_nothing() {
    let bench = Bench::new(sleepy());
    let (task, tool) = task_after(&bench, "alice", "stream-long", LONG).await;
    assert_eq!(get(&bench.sessions, &task).await["status"], "working");
    tool.finish(r#"{"content":[]}"#).await;
    status(&bench.sessions, &task, "completed").await;
}

#[tokio::test]
async fn a_result_for_which_there_is_no_room_is_said_to_be_lost() {
    let limits = NodeLimits {
        stored_bytes: 1,
        ..NodeLimits::default()
    };
    let small = SessionConfig {
        task_result_bytes: 64,
        ..SessionConfig::default()
    };
    let bench = Bench::new(small);
    let (task, tool) = task(&bench, "alice", "stream-long").await;
    let long = format!(r#"{{"content":[],"n":"{}"}}"#, "x".repeat(100));
    let outcome = CallOutcome::Result(RawJson::from_valid(long.into()));
    ends(&tool, outcome).await;
    let failed = status(&bench.sessions, &task, "failed").await;
    assert_eq!(failed["error"]["code"], 50300);

    let full = Bench::new(SessionConfig {
        limits,
        ..SessionConfig::default()
    });
    let first = full.sessions.open(opening("alice")).await;
    first.unwrap();
    let second = full.sessions.open(opening("alice")).await;
    assert!(
        matches!(second, Err(GatewayError::Overloaded { .. })),
        "{second:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_task_is_kept_for_its_time_and_then_gone() {
    let bench = Bench::new(SessionConfig {
        task_ttl: Duration::from_secs(600),
        idle: Duration::from_secs(60),
        ..SessionConfig::default()
    });
    let (task, tool) = task(&bench, "alice", "stream-long").await;
    // Task times use the wall clock.
    std::thread::sleep(Duration::from_millis(5));
    tool.finish(r#"{"content":[]}"#).await;
    let ended = status(&bench.sessions, &task, "completed").await;
    let ttl = ended["ttlMs"].as_u64().unwrap();
    assert!(ttl >= 600_005, "{ended}");
    tokio::time::sleep(Duration::from_secs(500)).await;
    assert_eq!(bench.sessions.status().live, 0);
    assert_eq!(get(&bench.sessions, &task).await, ended);
    tokio::time::sleep(Duration::from_secs(700)).await;
    let gone = bench.sessions.deliver(
        &task,
        post(r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{}}"#),
    );
    assert_eq!(gone.await.unwrap_err(), GatewayError::NotFound);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_kept_while_it_runs_however_short_tasks_are_kept() {
    let bench = Bench::new(SessionConfig {
        task_ttl: Duration::from_secs(1),
        ..SessionConfig::default()
    });
    let (task, tool) = task(&bench, "alice", "stream-long").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(get(&bench.sessions, &task).await["status"], "working");
    tool.finish(r#"{"content":[]}"#).await;
    status(&bench.sessions, &task, "completed").await;
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_task_begins_with_the_end_of_its_call_though_nobody_has_asked() {
    let bench = Bench::new(SessionConfig {
        task_ttl: Duration::from_secs(60),
        ..SessionConfig::default()
    });
    let (task, tool) = task(&bench, "alice", "stream-long").await;
    tokio::time::sleep(Duration::from_secs(200)).await;
    tool.finish(r#"{"content":[]}"#).await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    status(&bench.sessions, &task, "completed").await;
}

async fn news_of(news: &mut ClusterSubscription, task: &SessionRef) {
    let told = ClusterEvent::TaskChanged {
        task: task.session.clone(),
    };
    within(async { while news.next().await.unwrap().unwrap() != told {} }).await;
}

#[tokio::test]
async fn all_nodes_hear_of_each_change_of_a_task_and_of_its_next_owner() {
    let bench = Bench::new(SessionConfig::default());
    lease(&bench, "test").await;
    lease(&bench, "b").await;
    let second = bench.another_node("b");
    let mut news = bench.store.bus.subscribe();
    let (task, tool) = task(&bench, "alice", "stream-asks").await;
    asks(&tool, 1).await;
    news_of(&mut news, &task).await;
    let asked = status(&bench.sessions, &task, "input_required").await;
    let key = asked["inputRequests"].as_object().unwrap().keys().next();
    let answers = json!({"inputResponses": {key.unwrap(): {"action": "accept"}}});
    ask(&bench.sessions, &task, "tasks/update", answers).await;
    news_of(&mut news, &task).await;
    assert_eq!(get(&bench.sessions, &task).await["status"], "working");

    let node = NodeId::new("test");
    bench.store.directory.end_lease(&node).await.unwrap();
    get(&second, &task).await;
    news_of(&mut news, &task).await;
    tool.finish(r#"{"content":[]}"#).await;
    news_of(&mut news, &task).await;
    status(&second, &task, "completed").await;
}

#[tokio::test]
async fn tasks_count_as_sessions_of_their_principal_and_in_all() {
    let bench = Bench::new(SessionConfig {
        limits: NodeLimits {
            sessions_per_node: 3,
            sessions_per_principal: 2,
            ..NodeLimits::default()
        },
        ..SessionConfig::default()
    });
    let (first, tool) = task(&bench, "alice", "stream-long").await;
    bench.open("alice", "2025-11-25").await;
    let third = bench.sessions.open(opening("alice")).await;
    assert!(
        matches!(
            third,
            Err(GatewayError::TooManySessionsOfPrincipal { limit: 2, .. })
        ),
        "{third:?}"
    );
    bench.sessions.open(opening("bob")).await.unwrap();
    let full = bench.sessions.open(opening("carol")).await;
    assert!(
        matches!(full, Err(GatewayError::TooManySessions { limit: 3, .. })),
        "{full:?}"
    );
    tool.finish(r#"{"content":[]}"#).await;
    status(&bench.sessions, &first, "completed").await;
    assert!(bench.sessions.open(opening("carol")).await.is_err());
    bench.sessions.close(&first).await.unwrap();
    bench.sessions.open(opening("alice")).await.unwrap();
}

#[tokio::test]
async fn a_principal_that_has_stored_its_share_begins_no_task() {
    let bench = Bench::new(SessionConfig {
        limits: NodeLimits {
            stored_bytes_per_principal: 1,
            ..NodeLimits::default()
        },
        ..SessionConfig::default()
    });
    bench.sessions.open(opening("alice")).await.unwrap();
    let full = bench.sessions.open(opening("alice")).await;
    assert!(
        matches!(
            full,
            Err(GatewayError::TooManyBytesOfPrincipal { limit: 1, .. })
        ),
        "{full:?}"
    );
    bench.sessions.open(opening("bob")).await.unwrap();
}
