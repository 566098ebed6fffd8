use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shoal_ports::{
    AskId, CallEventKind, CallFailure, CallOutcome, RunningCall, Worker, WorkerHere,
};
use shoal_protocol::{Method, Outcome, RawJson, code};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use super::script::{
    Script, call, call_of, done, event, is_done, outcome, repeatable, small, tool, until,
};
use crate::{CallContext, PoolConfig, WorkerRuntime};

async fn elicit(context: &CallContext) -> Outcome {
    let params = RawJson::from_static(r#"{"message":"?"}"#);
    context.ask(Method::Elicit, Some(params)).await
}

fn asking() -> Arc<Script> {
    Script::by_call(|call, context| async move {
        if tool(&call) == "ask"
            && let Outcome::Error(error) = elicit(&context).await
        {
            return CallOutcome::Error(error);
        }
        done()
    })
}

async fn asked(running: &mut RunningCall) -> AskId {
    match event(running).await.kind {
        CallEventKind::Ask { ask, .. } => ask,
        other => panic!("no question: {other:?}"),
    }
}

fn answer(running: &RunningCall, ask: AskId) {
    let answer = Outcome::Result(RawJson::from_static(r#"{"action":"accept"}"#));
    drop(running.control.answer(ask, answer));
}

fn load(worker: &WorkerRuntime) -> (usize, usize) {
    let load = worker.load();
    (load.running, load.queued)
}

#[tokio::test]
async fn what_the_tool_does_not_wait_for_is_taken_back() {
    let given_up = Arc::new(Notify::new());
    let script = {
        let given_up = Arc::clone(&given_up);
        Script::by_call(move |_, context| {
            let given_up = Arc::clone(&given_up);
            async move {
                tokio::select! {
                    answer = elicit(&context) => panic!("{answer:?}"),
                    () = given_up.notified() => done(),
                }
            }
        })
    };
    let worker = script.worker(small()).await;
    let mut running = worker.start(call_of("alice", "ask"), None).await.unwrap();
    let ask = asked(&mut running).await;
    given_up.notify_one();
    match event(&mut running).await.kind {
        CallEventKind::Withdrawn { ask: withdrawn } => assert_eq!(withdrawn, ask),
        other => panic!("{other:?}"),
    }
    assert!(is_done(&outcome(&mut running).await));
}

#[tokio::test]
async fn unanswered_questions_leave_the_pool_open() {
    let worker = asking().worker(small()).await;
    let mut waiting = Vec::new();
    for at in 0..20 {
        let call = call_of("alice", "ask");
        let mut running = match at % 2 {
            0 => worker.start(call, None).await.unwrap(),
            _ => worker.start_now(call, None).unwrap(),
        };
        let ask = asked(&mut running).await;
        until(|| load(&worker) == (0, 0)).await;
        assert_eq!(worker.open_calls(), at + 1, "they have not ended");
        waiting.push((running, ask));
    }
    let mut other = worker.start(call_of("bob", "quick"), None).await.unwrap();
    assert!(is_done(&outcome(&mut other).await));
    for (running, ask) in &mut waiting {
        answer(running, *ask);
        assert!(is_done(&outcome(running).await));
    }
    until(|| load(&worker) == (0, 0)).await;
    until(|| worker.open_calls() == 0).await;
}

#[tokio::test]
async fn questions_beyond_the_limits_are_refused_at_once() {
    let config = PoolConfig {
        concurrency: 4,
        asking: 3,
        asking_per_principal: 2,
        ..small()
    };
    let worker = asking().worker(config).await;
    let ask = async |principal: &str| {
        let mut running = worker.start(call_of(principal, "ask"), None).await.unwrap();
        match event(&mut running).await.kind {
            CallEventKind::Ask { ask, .. } => Ok((running, ask)),
            CallEventKind::Finished(CallOutcome::Error(error)) => Err(error),
            other => panic!("neither a question nor an end: {other:?}"),
        }
    };
    let mut first = ask("alice").await.unwrap();
    let _second = ask("alice").await.unwrap();
    let refused = ask("alice").await.err().unwrap();
    assert_eq!(refused.code, code::OVERLOADED);
    assert_eq!(
        refused.message,
        "the client was not asked: 2 calls of this principal in pool pool wait for answers; try again in 10 s"
    );
    let _third = ask("bob").await.unwrap();
    let refused = ask("carol").await.err().unwrap();
    assert!(
        refused.message.contains("3 calls of pool pool"),
        "{refused}"
    );
    answer(&first.0, first.1);
    assert!(is_done(&outcome(&mut first.0).await));
    assert!(ask("carol").await.is_ok());
}

#[tokio::test]
async fn a_call_that_goes_on_comes_before_those_that_have_not_begun() {
    let (permits, begun) = (
        Arc::new(Semaphore::new(0)),
        Arc::new(Mutex::new(Vec::new())),
    );
    let script = {
        let (permits, begun) = (Arc::clone(&permits), Arc::clone(&begun));
        Script::by_call(move |call, context| {
            let (permits, begun) = (Arc::clone(&permits), Arc::clone(&begun));
            async move {
                let name = tool(&call);
                begun.lock().push(name.clone());
                if name == "ask" {
                    elicit(&context).await;
                    begun.lock().push("goes on".to_owned());
                }
                permits.acquire().await.expect("open").forget();
                done()
            }
        })
    };
    let worker = script
        .worker(PoolConfig {
            queue: 8,
            ..small()
        })
        .await;
    let mut first = worker.start(call_of("alice", "ask"), None).await.unwrap();
    let ask = asked(&mut first).await;
    let mut others = Vec::new();
    for name in ["second", "third", "fourth"] {
        others.push(worker.start(call_of("alice", name), None).await.unwrap());
    }
    until(|| begun.lock().len() == 2).await;
    answer(&first, ask);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!((begun.lock().len(), load(&worker)), (2, (1, 2)));
    permits.add_permits(1);
    assert!(is_done(&outcome(&mut others[0]).await));
    until(|| begun.lock().len() == 3).await;
    assert_eq!(*begun.lock(), ["ask", "second", "goes on"]);
    permits.add_permits(3);
    for running in others[1..].iter_mut().chain([&mut first]) {
        assert!(is_done(&outcome(running).await));
    }
    until(|| load(&worker) == (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn what_ends_while_it_asks_leaves_nothing_behind() {
    let config = PoolConfig {
        asking: 1,
        asking_per_principal: 1,
        ..small()
    };
    let worker = asking().worker(config).await;
    for at in 0..4 {
        let mut call = call_of("alice", "ask");
        if at == 3 {
            call.deadline = Instant::now() + Duration::from_secs(1);
        }
        let mut running = worker.start(call, None).await.unwrap();
        asked(&mut running).await;
        if at < 3 {
            running.control.cancel("enough");
        }
        assert!(matches!(
            outcome(&mut running).await,
            CallOutcome::Failed(CallFailure::Cancelled | CallFailure::DeadlineExceeded { .. })
        ));
        until(|| load(&worker) == (0, 0)).await;
        // Lets the tool see its question's end, because only one call may ask at a time.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut last = worker.start(call_of("alice", "ask"), None).await.unwrap();
    let ask = asked(&mut last).await;
    answer(&last, ask);
    assert!(is_done(&outcome(&mut last).await));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_gives_its_question_up_goes_on_in_the_pool() {
    let script = Script::by_call(|_, context| async move {
        let patience = Duration::from_secs(1);
        assert!(
            tokio::time::timeout(patience, elicit(&context))
                .await
                .is_err()
        );
        let both = futures::join!(elicit(&context), elicit(&context));
        assert!(matches!(both, (Outcome::Result(_), Outcome::Result(_))));
        done()
    });
    let worker = script.worker(small()).await;
    let mut running = worker.start(repeatable(), None).await.unwrap();
    let given_up = asked(&mut running).await;
    let said = running.events.next().await.unwrap().kind;
    assert!(matches!(said, CallEventKind::Withdrawn { ask } if ask == given_up));
    for _ in 0..2 {
        let ask = asked(&mut running).await;
        answer(&running, ask);
    }
    assert!(is_done(&outcome(&mut running).await));
    until(|| load(&worker) == (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_shuts_down_waits_for_calls_that_ask() {
    for answers in [true, false] {
        let script = asking();
        let worker = script.worker(small()).await;
        let mut running = worker.start(call_of("alice", "ask"), None).await.unwrap();
        let ask = asked(&mut running).await;
        until(|| load(&worker) == (0, 0)).await;
        let ending = {
            let worker = Arc::clone(&worker);
            let deadline = Instant::now() + Duration::from_secs(30);
            tokio::spawn(async move { worker.shutdown(deadline).await })
        };
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(!ending.is_finished());
        if answers {
            answer(&running, ask);
            assert!(is_done(&outcome(&mut running).await));
        } else {
            assert!(matches!(
                outcome(&mut running).await,
                CallOutcome::Failed(CallFailure::OutcomeUnknown { .. })
            ));
        }
        ending.await.unwrap();
        assert!(worker.start(call(), None).await.is_err());
    }
}
