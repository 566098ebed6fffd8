use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use shoal_ports::{
    AdoptCall, AskId, Call, CallEventKind, CallFailure, CallOutcome, CallPlan, Caller, Dispatcher,
    ForwardedHeaders, GatewayError, LogFilter, MayStart, NodeId, NodeLimits, Principal, Repeat,
    SessionGateway, SessionRef, SessionSettings, TaskAnswer, TaskMark, TaskRequest, TaskSettings,
};
use shoal_protocol::task::{Task, TaskState};
use shoal_protocol::{Method, Outcome, RawJson, Revision, RpcError};
use shoal_session::{SessionConfig, Sessions};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::support::{Bench, Driven, Fate, adopted, within};

const LONG: Duration = Duration::from_secs(60);

fn new_task(sessions: &Sessions, principal: &str) -> SessionRef {
    SessionRef::new(sessions.new_task().unwrap(), Principal::new(principal))
}

/// Starts a call, as the edge does, that may become a task.
async fn started(bench: &Bench, principal: &str, tool: &str) -> AdoptCall {
    let adopted = adopted(tool);
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
        id: adopted.call,
        method: Method::ToolsCall,
        params: adopted.request.params.clone(),
        caller: Arc::new(caller),
        progress_token: None,
        log: LogFilter::Off,
        deadline: Instant::now() + LONG,
        repeat: Repeat::Never,
        trace: None,
        binding: None,
        may_start: MayStart::Yes,
        epoch: None,
    };
    let plan = CallPlan {
        call,
        route: None,
        worker: None,
    };
    // The running call is dropped, as by an edge that hands it over.
    bench.script.start(&plan).await.unwrap();
    adopted
}

async fn task(bench: &Bench, principal: &str, tool: &str) -> (SessionRef, Arc<Driven>) {
    let call = started(bench, principal, tool).await;
    let task = new_task(&bench.sessions, principal);
    let made = bench.sessions.adopt(&task, call).await.unwrap();
    assert_eq!(made.id, task.session.as_str());
    (task, read_twice(bench, tool).await)
}

async fn read_twice(bench: &Bench, tool: &str) -> Arc<Driven> {
    let driven = bench.script.call(tool).await;
    within(async {
        while driven.reads() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    driven
}

async fn any_task(sessions: &Sessions, principal: &str) -> Result<SessionRef, GatewayError> {
    let task = new_task(sessions, principal);
    sessions.adopt(&task, adopted("stream-long")).await?;
    Ok(task)
}

async fn ask(sessions: &Sessions, task: &SessionRef, request: TaskRequest) -> Task {
    sessions.ask_task(task, request).await.unwrap()
}

async fn update(sessions: &Sessions, task: &SessionRef, answers: Value) {
    let answers = answers.as_object().unwrap().iter();
    let answer = |(key, result): (&String, &Value)| TaskAnswer {
        key: key.clone(),
        outcome: Outcome::Result(RawJson::of(result)),
    };
    let request = TaskRequest::Answer {
        answers: answers.map(answer).collect(),
        awaits_question: false,
    };
    ask(sessions, task, request).await;
}

async fn get(sessions: &Sessions, task: &SessionRef) -> Value {
    let now = ask(sessions, task, TaskRequest::Get).await;
    now.to_result().read().unwrap()
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

    let first = json!({&keys[0]:{"action":"accept"},"unknown":{}});
    update(&bench.sessions, &task, first.clone()).await;
    let left = get(&bench.sessions, &task).await;
    assert_eq!(left["status"], "input_required");
    let open: Vec<_> = left["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(open, [&keys[1]]);
    update(&bench.sessions, &task, first).await;
    let second = json!({&keys[1]:{"action":"decline"}});
    update(&bench.sessions, &task, second).await;
    assert_eq!(get(&bench.sessions, &task).await["status"], "working");
    let answer = tool.answer_to(AskId(2)).await;
    let declined = RawJson::from_static(r#"{"action":"decline"}"#);
    assert!(matches!(answer, Outcome::Result(given) if given == declined));
    assert_eq!(tool.answers.lock().len(), 2);
}

#[tokio::test]
async fn a_cancelled_task_is_cancelled_and_stays_so() {
    let bench = Bench::new(SessionConfig::default());
    let (task, tool) = task(&bench, "alice", "stream-long").await;
    let before = ask(&bench.sessions, &task, TaskRequest::Cancel).await;
    assert!(!before.is_over());
    assert!(tool.cancelled.borrow().is_some());
    ends(&tool, CallOutcome::Failed(CallFailure::Cancelled)).await;
    let ended = status(&bench.sessions, &task, "cancelled").await;
    assert!(ended.get("result").is_none() && ended.get("error").is_none());
    let again = ask(&bench.sessions, &task, TaskRequest::Cancel).await;
    assert!(again.is_over());
}

async fn answers_while_it_is_cancelled(word: impl FnOnce(&Driven)) {
    let bench = Bench::new(SessionConfig::default());
    let (task, tool) = task(&bench, "alice", "stream-asks").await;
    asks(&tool, 1).await;
    asks(&tool, 2).await;
    let keys = keys_of(&bench.sessions, &task, 2).await;
    tool.late_word.send_replace(true);
    let both = json!({&keys[0]:{"action":"accept"},&keys[1]:{"action":"accept"}});
    let updating = tokio::spawn({
        let (sessions, task) = (bench.sessions.clone(), task.clone());
        async move { update(&sessions, &task, both).await }
    });
    tool.answer_to(AskId(1)).await;
    ask(&bench.sessions, &task, TaskRequest::Cancel).await;
    ends(&tool, CallOutcome::Failed(CallFailure::Cancelled)).await;
    status(&bench.sessions, &task, "cancelled").await;
    word(&tool);
    within(updating).await.unwrap();
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
    let one = json!({&keys[0]:{"action":"accept"}});
    let updating = tokio::spawn({
        let (sessions, task) = (bench.sessions.clone(), task.clone());
        async move { update(&sessions, &task, one).await }
    });
    tool.answer_to(AskId(1)).await;
    ends(&tool, CallOutcome::Failed(CallFailure::Cancelled)).await;
    within(updating).await.unwrap();
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
    let mark = TaskMark(0);
    for request in [
        TaskRequest::Get,
        TaskRequest::Cancel,
        TaskRequest::Watch { seen: mark },
        TaskRequest::Answer {
            answers: Vec::new(),
            awaits_question: true,
        },
    ] {
        let refused = bench.sessions.ask_task(&stranger, request).await;
        assert_eq!(refused.unwrap_err(), GatewayError::NotFound);
    }
    for repeated in [false, true] {
        let call = AdoptCall {
            repeated,
            ..adopted("stream-other")
        };
        let refused = bench.sessions.adopt(&stranger, call).await;
        assert_eq!(refused.unwrap_err(), GatewayError::NotFound);
    }
    assert_eq!(get(&bench.sessions, &task).await["status"], "working");
    let session = bench.open("alice", "2025-11-25").await;
    let refused = bench.sessions.ask_task(&session, TaskRequest::Get).await;
    assert_eq!(refused.unwrap_err(), GatewayError::NotFound);
}

#[tokio::test]
async fn a_repeated_request_for_a_task_finds_the_task() {
    let bench = Bench::new(SessionConfig::default());
    lease(&bench, "test").await;
    lease(&bench, "b").await;
    let second = bench.another_node("b");
    let call = started(&bench, "alice", "stream-long").await;
    let task = new_task(&bench.sessions, "alice");
    let attempts = [false, true, true, false].map(|repeated| {
        let call = AdoptCall {
            repeated,
            ..call.clone()
        };
        bench.sessions.adopt(&task, call)
    });
    for made in futures::future::join_all(attempts).await {
        assert_eq!(made.unwrap().id, task.session.as_str());
    }
    let tool = read_twice(&bench, "stream-long").await;
    let elsewhere = AdoptCall {
        repeated: true,
        ..call.clone()
    };
    let moved = second.adopt(&task, elsewhere.clone()).await.unwrap_err();
    assert!(matches!(moved, GatewayError::Moved { .. }), "{moved:?}");
    let gone = NodeId::new("test");
    bench.store.directory.end_lease(&gone).await.unwrap();
    second.adopt(&task, elsewhere.clone()).await.unwrap();
    assert_eq!(second.status().resumed_calls, 1);
    tool.finish(r#"{"content":[]}"#).await;
    status(&second, &task, "completed").await;
    let ended = second.adopt(&task, elsewhere).await.unwrap();
    assert!(ended.is_over());
    assert_eq!(bench.script.started.load(Ordering::SeqCst), 1, "once");
}

#[tokio::test]
async fn a_task_that_an_attempt_has_not_made_is_made_by_the_next_under_the_same_id() {
    let bench = Bench::new(SessionConfig::default());
    lease(&bench, "test").await;
    lease(&bench, "b").await;
    let second = bench.another_node("b");
    let call = started(&bench, "alice", "stream-long").await;
    let task = new_task(&bench.sessions, "alice");
    let repeated = AdoptCall {
        repeated: true,
        ..call.clone()
    };
    second.adopt(&task, repeated).await.unwrap();
    // The first attempt arrives late.
    let late = bench.sessions.adopt(&task, call).await.unwrap_err();
    assert!(matches!(late, GatewayError::Moved { .. }), "{late:?}");
    let tool = read_twice(&bench, "stream-long").await;
    tool.finish(r#"{"content":[]}"#).await;
    status(&second, &task, "completed").await;
    assert_eq!(bench.script.started.load(Ordering::SeqCst), 1, "once");
}

#[tokio::test]
async fn a_task_whose_caller_leaves_is_made_all_the_same() {
    let bench = Bench::new(SessionConfig::default());
    let call = started(&bench, "alice", "stream-long").await;
    let task = new_task(&bench.sessions, "alice");
    {
        let mut adopting = Box::pin(bench.sessions.adopt(&task, call));
        let polled = futures::poll!(&mut adopting);
        assert!(polled.is_pending());
    }
    within(async {
        while bench
            .sessions
            .ask_task(&task, TaskRequest::Get)
            .await
            .is_err()
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    read_twice(&bench, "stream-long").await;
}

#[tokio::test]
async fn a_call_that_the_store_does_not_journal_is_no_task() {
    let bench = Bench::new(SessionConfig {
        limits: NodeLimits {
            stored_bytes: 1,
            ..NodeLimits::default()
        },
        ..SessionConfig::default()
    });
    let call = started(&bench, "alice", "stream-long").await;
    let task = new_task(&bench.sessions, "alice");
    let full = bench.sessions.adopt(&task, call).await.unwrap_err();
    assert!(matches!(full, GatewayError::Overloaded { .. }), "{full:?}");
    let gone = bench.sessions.ask_task(&task, TaskRequest::Get).await;
    assert_eq!(gone.unwrap_err(), GatewayError::NotFound);
    assert_eq!(bench.sessions.status().live, 0);
}

async fn watch(sessions: &Sessions, task: &SessionRef) -> JoinHandle<Task> {
    let seen = TaskMark::of(&ask(sessions, task, TaskRequest::Get).await);
    let (sessions, task) = (sessions.clone(), task.clone());
    tokio::spawn(async move { ask(&sessions, &task, TaskRequest::Watch { seen }).await })
}

#[tokio::test(start_paused = true)]
async fn who_waits_hears_at_once_of_each_change_and_otherwise_after_a_while() {
    let bench = Bench::new(SessionConfig::default());
    let (task, tool) = task(&bench, "alice", "stream-asks").await;
    let now = Instant::now();
    let unchanged = watch(&bench.sessions, &task).await.await.unwrap();
    assert!(!unchanged.is_over());
    assert!(
        now.elapsed() >= Duration::from_secs(10),
        "{:?}",
        now.elapsed()
    );

    let now = Instant::now();
    let told = watch(&bench.sessions, &task).await;
    asks(&tool, 1).await;
    assert!(matches!(
        told.await.unwrap().state,
        TaskState::InputRequired(_)
    ));
    let told = watch(&bench.sessions, &task).await;
    asks(&tool, 2).await;
    let asked = told.await.unwrap();
    let TaskState::InputRequired(questions) = &asked.state else {
        panic!("{asked:?}");
    };
    assert_eq!(questions.len(), 2);
    let told = watch(&bench.sessions, &task).await;
    ask(&bench.sessions, &task, TaskRequest::Cancel).await;
    ends(&tool, CallOutcome::Failed(CallFailure::Cancelled)).await;
    assert!(told.await.unwrap().is_over());
    assert!(
        now.elapsed() < Duration::from_secs(1),
        "{:?}",
        now.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn who_waits_at_an_owner_that_hands_the_task_over_is_sent_away_at_once() {
    let bench = Bench::new(SessionConfig::default());
    lease(&bench, "test").await;
    lease(&bench, "b").await;
    let second = bench.another_node("b");
    let (task, _tool) = task(&bench, "alice", "stream-long").await;
    let seen = TaskMark::of(&ask(&bench.sessions, &task, TaskRequest::Get).await);
    let waiting = tokio::spawn({
        let (sessions, task) = (bench.sessions.clone(), task.clone());
        async move { sessions.ask_task(&task, TaskRequest::Watch { seen }).await }
    });
    tokio::time::sleep(Duration::from_millis(10)).await;
    let now = Instant::now();
    bench.sessions.hand_over().await;
    let moved = waiting.await.unwrap().unwrap_err();
    assert!(matches!(moved, GatewayError::Moved { .. }), "{moved:?}");
    assert!(
        now.elapsed() < Duration::from_secs(5),
        "{:?}",
        now.elapsed()
    );
    assert_eq!(get(&second, &task).await["status"], "working");
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
        session: SessionSettings {
            passivate_after: Duration::from_millis(40).into(),
            sweep_every: Duration::from_millis(10).into(),
            ..SessionSettings::default()
        },
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
    // With the end in its record, the next owner does not resume the call from its journal.
    let directory = &bench.store.directory;
    let claim = directory.claim(&task.session, &NodeId::new("test")).await;
    let record: Value = serde_json::from_slice(&claim.unwrap().record).unwrap();
    assert_eq!(record["task"]["end"]["failed"]["code"], 50002, "{record}");
}

#[tokio::test]
async fn a_result_for_which_there_is_no_room_is_said_to_be_lost() {
    let limits = NodeLimits {
        stored_bytes: 1,
        ..NodeLimits::default()
    };
    let small = SessionConfig {
        tasks: TaskSettings {
            result_bytes: 64,
            ..TaskSettings::default()
        },
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
    let refused = any_task(&full.sessions, "alice").await;
    assert!(
        matches!(refused, Err(GatewayError::Overloaded { .. })),
        "{refused:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_task_is_kept_for_its_time_and_then_gone() {
    let bench = Bench::new(SessionConfig {
        tasks: TaskSettings {
            ttl: Duration::from_secs(600).into(),
            ..TaskSettings::default()
        },
        session: SessionSettings {
            idle: Duration::from_secs(60).into(),
            ..SessionSettings::default()
        },
        ..SessionConfig::default()
    });
    let (task, tool) = task(&bench, "alice", "stream-long").await;
    // The times of tasks use the wall clock, which the test cannot pause.
    std::thread::sleep(Duration::from_millis(5));
    tool.finish(r#"{"content":[]}"#).await;
    let ended = status(&bench.sessions, &task, "completed").await;
    let ttl = ended["ttlMs"].as_u64().unwrap();
    assert!(ttl >= 600_005, "{ended}");
    tokio::time::sleep(Duration::from_secs(500)).await;
    assert_eq!(bench.sessions.status().live, 0);
    assert_eq!(get(&bench.sessions, &task).await, ended);
    tokio::time::sleep(Duration::from_secs(700)).await;
    let gone = bench.sessions.ask_task(&task, TaskRequest::Get);
    assert_eq!(gone.await.unwrap_err(), GatewayError::NotFound);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_kept_while_it_runs_however_short_tasks_are_kept() {
    let bench = Bench::new(SessionConfig {
        tasks: TaskSettings {
            ttl: Duration::from_secs(1).into(),
            ..TaskSettings::default()
        },
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
        tasks: TaskSettings {
            ttl: Duration::from_secs(60).into(),
            ..TaskSettings::default()
        },
        ..SessionConfig::default()
    });
    let (task, tool) = task(&bench, "alice", "stream-long").await;
    tokio::time::sleep(Duration::from_secs(200)).await;
    tool.finish(r#"{"content":[]}"#).await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    status(&bench.sessions, &task, "completed").await;
}

#[tokio::test]
async fn the_end_of_a_tasks_call_can_be_waited_for() {
    let bench = Bench::new(SessionConfig::default());
    let (task, tool) = task(&bench, "alice", "stream-long").await;
    let until_over = |to: &SessionRef| {
        let (sessions, to) = (bench.sessions.clone(), to.clone());
        tokio::spawn(async move { sessions.until_over(&to, None).await })
    };
    let waiting = until_over(&task);
    let stranger = SessionRef::new(task.session.clone(), Principal::new("bob"));
    let refused = until_over(&stranger).await.unwrap();
    assert_eq!(refused, Err(GatewayError::NotFound));
    assert!(!waiting.is_finished());
    tool.finish(r#"{"content":[]}"#).await;
    within(waiting).await.unwrap().unwrap();
    assert_eq!(until_over(&task).await.unwrap(), Ok(()));
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
    let third = any_task(&bench.sessions, "alice").await;
    assert!(
        matches!(
            third,
            Err(GatewayError::TooManySessionsOfPrincipal { limit: 2, .. })
        ),
        "{third:?}"
    );
    any_task(&bench.sessions, "bob").await.unwrap();
    let full = any_task(&bench.sessions, "carol").await;
    assert!(
        matches!(full, Err(GatewayError::TooManySessions { limit: 3, .. })),
        "{full:?}"
    );
    tool.finish(r#"{"content":[]}"#).await;
    status(&bench.sessions, &first, "completed").await;
    assert!(any_task(&bench.sessions, "carol").await.is_err());
    bench.sessions.close(&first).await.unwrap();
    any_task(&bench.sessions, "alice").await.unwrap();
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
    bench.open("alice", "2025-11-25").await;
    let full = any_task(&bench.sessions, "alice").await;
    assert!(
        matches!(
            full,
            Err(GatewayError::TooManyBytesOfPrincipal { limit: 1, .. })
        ),
        "{full:?}"
    );
    assert_eq!(bench.sessions.status().live, 1);
}
