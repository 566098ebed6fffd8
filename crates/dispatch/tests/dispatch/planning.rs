use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::Either;
use futures::poll;
use serde_json::json;
use shoal_dispatch::Config;
use shoal_ports::{
    Binding, CallFailure, CallOutcome, CallSettings, Dispatcher as _, Drawn, LedgerNumber,
    PoolCatalog, Principal, Repeat, SessionId, SessionRef, WorkerId,
};
use shoal_protocol::{Method, Request, RequestId};
use tokio::time::Instant;

use crate::fake_worker::FakeWorker;
use crate::setting::{
    CallExt as _, Setting, configured, finish, items, legacy, modern, result, setting, tools,
};

fn worker(id: &str) -> FakeWorker {
    FakeWorker::new(id, "a", tools(&["t"]))
}

fn strict(id: &str) -> FakeWorker {
    let catalog = PoolCatalog {
        tools: items(
            json!([{"name":"add","inputSchema":{"type":"object","properties":{"a":{"type":"number"}},
            "required":["a"]}}]),
        ),
        ..tools(&[])
    };
    FakeWorker::new(id, "a", catalog)
}

fn away() -> (Setting, std::sync::Arc<FakeWorker>) {
    let setting = setting();
    let worker = setting.add(worker("w1"));
    worker.connect(false);
    (setting, worker)
}

#[tokio::test]
async fn a_plan_names_tool_pool_worker_and_how_the_call_is_carried() {
    let setting = setting();
    let worker = setting.add(worker("w1"));
    let ledger = Some(LedgerNumber {
        incarnation: 3,
        number: 8,
    });
    *worker.ledger.lock() = ledger;
    let plan = setting.plan(legacy("t", json!({"x":1}))).await;
    let route = plan.route.as_ref().unwrap();
    assert_eq!((&*route.pool, route.tool.as_deref()), ("a", Some("t")));
    assert_eq!(plan.call.repeat, Repeat::Never);
    assert_eq!(plan.call.binding, None, "whoever journals it binds it");
    let binding = Binding {
        worker: WorkerId::new("w1"),
        ledger,
    };
    assert_eq!(plan.worker, Some(binding));
    assert_eq!((worker.calls(), setting.dispatch.in_flight()), (0, 0));
}

#[tokio::test]
async fn what_is_refused_is_refused_by_its_plan() {
    let setting = setting();
    let worker = setting.add(strict("w1"));
    for call in [legacy, modern] {
        for (call, said) in [
            (call("no", json!({})), "unknown tool: no"),
            (call("add", json!({"a":true})), "number"),
            (call("add", json!([1])), "must be an object"),
        ] {
            let Either::Left(planned) = setting.dispatch.plan(call) else {
                panic!("it waits for nothing");
            };
            let refused = planned.into_inner().expect_err("it is refused");
            assert!(format!("{refused:?}").contains(said), "{refused:?}");
        }
    }
    assert_eq!(worker.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_journaled_call_waits_for_its_worker_and_then_names_it() {
    let (setting, worker) = away();
    let mut planning = setting.dispatch.plan(legacy("t", json!({})));
    assert!(poll!(&mut planning).is_pending());
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(poll!(&mut planning).is_pending());
    worker.connect(true);
    let plan = planning.await.unwrap();
    assert_eq!(plan.worker.unwrap().worker, WorkerId::new("w1"));
    assert_eq!(worker.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn another_worker_that_joins_is_as_good() {
    let (setting, _) = away();
    let mut planning = setting.dispatch.plan(legacy("t", json!({})));
    assert!(poll!(&mut planning).is_pending());
    setting.add(FakeWorker::new("w2", "a", tools(&["t"])));
    let began = Instant::now();
    let plan = planning.await.unwrap();
    assert_eq!(plan.worker.unwrap().worker, WorkerId::new("w2"));
    assert_eq!(began.elapsed(), Duration::ZERO, "it is told");
}

#[tokio::test(start_paused = true)]
async fn a_worker_is_waited_for_with_bounded_patience() {
    let (setting, worker) = away();
    for (deadline, waited) in [(60, 5), (2, 2)] {
        let began = Instant::now();
        let mut call = legacy("t", json!({}));
        call.deadline = began + Duration::from_secs(deadline);
        let refused = setting.dispatch.plan(call).await.expect_err("nobody came");
        assert!(
            matches!(&refused, CallOutcome::Failed(CallFailure::NotExecuted { reason })
                if reason.contains("cannot be reached")),
            "{refused:?}"
        );
        assert_eq!(began.elapsed(), Duration::from_secs(waited));
    }
    assert_eq!(worker.calls(), 0);
}

#[tokio::test]
async fn whoever_journals_nothing_waits_for_nobody() {
    let mut catalog = tools(&["t"]);
    catalog.tools.extend(items(
        json!([{"name":"safe","annotations":{"readOnlyHint":true}}]),
    ));
    let setting = setting();
    let worker = setting.add(FakeWorker::new("w1", "a", catalog));
    worker.connect(false);
    for call in [
        legacy("safe", json!({})),
        modern("safe", json!({})),
        modern("t", json!({})),
    ] {
        let Either::Left(planned) = setting.dispatch.plan(call) else {
            panic!("it waits");
        };
        assert!(planned.into_inner().is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_can_be_dropped_at_every_await() {
    static ENDED: AtomicUsize = AtomicUsize::new(0);
    for polls in 0..30 {
        let (setting, worker) = away();
        let strict = setting.add(FakeWorker::new("w9", "b", tools(&["other"])));
        let mut planning = setting.dispatch.plan(legacy("t", json!({})));
        for _ in 0..polls {
            if poll!(&mut planning).is_ready() {
                ENDED.fetch_add(1, Ordering::Relaxed);
                break;
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        drop(planning);
        assert_eq!((worker.calls(), setting.dispatch.in_flight()), (0, 0));
        worker.connect(true);
        let plan = setting.plan(legacy("t", json!({}))).await;
        let (_, outcome) = finish(&mut setting.dispatch.start(&plan).await.unwrap()).await;
        result(outcome);
        assert_eq!((worker.calls(), strict.calls()), (1, 0));
    }
    assert!(ENDED.load(Ordering::Relaxed) > 0, "some came to their end");
}

#[tokio::test]
async fn a_worker_that_leaves_between_plan_and_start_is_replaced_by_a_new_plan() {
    let setting = setting();
    let (first, second) = (setting.add(worker("w1")), setting.add(worker("w2")));
    first.load.lock().queued = 0;
    second.load.lock().queued = 100;
    let mut plan = setting.plan(legacy("t", json!({}))).await;
    plan.bind();
    let bound = plan.call.binding.clone().unwrap().worker;
    assert_eq!(bound, WorkerId::new("w1"));
    assert!(setting.dispatch.remove_worker(&bound));
    let refused = setting.dispatch.start(&plan).await.err();
    assert!(
        matches!(&refused, Some(CallFailure::WorkerAway { .. })),
        "{refused:?}"
    );
    plan.worker = setting.dispatch.replan(&plan, &[bound]);
    plan.bind();
    let mut running = setting.dispatch.start(&plan).await.unwrap();
    result(finish(&mut running).await.1);
    assert_eq!((first.calls(), second.calls()), (0, 1));
}

fn request(tool: &str) -> Request {
    let asked = legacy(tool, json!({}));
    Request {
        id: RequestId::from_number(1),
        method: asked.method,
        params: asked.params,
    }
}

fn session() -> SessionRef {
    SessionRef::new(SessionId::random(), Principal::new("alice"))
}

fn numbered(worker: &FakeWorker) -> Option<LedgerNumber> {
    let ledger = Some(LedgerNumber {
        incarnation: 3,
        number: 8,
    });
    *worker.ledger.lock() = ledger;
    ledger
}

#[tokio::test]
async fn an_edge_draws_a_worker_only_for_what_runs_once() {
    let mut catalog = tools(&["t"]);
    catalog.tools.extend(items(
        json!([{"name":"safe","annotations":{"readOnlyHint":true}}]),
    ));
    let setting = setting();
    let first = setting.add(FakeWorker::new("w1", "a", catalog.clone()));
    let draw = |tool: &str, tried: &[WorkerId]| {
        let tried: Vec<_> = tried.to_vec();
        setting.dispatch.draw(&session(), &request(tool), &tried)
    };
    assert_eq!(draw("t", &[]), Drawn::Nothing, "it has no ledger");
    let ledger = numbered(&first);
    let bound = |id: &str| {
        Drawn::Bound(Binding {
            worker: WorkerId::new(id),
            ledger,
        })
    };
    assert_eq!(draw("t", &[]), bound("w1"));
    assert_eq!(draw("safe", &[]), Drawn::Repeatable);
    assert_eq!(draw("unknown", &[]), Drawn::Nothing);
    let tried = [WorkerId::new("w1")];
    assert_eq!(draw("t", &tried), Drawn::Nothing);
    let second = setting.add(FakeWorker::new("w2", "a", catalog));
    numbered(&second);
    assert_eq!(draw("t", &tried), bound("w2"));
    let list = Request {
        method: Method::ToolsList,
        ..request("t")
    };
    assert_eq!(
        setting.dispatch.draw(&session(), &list, &[]),
        Drawn::Repeatable
    );
    assert_eq!((first.calls(), second.calls()), (0, 0));
}

/// The rules decide about the pool that the catalog names, so the call must not run in another.
#[tokio::test]
async fn a_bound_call_runs_once_and_only_in_the_pool_of_its_worker() {
    let setting = setting();
    let safe = json!([{"name":"safe","annotations":{"readOnlyHint":true}}]);
    let catalog = PoolCatalog {
        tools: items(safe),
        ..tools(&[])
    };
    setting.add(FakeWorker::new("w1", "a", catalog));
    setting.add(FakeWorker::new("w2", "b", tools(&["other"])));
    let plan = setting.plan(legacy("safe", json!({})).at("w1")).await;
    assert_eq!(plan.call.repeat, Repeat::Never);
    assert_eq!(plan.call.binding.unwrap().worker, WorkerId::new("w1"));
    assert_eq!(plan.worker, None);
    for elsewhere in ["w2", "w3"] {
        let call = legacy("safe", json!({})).at(elsewhere);
        let refused = setting
            .dispatch
            .plan(call)
            .await
            .expect_err("it is refused");
        let away = matches!(refused, CallOutcome::Failed(CallFailure::WorkerAway { .. }));
        assert!(away, "{refused:?}");
    }
}

/// The session's owner takes the trial, and only if its plan allows the call.
#[tokio::test(start_paused = true)]
async fn a_drawn_worker_has_not_used_its_trial() {
    let config = Config {
        calls: CallSettings {
            circuit_failures: 1,
            ..CallSettings::default()
        },
        ..Config::default()
    };
    let reopens = config.calls.circuit_open_max.get();
    let setting = configured(config);
    let failing = worker("w1").refusing(CallFailure::NotExecuted {
        reason: "its server is broken".into(),
    });
    numbered(&setting.add(failing));
    setting.failure(legacy("t", json!({}))).await;
    let draw = || setting.dispatch.draw(&session(), &request("t"), &[]);
    assert_eq!(draw(), Drawn::Nothing, "the circuit is open");
    tokio::time::advance(reopens).await;
    for _ in 0..2 {
        assert!(matches!(draw(), Drawn::Bound(_)));
    }
    let plan = setting.plan(legacy("t", json!({})).at("w1")).await;
    let takes = || setting.dispatch.takes(&WorkerId::new("w1"), &plan);
    assert!(takes() && !takes(), "one call is the trial");
}
