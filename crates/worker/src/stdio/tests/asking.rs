use std::collections::HashSet;
use std::time::Duration;

use serde_json::json;
use shoal_ports::{CallFailure, SessionId};
use shoal_protocol::Method;

use super::harness::{
    Client, TestBackend, eventually, failure, fixture, is_running, scratch, text,
};
use crate::{Isolation, StdioConfig};

fn shared(processes: usize) -> StdioConfig {
    let mut config = fixture("legacy.py", &[]);
    config.processes = Some(processes);
    config
}

fn per_session(flags: &[&str], max_processes: usize, idle: Duration) -> StdioConfig {
    let mut config = fixture("legacy.py", flags);
    config.isolation = Isolation::Session;
    config.processes = Some(max_processes);
    config.session_idle = idle.into();
    config
}

#[tokio::test]
async fn everybody_gets_their_own_question_and_answer() {
    for config in [
        shared(1),
        shared(3),
        per_session(&[], 64, Duration::from_secs(60)),
    ] {
        let running = TestBackend::start(config).await;
        let clients: Vec<_> = (0..9)
            .map(|at| Client::askable(&format!("user{at}")))
            .collect();
        let calls = clients.iter().map(|client| {
            let question = format!("for {}", client.caller.principal);
            running.call(client, "ask", json!({ "question": question }))
        });
        let outcomes = futures::future::join_all(calls).await;
        for (client, outcome) in clients.iter().zip(outcomes) {
            let name = client.caller.principal.as_str();
            assert_eq!(text(&outcome)["content"]["answered_by"], name);
            let asked = client.asked();
            assert_eq!(asked.len(), 1);
            assert!(asked[0].contains(&format!("for {name}\"")), "{asked:?}");
        }
        running.0.shutdown().await;
    }
}

#[tokio::test]
async fn the_end_of_an_elicitation_reaches_whom_it_was_put_to() {
    for config in [shared(2), per_session(&[], 64, Duration::from_secs(60))] {
        let running = TestBackend::start(config).await;
        let clients = ["a", "b"].map(Client::askable);
        let calls = clients.iter().map(|client| {
            let arguments = json!({ "id": client.caller.principal.as_str() });
            running.call(client, "opens", arguments)
        });
        futures::future::join_all(calls).await;
        for client in &clients {
            let told = client.notes(&Method::ElicitationComplete);
            let name = client.caller.principal.as_str();
            assert_eq!(told, [json!({ "elicitationId": name })]);
        }
        running.0.shutdown().await;
    }
}

#[tokio::test]
async fn a_call_that_can_ask_is_alone_and_others_use_another_process() {
    let running = TestBackend::start(shared(2)).await;
    let thinking = Client::askable("thinking").hesitant();
    let asking = running.spawn(&thinking, "ask", json!({ "question": "?" }));
    eventually("the question has arrived", || thinking.asked().len() == 1).await;
    // The client declared no capability, so the question must reach no client.
    let outcome = running
        .call(
            &Client::named("plain"),
            "ask",
            json!({ "question": "secret" }),
        )
        .await;
    assert_eq!(text(&outcome), json!({ "error": -32603 }));
    assert_eq!(thinking.asked().len(), 1);
    thinking.answer_one();
    assert_eq!(
        text(&asking.await.unwrap())["content"]["answered_by"],
        "thinking"
    );
}

#[tokio::test]
async fn calls_that_cannot_ask_share_the_first_process() {
    let running = TestBackend::start(shared(4)).await;
    let file = scratch("share");
    let client = Client::named("hanging");
    let hanging = running.spawn(&client, "hang", json!({ "file": file.to_str() }));
    let mut pids = HashSet::new();
    for at in 0..5 {
        let caller = Client::named(&format!("c{at}"));
        pids.insert(text(&running.call(&caller, "pid", json!({})).await).to_string());
    }
    assert_eq!(pids.len(), 1);
    client.cancel();
    hanging.await.unwrap();
}

#[tokio::test]
async fn one_that_waits_in_vain_was_not_executed() {
    let running = TestBackend::start(shared(1)).await;
    let thinking = Client::askable("thinking").hesitant();
    let asking = running.spawn(&thinking, "ask", json!({ "question": "?" }));
    eventually("the question has arrived", || thinking.asked().len() == 1).await;
    let waiting = Client::askable("waiting");
    let call = running.spawn(&waiting, "ask", json!({ "question": "?" }));
    tokio::task::yield_now().await;
    waiting.cancel();
    assert!(matches!(
        failure(call.await.unwrap()),
        CallFailure::NotExecuted { .. }
    ));
    thinking.answer_one();
    asking.await.unwrap();
}

#[tokio::test]
async fn the_question_of_a_cancelled_call_reaches_nobody_else() {
    let running = TestBackend::start(shared(1)).await;
    let before = text(&running.call(&Client::named("a"), "pid", json!({})).await);
    let (first, second) = (Client::askable("first"), Client::askable("second"));
    let file = scratch("late");
    let cancelled = running.spawn(&first, "ask_after_cancel", json!({ "file": file.to_str() }));
    let running_now = Client::named("other");
    eventually("the call has begun", || {
        std::fs::read_to_string(&*file).is_ok_and(|text| text == "begun")
    })
    .await;
    first.cancel();
    assert_eq!(failure(cancelled.await.unwrap()), CallFailure::Cancelled);
    let outcome = running
        .call(&second, "ask", json!({ "question": "mine" }))
        .await;
    assert_eq!(text(&outcome)["content"]["answered_by"], "second");
    assert!(
        second
            .asked()
            .iter()
            .all(|question| question.contains("mine"))
    );
    assert!(first.asked().is_empty());
    let after = text(&running.call(&running_now, "pid", json!({})).await);
    assert_ne!(
        before, after,
        "the process that might still ask was replaced"
    );
    assert!(running.0.state().borrow().catalog.is_some());
}

#[tokio::test]
async fn a_question_in_the_background_is_refused() {
    let running = TestBackend::start(shared(1)).await;
    let client = Client::askable("a");
    let file = scratch("background");
    running
        .call(&client, "background_ask", json!({ "file": file.to_str() }))
        .await;
    eventually("the server has its answer", || {
        std::fs::read_to_string(&*file).is_ok_and(|text| !text.is_empty())
    })
    .await;
    assert_eq!(
        std::fs::read_to_string(&*file).unwrap(),
        r#"{"error": -32603}"#
    );
    assert!(client.asked().is_empty());
}

#[tokio::test]
async fn roots_are_offered_to_a_shared_process_only_if_configured() {
    let client = Client::askable("a");
    let running = TestBackend::start(shared(1)).await;
    let outcome = running.call(&client, "roots", json!({})).await;
    assert_eq!(text(&outcome), json!({ "error": -32603 }));
    assert!(client.asked().is_empty());
    let mut config = shared(1);
    config.share_roots = true;
    let running = TestBackend::start(config).await;
    let outcome = running.call(&client, "roots", json!({})).await;
    assert_eq!(text(&outcome)["roots"][0]["uri"], "file:///a");
}

#[tokio::test]
async fn each_session_has_a_process_that_knows_its_client() {
    let running =
        TestBackend::start(per_session(&["--roots-early"], 64, Duration::from_secs(60))).await;
    let (a, b, plain) = (
        Client::askable("a"),
        Client::askable("b"),
        Client::named("plain"),
    );
    let pid = async |client: &Client| text(&running.call(client, "pid", json!({})).await);
    let (pid_a, pid_b) = tokio::join!(pid(&a), pid(&b));
    assert_ne!(pid_a, pid_b);
    assert_eq!(pid_a, pid(&a).await);
    let known = text(&running.call(&a, "client", json!({})).await);
    let client = &known["client"];
    assert_eq!(client["clientInfo"]["name"], "a");
    let capabilities = json!({ "sampling": {}, "elicitation": {}, "roots": {} });
    assert_eq!(client["capabilities"], capabilities);
    assert_eq!(known["early_roots"]["roots"][0]["uri"], "file:///a");
    let known = text(&running.call(&plain, "client", json!({})).await);
    assert_eq!(known["client"]["capabilities"], json!({}));
    running.0.end_session(&SessionId::new("a")).await;
    assert_ne!(pid_a, pid(&a).await);
    assert_eq!(pid_b, pid(&b).await);
}

fn by_default(flags: &[&str]) -> StdioConfig {
    StdioConfig {
        isolation: StdioConfig::default().isolation,
        ..fixture("legacy.py", flags)
    }
}

#[tokio::test]
async fn by_default_no_caller_shares_what_a_process_remembers() {
    let running = TestBackend::start(by_default(&[])).await;
    let pid = async |client: &Client| text(&running.call(client, "pid", json!({})).await);
    let declared = r#"{"elicitation":{},"roots":{}}"#;
    let callers = [
        Client::named("a1").of("a"),
        Client::askable("a2").of("a"),
        Client::askable("b"),
        Client::modern("a", "{}"),
        Client::modern("b", declared),
        Client::modern("c", declared),
    ];
    let mut pids = Vec::new();
    for client in &callers {
        pids.push(pid(client).await);
    }
    let different: HashSet<_> = pids.iter().map(ToString::to_string).collect();
    assert_eq!(different.len(), callers.len());
    for (client, before) in callers.iter().zip(&pids) {
        assert_eq!(pid(client).await, *before, "its state is kept");
    }
}

#[tokio::test]
async fn parallel_calls_of_a_client_that_can_be_asked_all_run() {
    let running = TestBackend::start(by_default(&[])).await;
    for client in [
        Client::askable("legacy"),
        Client::modern("modern", r#"{"elicitation":{}}"#),
    ] {
        let calls = (0..20).map(|_| running.call(&client, "ask", json!({ "question": "?" })));
        for outcome in futures::future::join_all(calls).await {
            let name = client.caller.principal.as_str();
            assert_eq!(text(&outcome)["content"]["answered_by"], name);
        }
        assert_eq!(client.asked().len(), 20);
    }
}

#[tokio::test]
async fn roots_that_are_asked_for_at_the_start_are_there_for_the_first_call() {
    let running = TestBackend::start(by_default(&["--roots-early"])).await;
    for client in [
        Client::askable("legacy"),
        Client::modern("modern", r#"{"elicitation":{},"roots":{}}"#),
    ] {
        let known = text(&running.call(&client, "client", json!({})).await);
        let name = client.caller.principal.as_str();
        let uri = &known["early_roots"]["roots"][0]["uri"];
        assert_eq!(*uri, format!("file:///{name}"), "{known}");
    }
}

#[tokio::test]
async fn a_client_that_does_not_tell_its_roots_is_waited_for_once() {
    let running = TestBackend::start(by_default(&["--roots-early"])).await;
    let client = Client::askable("silent").hesitant();
    let echo = async || {
        let outcome = running.call(&client, "echo", json!({ "text": "hello" }));
        text(&outcome.await)
    };
    assert_eq!(echo().await, "hello");
    let later = async {
        for _ in 0..5 {
            assert_eq!(echo().await, "hello");
        }
    };
    // Four times as long as the first call may wait.
    let later = tokio::time::timeout(Duration::from_secs(40), later).await;
    assert!(later.is_ok(), "each call waits");
}

#[tokio::test]
async fn a_sessions_process_ends_when_it_is_idle_but_not_during_a_call() {
    let running = TestBackend::start(per_session(&[], 2, Duration::from_millis(300))).await;
    let (busy, idle) = (Client::named("busy"), Client::named("idle"));
    let pid = async |client: &Client| text(&running.call(client, "pid", json!({})).await);
    let file = scratch("idle");
    let busy_pid = pid(&busy).await.to_string();
    let hanging = running.spawn(&busy, "hang", json!({ "file": file.to_str() }));
    running
        .call(&busy, "echo", json!({ "text": "it runs" }))
        .await;
    // This makes the idle process the one used last. It must end first nevertheless.
    let idle_pid = pid(&idle).await.to_string();
    eventually("the idle process is over", || !is_running(&idle_pid)).await;
    assert!(is_running(&busy_pid) && !hanging.is_finished());
    busy.cancel();
    assert_eq!(failure(hanging.await.unwrap()), CallFailure::Cancelled);
    eventually("so is the other one", || !is_running(&busy_pid)).await;
}

#[tokio::test]
async fn session_processes_are_bounded() {
    let running = TestBackend::start(per_session(&[], 1, Duration::from_secs(60))).await;
    let (a, b) = (Client::named("a"), Client::named("b"));
    let file = scratch("bounded");
    let a_pid = text(&running.call(&a, "pid", json!({})).await).to_string();
    let hanging = running.spawn(&a, "hang", json!({ "file": file.to_str() }));
    running.call(&a, "echo", json!({ "text": "it runs" })).await;
    let waiting = running.spawn(&b, "pid", json!({}));
    eventually("it waits", || b.waits()).await;
    assert!(!waiting.is_finished() && is_running(&a_pid));
    a.cancel();
    hanging.await.unwrap();
    assert_ne!(text(&waiting.await.unwrap()).to_string(), a_pid);
}

#[tokio::test]
async fn a_server_that_may_not_ask_is_shared_by_all() {
    let mut config = shared(4);
    config.may_ask = false;
    let running = TestBackend::start(config).await;
    let (a, b) = (Client::askable("a"), Client::askable("b"));
    let file = scratch("may-not");
    let hanging = running.spawn(&a, "hang", json!({ "file": file.to_str() }));
    let known = text(&running.call(&b, "client", json!({})).await);
    let declared = known["client"]["capabilities"].as_object().unwrap();
    assert_eq!(declared.keys().collect::<Vec<_>>(), ["extensions"]);
    let outcome = running.call(&b, "ask", json!({ "question": "?" })).await;
    assert_eq!(text(&outcome), json!({ "error": -32603 }));
    a.cancel();
    hanging.await.unwrap();
}

#[tokio::test]
async fn a_sessions_process_that_dies_is_started_again() {
    let running = TestBackend::start(per_session(&[], 64, Duration::from_secs(60))).await;
    let (a, b) = (Client::askable("a"), Client::askable("b"));
    let pid = text(&running.call(&b, "pid", json!({})).await);
    let died = failure(running.call(&a, "die", json!({})).await);
    assert!(
        matches!(died, CallFailure::OutcomeUnknown { .. }),
        "{died:?}"
    );
    text(&running.call(&a, "pid", json!({})).await);
    assert_eq!(
        text(&running.call(&b, "pid", json!({})).await),
        pid,
        "others notice nothing"
    );
}

#[tokio::test]
async fn a_question_of_a_call_that_has_ended_is_answered_with_an_error() {
    let running = TestBackend::start(shared(1)).await;
    let client = Client::askable("a").hesitant();
    let file = scratch("unanswered");
    // The tool ends before its client answers the question.
    let call = running.spawn(&client, "ask_and_go", json!({ "file": file.to_str() }));
    assert_eq!(text(&call.await.unwrap()), "gone");
    eventually("the server has its answer", || {
        std::fs::read_to_string(&*file).is_ok_and(|text| !text.is_empty())
    })
    .await;
    assert_eq!(
        std::fs::read_to_string(&*file).unwrap(),
        r#"{"error": -32603}"#
    );
}
