use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use shoal_ports::{
    AskId, CallEventKind, CallFailure, CallOutcome, Delivered, GatewayError, NodeId, NodeLimits,
    Post, Principal, SessionGateway, SessionId, SessionRef, SessionTransport, TaskAnswer,
    TaskRequest, TaskSettings,
};
use shoal_protocol::task::{Task, TaskEnd, TaskState};
use shoal_protocol::{Body, Message, Method, Outcome, RawJson, RpcError};
use shoal_session::{SessionConfig, Sessions};

use crate::support::{Bench, Driven, Fate, again, bound, initialize, within};

const LONG: Duration = Duration::from_secs(60);

fn as_task(id: u64, tool: &str, task: Value) -> Post {
    let mut post = bound(id, tool);
    let params = json!({"name": tool, "task": task});
    let Body::Single(Message::Request(request)) = &mut post.body else {
        panic!("it is a request");
    };
    request.params = Some(RawJson::of(&params));
    post
}

async fn json_of(sessions: &Sessions, to: &SessionRef, post: Post) -> Value {
    match sessions.deliver(to, post).await {
        Ok(Delivered::Json(text)) => serde_json::from_slice(&text).unwrap(),
        other => panic!("expected JSON, got {other:?}"),
    }
}

async fn made(sessions: &Sessions, to: &SessionRef, post: Post) -> (SessionRef, Task) {
    match sessions.deliver(to, post).await {
        Ok(Delivered::Task(task)) => {
            let id = SessionId::new(task.id.as_str());
            (SessionRef::new(id, Principal::new("alice")), task)
        }
        other => panic!("expected a task, got {other:?}"),
    }
}

async fn ask(sessions: &Sessions, task: &SessionRef, request: TaskRequest) -> Task {
    sessions.ask_task(task, request).await.unwrap()
}

async fn status(sessions: &Sessions, task: &SessionRef, status: &str) -> Task {
    within(async {
        loop {
            let now = ask(sessions, task, TaskRequest::Get).await;
            if now.legacy_status() == status {
                return now;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await
}

async fn listed(sessions: &Sessions, session: &SessionRef) -> Vec<SessionId> {
    sessions.tasks_of(session).await.unwrap().unwrap().tasks
}

#[tokio::test]
async fn tasks_are_declared_where_a_revision_has_them_and_answers_have_connections() {
    let declared = async |bench: &Bench, version, transport| {
        let open = shoal_ports::OpenSession {
            transport,
            ..initialize("alice", version)
        };
        let opened = bench.sessions.open(open).await.unwrap();
        let greeting: Value = serde_json::from_slice(&opened.response.unwrap()).unwrap();
        greeting["result"]["capabilities"].get("tasks").cloned()
    };
    let on = Bench::new(SessionConfig::default());
    let streamable = SessionTransport::Streamable;
    let tasks = json!({"list":{},"cancel":{},"requests":{"tools":{"call":{}}}});
    assert_eq!(declared(&on, "2025-11-25", streamable).await, Some(tasks));
    assert_eq!(declared(&on, "2025-06-18", streamable).await, None);
    let single = SessionTransport::SingleStream;
    assert_eq!(declared(&on, "2025-11-25", single).await, None);
    let off = Bench::new(SessionConfig {
        tasks: TaskSettings {
            enabled: false,
            ..TaskSettings::default()
        },
        ..SessionConfig::default()
    });
    assert_eq!(declared(&off, "2025-11-25", streamable).await, None);
}

#[tokio::test]
async fn a_call_is_answered_with_its_task_and_runs_once() {
    let bench = Bench::new(SessionConfig::default());
    let session = bench.open("alice", "2025-11-25").await;
    let call = as_task(1, "stream-long", json!({"ttl": 1000}));
    let (task, first) = made(&bench.sessions, &session, call.clone()).await;
    assert_eq!(first.state, TaskState::Working);
    assert_eq!((first.ttl_ms, first.poll_interval_ms), (3_600_000, 1000));
    assert!(task.session.is_task());
    let now = ask(&bench.sessions, &task, TaskRequest::Get).await;
    assert_eq!(now.created_at, first.created_at);
    let own = [task.session.clone()];
    assert_eq!(listed(&bench.sessions, &session).await, own);
    let (_, once_more) = made(&bench.sessions, &session, again(&call)).await;
    assert_eq!(once_more, first);

    let tool = bench.script.call("stream-long").await;
    tool.finish(r#"{"content":[],"isError":true}"#).await;
    status(&bench.sessions, &task, "failed").await;
    assert_eq!(bench.script.started.load(Ordering::SeqCst), 1, "once");
}

#[tokio::test]
async fn what_the_tool_and_the_client_say_of_tasks_must_fit() {
    let bench = Bench::new(SessionConfig::default());
    let session = bench.open("alice", "2025-11-25").await;
    let code = async |post: Post| {
        let answer = json_of(&bench.sessions, &session, post).await;
        answer["error"]["code"].clone()
    };
    assert_eq!(code(as_task(1, "stream-never", json!({}))).await, -32601);
    assert_eq!(code(bound(1, "stream-only")).await, -32601);
    assert_eq!(code(as_task(1, "stream-long", json!(1))).await, -32602);
    let negative = json!({"ttl": -1});
    assert_eq!(code(as_task(1, "stream-long", negative)).await, -32602);
    assert_eq!(bench.script.started.load(Ordering::SeqCst), 0);
    let only = as_task(1, "stream-only", json!({}));
    made(&bench.sessions, &session, only).await;
}

#[tokio::test]
async fn an_earlier_revision_and_a_node_without_tasks_run_the_call_as_any_other() {
    for (version, tasks) in [("2025-06-18", true), ("2025-11-25", false)] {
        let bench = Bench::new(SessionConfig {
            tasks: TaskSettings {
                enabled: tasks,
                ..TaskSettings::default()
            },
            ..SessionConfig::default()
        });
        let session = bench.open("alice", version).await;
        let call = as_task(1, "stream-only", json!({}));
        let delivered = bench.sessions.deliver(&session, call).await;
        assert!(
            matches!(delivered, Ok(Delivered::Stream(_))),
            "{delivered:?}"
        );
        let list = r#"{"jsonrpc":"2.0","id":8,"method":"tasks/list"}"#;
        let refused: Value = serde_json::from_str(&bench.json(&session, list).await).unwrap();
        assert_eq!(refused["error"]["code"], -32601, "{refused}");
        assert_eq!(bench.sessions.tasks_of(&session).await, Ok(None));
    }
}

#[tokio::test]
async fn what_is_refused_is_no_task() {
    let bench = Bench::new(SessionConfig::default());
    let session = bench.open("alice", "2025-11-25").await;
    let refused = as_task(1, "stream-unknown", json!({}));
    let refused = json_of(&bench.sessions, &session, refused).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let full = (bench.sessions).deliver(&session, as_task(1, "stream-full", json!({})));
    let full = full.await.unwrap_err();
    assert!(matches!(full, GatewayError::Overloaded { .. }), "{full:?}");
    assert_eq!(listed(&bench.sessions, &session).await, []);
    assert_eq!(bench.sessions.status().live, 1);
}

#[tokio::test]
async fn a_worker_that_cannot_be_reached_leaves_nothing_behind() {
    let bench = Bench::new(SessionConfig::default());
    let session = bench.open("alice", "2025-11-25").await;
    *bench.script.alone.lock() = Some(shoal_ports::WorkerId::new("w"));
    let call = as_task(1, "stream-long", json!({}));
    let away = bench
        .sessions
        .deliver(&session, call.clone())
        .await
        .unwrap_err();
    assert!(matches!(away, GatewayError::WorkerAway { .. }), "{away:?}");
    assert_eq!(listed(&bench.sessions, &session).await, []);
    *bench.script.alone.lock() = None;
    made(&bench.sessions, &session, call).await;
}

#[tokio::test]
async fn nothing_begins_before_the_task_is_listed() {
    let (bench, saves) = Bench::with_fate(SessionConfig::default());
    let session = bench.open("alice", "2025-11-25").await;
    *saves.lock() = Fate::Away;
    let call = as_task(1, "stream-long", json!({}));
    let away = bench
        .sessions
        .deliver(&session, call.clone())
        .await
        .unwrap_err();
    assert!(matches!(away, GatewayError::Unavailable { .. }), "{away:?}");
    assert_eq!(bench.script.started.load(Ordering::SeqCst), 0);
    *saves.lock() = Fate::Works;
    made(&bench.sessions, &session, call).await;
}

#[tokio::test]
async fn a_task_that_has_ended_is_not_cancelled() {
    let bench = Bench::new(SessionConfig::default());
    let session = bench.open("alice", "2025-11-25").await;
    let call = as_task(1, "stream-long", json!({}));
    let (task, _) = made(&bench.sessions, &session, call).await;
    let tool = bench.script.call("stream-long").await;
    let before = ask(&bench.sessions, &task, TaskRequest::Cancel).await;
    assert_eq!(before.state, TaskState::Working);
    within(async {
        while tool.cancelled.borrow().is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    let cancelled = CallOutcome::Failed(CallFailure::Cancelled);
    tool.send(CallEventKind::Finished(cancelled)).await;
    status(&bench.sessions, &task, "cancelled").await;
    let again = ask(&bench.sessions, &task, TaskRequest::Cancel).await;
    assert_eq!(again.state, TaskState::Ended(TaskEnd::Cancelled));
}

async fn lease(bench: &Bench, node: &str) {
    let directory = &bench.store.directory;
    directory
        .renew_lease(&NodeId::new(node), LONG)
        .await
        .unwrap();
}

async fn asks(tool: &Driven, ask: u64) {
    tool.send(CallEventKind::Ask {
        ask: AskId(ask),
        method: Method::Elicit,
        params: Some(RawJson::from_static(r#"{"message":"?"}"#)),
    })
    .await;
}

async fn keys(sessions: &Sessions, task: &SessionRef) -> Vec<String> {
    match ask(sessions, task, TaskRequest::Get).await.state {
        TaskState::InputRequired(questions) => questions.into_keys().collect(),
        TaskState::Working | TaskState::Ended(_) => Vec::new(),
    }
}

fn answer(key: &str, outcome: Outcome) -> TaskRequest {
    let key = key.to_owned();
    TaskRequest::Answer {
        answers: vec![TaskAnswer { key, outcome }],
        awaits_question: true,
    }
}

fn accept(key: &str) -> TaskRequest {
    let accepted = RawJson::from_static(r#"{"action":"accept"}"#);
    answer(key, Outcome::Result(accepted))
}

#[tokio::test]
async fn a_question_is_answered_by_a_response_and_then_not_open_any_more() {
    let bench = Bench::new(SessionConfig::default());
    let session = bench.open("alice", "2025-11-25").await;
    let call = as_task(1, "stream-asks", json!({}));
    let (task, _) = made(&bench.sessions, &session, call).await;
    let tool = bench.script.call("stream-asks").await;
    asks(&tool, 1).await;
    asks(&tool, 2).await;
    let open = within(async {
        loop {
            let open = keys(&bench.sessions, &task).await;
            if open.len() == 2 {
                return open;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    let now: Value = status(&bench.sessions, &task, "input_required")
        .await
        .to_legacy()
        .read()
        .unwrap();
    assert!(now["statusMessage"].is_string(), "{now}");
    ask(&bench.sessions, &task, accept("c.1")).await;
    ask(&bench.sessions, &task, accept(&format!("{}9", open[0]))).await;
    let stranger = SessionRef::new(task.session.clone(), Principal::new("bob"));
    let refused = bench.sessions.ask_task(&stranger, accept(&open[0])).await;
    assert_eq!(refused.unwrap_err(), GatewayError::NotFound);
    assert_eq!(keys(&bench.sessions, &task).await, open);

    ask(&bench.sessions, &task, accept(&open[0])).await;
    assert_eq!(keys(&bench.sessions, &task).await, open[1..]);
    let error = Outcome::Error(RpcError::new(-1, "no screen"));
    ask(&bench.sessions, &task, answer(&open[1], error)).await;
    ask(&bench.sessions, &task, accept(&open[1])).await;
    status(&bench.sessions, &task, "working").await;
    let first = tool.answer_to(AskId(1)).await;
    let accepted = RawJson::from_static(r#"{"action":"accept"}"#);
    assert!(matches!(first, Outcome::Result(given) if given == accepted));
    let second = tool.answer_to(AskId(2)).await;
    assert!(matches!(second, Outcome::Error(error) if error.message == "no screen"));
    assert_eq!(tool.answers.lock().len(), 2);
}

#[tokio::test]
async fn a_question_that_is_taken_back_is_not_open_any_more() {
    let bench = Bench::new(SessionConfig::default());
    let session = bench.open("alice", "2025-11-25").await;
    let call = as_task(1, "stream-asks", json!({}));
    let (task, _) = made(&bench.sessions, &session, call).await;
    let tool = bench.script.call("stream-asks").await;
    asks(&tool, 1).await;
    status(&bench.sessions, &task, "input_required").await;
    tool.send(CallEventKind::Withdrawn { ask: AskId(1) }).await;
    status(&bench.sessions, &task, "working").await;
    assert!(keys(&bench.sessions, &task).await.is_empty());
}

#[tokio::test]
async fn an_edge_is_told_what_the_client_of_a_session_can_be_asked() {
    let bench = Bench::new(SessionConfig::default());
    let session = bench.open("alice", "2025-11-25").await;
    let told = bench.sessions.tasks_of(&session).await.unwrap().unwrap();
    assert_eq!(told.capabilities.as_str(), r#"{"roots":{}}"#);
}

#[tokio::test]
async fn an_answer_that_comes_to_the_next_owner_first_finds_its_question() {
    let bench = Bench::new(SessionConfig::default());
    lease(&bench, "test").await;
    lease(&bench, "b").await;
    let second = bench.another_node("b");
    let session = bench.open("alice", "2025-11-25").await;
    let call = as_task(1, "stream-asks", json!({}));
    let (task, _) = made(&bench.sessions, &session, call).await;
    let tool = bench.script.call("stream-asks").await;
    asks(&tool, 1).await;
    status(&bench.sessions, &task, "input_required").await;
    let open = keys(&bench.sessions, &task).await;
    let gone = NodeId::new("test");
    bench.store.directory.end_lease(&gone).await.unwrap();

    ask(&second, &task, accept(&open[0])).await;
    tool.answer_to(AskId(1)).await;
    assert_eq!(keys(&second, &task).await, [""; 0]);
    tool.finish(r#"{"content":[]}"#).await;
    status(&second, &task, "completed").await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_waits_for_its_question_at_the_next_owner_is_told_of_it() {
    let bench = Bench::new(SessionConfig::default());
    lease(&bench, "test").await;
    lease(&bench, "b").await;
    let second = bench.another_node("b");
    let session = bench.open("alice", "2025-11-25").await;
    let call = as_task(1, "stream-asks", json!({}));
    let (task, _) = made(&bench.sessions, &session, call).await;
    let tool = bench.script.call("stream-asks").await;
    asks(&tool, 1).await;
    status(&bench.sessions, &task, "input_required").await;
    let first = keys(&bench.sessions, &task).await.remove(0);
    let gone = NodeId::new("test");
    bench.store.directory.end_lease(&gone).await.unwrap();
    status(&second, &task, "input_required").await;

    for asked in [true, false] {
        let number = if asked { '2' } else { '3' };
        let key = format!("{}{number}", first.strip_suffix('1').unwrap());
        let mut answering = Box::pin(ask(&second, &task, accept(&key)));
        let waits = tokio::time::timeout(Duration::from_millis(100), &mut answering).await;
        assert!(waits.is_err(), "there is no such question yet");
        let now = tokio::time::Instant::now();
        match asked {
            true => asks(&tool, 2).await,
            false => tool.finish(r#"{"content":[]}"#).await,
        }
        answering.await;
        assert!(
            now.elapsed() < Duration::from_millis(5),
            "{:?}",
            now.elapsed()
        );
        if asked {
            tool.answer_to(AskId(2)).await;
        }
    }
}

#[tokio::test]
async fn a_call_that_is_delivered_again_to_the_next_owner_is_the_same_task() {
    let bench = Bench::new(SessionConfig::default());
    lease(&bench, "test").await;
    lease(&bench, "b").await;
    let second = bench.another_node("b");
    let session = bench.open("alice", "2025-11-25").await;
    let call = as_task(1, "stream-long", json!({}));
    let (task, first) = made(&bench.sessions, &session, call.clone()).await;
    let tool = bench.script.call("stream-long").await;
    let gone = NodeId::new("test");
    bench.store.directory.end_lease(&gone).await.unwrap();

    let (_, once_more) = made(&second, &session, again(&call)).await;
    assert_eq!(once_more, first);
    assert_eq!(
        listed(&second, &session).await,
        std::slice::from_ref(&task.session)
    );
    tool.finish(r#"{"content":[]}"#).await;
    status(&second, &task, "completed").await;
    assert_eq!(bench.script.started.load(Ordering::SeqCst), 1, "once");
}

#[tokio::test]
async fn a_task_counts_as_a_session() {
    let bench = Bench::new(SessionConfig {
        limits: NodeLimits {
            sessions_per_principal: 2,
            ..NodeLimits::default()
        },
        ..SessionConfig::default()
    });
    let session = bench.open("alice", "2025-11-25").await;
    let first = as_task(1, "stream-long", json!({}));
    made(&bench.sessions, &session, first).await;
    let second = as_task(2, "stream-other", json!({}));
    let full = bench.sessions.deliver(&session, second).await.unwrap_err();
    let limit = 2;
    assert!(
        matches!(full, GatewayError::TooManySessionsOfPrincipal { limit: is, .. } if is == limit),
        "{full:?}"
    );
    assert_eq!(bench.script.started.load(Ordering::SeqCst), 1);
}
