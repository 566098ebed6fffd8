use std::time::Duration;

use serde_json::json;
use shoal_ports::{Binding, CallFailure, Dispatcher as _, LedgerNumber, WorkerId};

use crate::fake_worker::FakeWorker;
use crate::setting::{CallExt as _, legacy, setting, tools};

fn worker(id: &str) -> FakeWorker {
    FakeWorker::new(id, "a", tools(&["t"]))
}

fn not_executed(reason: &str) -> CallFailure {
    CallFailure::NotExecuted {
        reason: reason.into(),
    }
}

#[tokio::test]
async fn a_bound_call_runs_on_its_worker_only() {
    let setting = setting();
    let workers = ["w1", "w2", "w3"].map(|id| setting.add(worker(id)));
    workers[1].load.lock().queued = 1000;
    for _ in 0..5 {
        setting.result(legacy("t", json!({})).at("w2")).await;
    }
    assert_eq!(workers.map(|worker| worker.calls()), [0, 5, 0]);
}

#[tokio::test]
async fn a_bound_call_is_refused_in_its_workers_own_words() {
    let setting = setting();
    let overloaded = CallFailure::Overloaded {
        reason: "the queue is full".into(),
        retry_after: Duration::from_secs(7),
    };
    let bound = setting.add(worker("w1").refusing(overloaded.clone()));
    let other = setting.add(worker("w2"));
    let call = || legacy("t", json!({})).at("w1");
    assert_eq!(setting.failure(call()).await, overloaded);
    bound.announce(None, Some("shutting down"));
    setting
        .until(|d| d.status().pools[0].workers[1].id == "w1")
        .await;
    bound.refuse(not_executed("the worker is shutting down"));
    let refused = setting.failure(call()).await;
    assert_eq!(refused, not_executed("the worker is shutting down"));
    let shed = worker("w3").on_call(|_, mut script| async move {
        let shed = not_executed("it waited too long");
        script.outcome(shoal_ports::CallOutcome::Failed(shed)).await;
    });
    setting.add(shed);
    let refused = setting.failure(legacy("t", json!({})).at("w3")).await;
    assert_eq!(refused, not_executed("it waited too long"));
    assert_eq!(other.calls(), 0);
}

#[tokio::test]
async fn a_call_whose_worker_is_not_there_is_not_executed() {
    let setting = setting();
    let other = setting.add(worker("w2"));
    let refused = setting.failure(legacy("t", json!({})).at("w1")).await;
    let reason = "its worker w1 is not connected".to_owned();
    assert_eq!(refused, CallFailure::WorkerAway { reason });
    assert_eq!(other.calls(), 0);
}

#[tokio::test]
async fn a_call_is_planned_anew_for_a_worker_that_was_not_tried() {
    let setting = setting();
    for id in ["w1", "w2"] {
        setting.add(worker(id));
    }
    let plan = setting.plan(legacy("t", json!({}))).await;
    let first = plan.worker.clone().unwrap().worker;
    let again = |tried: &[&WorkerId]| {
        let tried: Vec<_> = tried.iter().map(|id| (*id).clone()).collect();
        setting.dispatch.replan(&plan, &tried)
    };
    let second = again(&[&first]).unwrap().worker;
    assert_ne!(second, first);
    assert_eq!(again(&[&first, &second]), None);
}

#[tokio::test]
async fn attempts_to_plan_anew_are_bounded() {
    let setting = setting();
    for n in 0..6 {
        setting.add(worker(&format!("w{n}")));
    }
    let plan = setting.plan(legacy("t", json!({}))).await;
    let mut tried = vec![plan.worker.clone().unwrap().worker];
    while let Some(binding) = setting.dispatch.replan(&plan, &tried) {
        assert!(!tried.contains(&binding.worker));
        tried.push(binding.worker);
    }
    assert_eq!(tried.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_binding_keeps_the_number_that_was_known_when_it_was_made() {
    let number = |number| {
        Some(LedgerNumber {
            incarnation: 9,
            number,
        })
    };
    let setting = setting();
    let worker = setting.add(worker("w1"));
    *worker.ledger.lock() = number(4);
    let mut plan = setting.plan(legacy("t", json!({}))).await;
    plan.bind();
    let expected = Binding {
        worker: WorkerId::new("w1"),
        ledger: number(4),
    };
    assert_eq!(plan.call.binding, Some(expected));
    // A call that is bound to another worker keeps its ledger number.
    for ledger in [number(2), None] {
        let mut call = legacy("t", json!({})).at("w1");
        call.rebind(ledger);
        setting.result(call).await;
        assert_eq!(*worker.ledgers.lock().last().unwrap(), ledger);
    }
    setting.result(legacy("t", json!({}))).await;
    assert_eq!(*worker.ledgers.lock().last().unwrap(), number(4));
    worker.lose();
    worker.connect(false);
    let away = worker.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        *away.ledger.lock() = number(5);
        away.connect(true);
    });
    let mut call = legacy("t", json!({})).at("w1");
    call.rebind(number(3));
    setting.result(call).await;
    assert_eq!(worker.ledgers.lock()[3..], [number(3), number(3)]);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_full_worker_binds_anew() {
    let setting = setting();
    let full = CallFailure::Overloaded {
        reason: "full".into(),
        retry_after: Duration::from_secs(1),
    };
    let worker = setting.add(worker("w1").refusing(full));
    let number = |number| {
        Some(LedgerNumber {
            incarnation: 9,
            number,
        })
    };
    *worker.ledger.lock() = number(7);
    let mut call = legacy("t", json!({})).at("w1");
    call.rebind(number(3));
    setting.dispatch.resume(call, 0).await.unwrap();
    assert_eq!(*worker.ledgers.lock(), [number(3), number(7)]);
}
