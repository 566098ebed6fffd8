use std::sync::Arc;
use std::time::Duration;

use shoal_ports::{Attach, Call, CallEventKind, CallOutcome, Caller, LogFilter, Worker};
use shoal_protocol::{Method, Outcome, RawJson, RpcError, code};

use super::script::{Script, call, done, event, outcome, small, until};
use crate::CallContext;

async fn ask_roots(context: &CallContext) -> CallOutcome {
    match context.ask(Method::RootsList, None).await {
        Outcome::Result(result) => CallOutcome::Result(result),
        Outcome::Error(error) => CallOutcome::Error(error),
    }
}

#[tokio::test]
async fn question_is_answered_once() {
    let script = Script::new(|context| async move { ask_roots(&context).await });
    let worker = script.worker(small()).await;
    let mut running = worker.start(call(), None).await.unwrap();
    let CallEventKind::Ask { ask, method, .. } = event(&mut running).await.kind else {
        panic!("expected a question");
    };
    assert_eq!(method, Method::RootsList);
    let roots = RawJson::from_static(r#"{"roots":[]}"#);
    let answered = running.control.answer(ask, Outcome::Result(roots.clone()));
    assert!(answered.await);
    assert!(
        running
            .control
            .answer(ask, Outcome::Error(RpcError::internal("late")))
            .await
    );
    let CallOutcome::Result(result) = outcome(&mut running).await else {
        panic!("expected the answer");
    };
    assert_eq!(result, roots);
}

#[tokio::test]
async fn questions_of_one_call_are_told_apart() {
    let script = Script::new(|context| async move {
        let sample = context.ask(Method::CreateMessage, None);
        let roots = context.ask(Method::RootsList, None);
        let (sample, roots) = tokio::join!(sample, roots);
        let (Outcome::Result(sample), Outcome::Result(roots)) = (sample, roots) else {
            panic!("both are answered");
        };
        CallOutcome::Result(RawJson::of(&[sample, roots]))
    });
    let worker = script.worker(small()).await;
    let mut running = worker.start(call(), None).await.unwrap();
    let mut asks = Vec::new();
    for _ in 0..2 {
        let CallEventKind::Ask { ask, method, .. } = event(&mut running).await.kind else {
            panic!("expected a question");
        };
        asks.push((ask, method));
    }
    for (ask, method) in asks.into_iter().rev() {
        let answer = RawJson::of(method.as_str());
        assert!(running.control.answer(ask, Outcome::Result(answer)).await);
    }
    let CallOutcome::Result(result) = outcome(&mut running).await else {
        panic!("expected the answers");
    };
    assert_eq!(
        result.as_str(),
        r#"["sampling/createMessage","roots/list"]"#
    );
}

#[tokio::test]
async fn undeclared_capability_is_refused_without_asking() {
    let script = Script::new(|context| async move { ask_roots(&context).await });
    let worker = script.worker(small()).await;
    let known = call();
    let caller = Arc::new(Caller {
        capabilities: RawJson::from_static(r#"{"sampling":{}}"#),
        ..Caller::clone(&known.caller)
    });
    let mut running = worker.start(Call { caller, ..known }, None).await.unwrap();
    let CallEventKind::Finished(CallOutcome::Error(error)) = event(&mut running).await.kind else {
        panic!("expected the refusal, and no question");
    };
    assert_eq!(error.code, code::MISSING_CLIENT_CAPABILITY);
}

#[tokio::test]
async fn answered_question_is_not_put_again() {
    let script = Script::new(|context| async move {
        ask_roots(&context).await;
        ask_roots(&context).await
    });
    let worker = script.worker(small()).await;
    let call = call();
    let id = call.id;
    let mut running = worker.start(call, None).await.unwrap();
    let CallEventKind::Ask { ask: first, .. } = event(&mut running).await.kind else {
        panic!("expected a question");
    };
    running
        .control
        .answer(first, Outcome::Result(RawJson::from_static("{}")))
        .await;
    event(&mut running).await;

    let mut again = worker.attach(Attach::new(id, 0)).await.unwrap();
    let open = event(&mut again).await;
    let CallEventKind::Ask { ask: second, .. } = open.kind else {
        panic!("expected the open question");
    };
    assert_eq!(open.sequence, 2);
    assert_ne!(first, second);
    // A repeated answer is acknowledged again, because the first acknowledgement may be lost.
    assert!(
        again
            .control
            .answer(first, Outcome::Result(RawJson::from_static("{}")))
            .await
    );
    assert!(
        again
            .control
            .answer(second, Outcome::Result(RawJson::from_static("{}")))
            .await
    );
    outcome(&mut again).await;
}

#[tokio::test]
async fn call_that_ends_closes_its_questions() {
    let script = Script::new(|context| async move { ask_roots(&context).await });
    let worker = script.worker(small()).await;
    let mut running = worker.start(call(), None).await.unwrap();
    let CallEventKind::Ask { ask, .. } = event(&mut running).await.kind else {
        panic!("expected a question");
    };
    running.control.cancel("enough");
    outcome(&mut running).await;
    assert!(
        !running
            .control
            .answer(ask, Outcome::Result(RawJson::from_static("{}")))
            .await
    );
    until(|| worker.load().running == 0).await;
}

#[tokio::test]
async fn log_messages_pass_from_the_wanted_level_on() {
    let script = Script::new(|context| async move {
        for level in ["debug", "warning", "nonsense", "error"] {
            let params = RawJson::of(&serde_json::json!({ "level": level, "data": 1 }));
            context.notify(Method::LogMessage, Some(params)).await;
        }
        context.notify(Method::LogMessage, None).await;
        done()
    });
    let worker = script.worker(small()).await;
    let mut running = worker.start(call(), None).await.unwrap();
    for wanted in ["warning", "error"] {
        let CallEventKind::Notification { params, .. } = event(&mut running).await.kind else {
            panic!("expected a log message");
        };
        assert!(params.unwrap().as_str().contains(wanted));
    }
    assert!(matches!(
        event(&mut running).await.kind,
        CallEventKind::Finished(_)
    ));

    let log = LogFilter::Off;
    until(|| worker.load().running == 0 && worker.load().queued == 0).await;
    let mut running = worker.start(Call { log, ..call() }, None).await.unwrap();
    assert!(matches!(
        event(&mut running).await.kind,
        CallEventKind::Finished(_)
    ));
}

#[tokio::test]
async fn stream_is_closed_on_request() {
    let script = Script::new(|context| async move {
        context.close_stream(Duration::from_millis(200)).await;
        done()
    });
    let worker = script.worker(small()).await;
    let mut running = worker.start(call(), None).await.unwrap();
    let CallEventKind::CloseStream { retry } = event(&mut running).await.kind else {
        panic!("expected the request");
    };
    assert_eq!(retry, Duration::from_millis(200));
}

#[tokio::test]
async fn context_that_outlives_its_call_reaches_nobody() {
    let (kept, mut contexts) = tokio::sync::mpsc::unbounded_channel();
    let script = Script::new(move |context| {
        kept.send(context).expect("the test listens");
        async { done() }
    });
    let worker = script.worker(small()).await;
    let call = call();
    let id = call.id;
    outcome(&mut worker.start(call, None).await.unwrap()).await;
    let context = contexts.recv().await.unwrap();
    context.notify(Method::Progress, None).await;
    assert!(matches!(
        context.ask(Method::RootsList, None).await,
        Outcome::Error(_)
    ));
    let mut running = worker.attach(Attach::new(id, 0)).await.unwrap();
    assert!(matches!(
        event(&mut running).await.kind,
        CallEventKind::Finished(_)
    ));
    assert!(running.events.next().await.is_none());
}
