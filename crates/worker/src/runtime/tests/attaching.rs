use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use shoal_ports::{
    Attach, Call, CallEventKind, CallFailure, CallId, CallOutcome, Caller, Epoch, MayStart, Period,
    SessionId, Worker,
};
use shoal_protocol::{Method, Outcome, RawJson};
use tokio::sync::Semaphore;

use super::script::{
    Script, call, done, event, is_done, outcome, progress, repeatable, small, until,
};
use crate::PoolConfig;

fn stepping(steps: usize) -> (Arc<Script>, Arc<Semaphore>) {
    let permits = Arc::new(Semaphore::new(0));
    let given = Arc::clone(&permits);
    let script = Script::new(move |context| {
        let given = Arc::clone(&given);
        async move {
            for step in 1..=steps {
                given.acquire().await.expect("open").forget();
                progress(&context, step).await;
            }
            done()
        }
    });
    (script, permits)
}

#[tokio::test]
async fn call_can_be_attached_to_while_it_runs_and_after() {
    let (script, permits) = stepping(3);
    let worker = script.worker(small()).await;
    let call = call();
    let id = call.id;
    let mut first = worker.start(call, None).await.unwrap();
    permits.add_permits(1);
    assert_eq!(event(&mut first).await.sequence, 1);

    let mut second = worker.attach(Attach::new(id, 1)).await.unwrap();
    assert!(
        first.events.next().await.is_none(),
        "the later reader takes over"
    );
    permits.add_permits(2);
    for sequence in [2, 3, 4] {
        assert_eq!(event(&mut second).await.sequence, sequence);
    }
    assert!(second.events.next().await.is_none());

    let mut third = worker.attach(Attach::new(id, 2)).await.unwrap();
    assert_eq!(event(&mut third).await.sequence, 3);
    assert!(is_done(&outcome(&mut third).await));
    assert_eq!(script.runs(), 1);
}

#[tokio::test]
async fn starting_a_known_call_attaches_to_it() {
    let script = Script::quick();
    let worker = script.worker(small()).await;
    let call = call();
    for _ in 0..3 {
        let mut running = worker.start(call.clone(), None).await.unwrap();
        assert_eq!(event(&mut running).await.sequence, 1);
    }
    assert_eq!(script.runs(), 1);
}

#[tokio::test]
async fn call_runs_on_when_nobody_listens() {
    let script = Script::new(|context| async move {
        for step in 0..1000 {
            progress(&context, step).await;
        }
        done()
    });
    let worker = script.worker(small()).await;
    let call = call();
    let id = call.id;
    drop(worker.start(call, None).await.unwrap());
    until(|| script.runs() == 1 && worker.load().running == 0).await;
    let mut running = worker.attach(Attach::new(id, 0)).await.unwrap();
    let oldest = event(&mut running).await.sequence;
    assert!(
        oldest > 500,
        "the oldest notifications are gone, yet {oldest} is there"
    );
    assert!(is_done(&outcome(&mut running).await));
}

#[tokio::test(start_paused = true)]
async fn slow_reader_is_let_go_and_may_come_back() {
    let script = Script::new(|context| async move {
        for step in 0..200 {
            progress(&context, step).await;
        }
        done()
    });
    let worker = script.worker(small()).await;
    let call = call();
    let id = call.id;
    let mut running = worker.start(call, None).await.unwrap();
    until(|| script.runs() == 1 && worker.load().running == 0).await;
    assert!(running.events.next().await.is_none());
    let mut again = worker.attach(Attach::new(id, 0)).await.unwrap();
    for sequence in 1..=201 {
        assert_eq!(event(&mut again).await.sequence, sequence);
    }
}

#[tokio::test]
async fn reader_that_keeps_up_misses_nothing() {
    let script = Script::new(|context| async move {
        for step in 0..2000 {
            progress(&context, step).await;
        }
        done()
    });
    let worker = script.worker(small()).await;
    let mut running = worker.start(call(), None).await.unwrap();
    for sequence in 1..=2001 {
        assert_eq!(event(&mut running).await.sequence, sequence);
    }
}

#[tokio::test]
async fn repeatable_call_is_forgotten_once_delivered_and_kept_until_then() {
    let script = Script::quick();
    let worker = script.worker(small()).await;

    let delivered = repeatable();
    let id = delivered.id;
    let mut running = worker.start(delivered, None).await.unwrap();
    outcome(&mut running).await;
    assert!(worker.attach(Attach::new(id, 0)).await.is_err());

    until(|| worker.load().running == 0 && worker.load().queued == 0).await;
    let unread = repeatable();
    let id = unread.id;
    let running = worker.start(unread, None).await.unwrap();
    until(|| script.runs() == 2 && worker.load().running == 0).await;
    drop(running);
    let mut running = worker.attach(Attach::new(id, 0)).await.unwrap();
    assert!(is_done(&outcome(&mut running).await));
}

#[tokio::test]
async fn call_that_is_safe_to_repeat_runs_again_where_it_was_lost_after_it_said_something() {
    let lost = Arc::new(AtomicBool::new(false));
    let script = Script::new(move |context| {
        let lost = Arc::clone(&lost);
        async move {
            progress(&context, 1).await;
            if lost.swap(true, Ordering::SeqCst) {
                return done();
            }
            CallOutcome::Failed(CallFailure::outcome_unknown("its process was killed"))
        }
    });
    let worker = script.worker(small()).await;
    let call = repeatable();
    let ended = outcome(&mut worker.start(call.clone(), None).await.unwrap()).await;
    let CallOutcome::Failed(CallFailure::OutcomeUnknown { .. }) = ended else {
        panic!("{ended:?}");
    };
    until(|| worker.load().running == 0).await;
    let ended = outcome(&mut worker.start(call, None).await.unwrap()).await;
    assert!(is_done(&ended), "{ended:?}");
    assert_eq!(script.runs(), 2);
}

#[tokio::test]
async fn call_that_must_not_run_twice_is_found_where_it_was_lost() {
    let script = Script::new(|context| async move {
        progress(&context, 1).await;
        CallOutcome::Failed(CallFailure::outcome_unknown("its process was killed"))
    });
    let worker = script.worker(small()).await;
    let call = call();
    for _ in 0..2 {
        let ended = outcome(&mut worker.start(call.clone(), None).await.unwrap()).await;
        assert!(matches!(
            ended,
            CallOutcome::Failed(CallFailure::OutcomeUnknown { .. })
        ));
    }
    assert_eq!(script.runs(), 1);
}

#[tokio::test]
async fn unknown_call_has_an_unknown_outcome() {
    let worker = Script::quick().worker(small()).await;
    let failure = worker
        .attach(Attach::new(CallId::generate(), 0))
        .await
        .err();
    assert!(matches!(failure, Some(CallFailure::OutcomeUnknown { .. })));
}

#[tokio::test(start_paused = true)]
async fn finished_call_is_forgotten_after_the_retention() {
    let config = PoolConfig {
        result_retention: Period::seconds(10),
        ..small()
    };
    let worker = Script::quick().worker(config).await;
    let call = call();
    let id = call.id;
    outcome(&mut worker.start(call, None).await.unwrap()).await;
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert!(worker.attach(Attach::new(id, 0)).await.is_ok());
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(worker.attach(Attach::new(id, 0)).await.is_err());
}

#[tokio::test]
async fn oldest_finished_calls_make_room() {
    for config in [
        PoolConfig {
            retained_results: 2,
            ..PoolConfig::new("by count")
        },
        PoolConfig {
            retained_bytes: 300,
            ..PoolConfig::new("by bytes")
        },
    ] {
        let worker = Script::quick().worker(config).await;
        let mut ids = Vec::new();
        for _ in 0..3 {
            let call = call();
            ids.push(call.id);
            outcome(&mut worker.start(call, None).await.unwrap()).await;
        }
        assert!(worker.attach(Attach::new(ids[0], 0)).await.is_err());
        assert!(worker.attach(Attach::new(ids[1], 0)).await.is_ok());
        let mut newest = worker.attach(Attach::new(ids[2], 0)).await.unwrap();
        assert!(matches!(
            event(&mut newest).await.kind,
            CallEventKind::Finished(_)
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn journaled_call_does_not_run_again_when_its_result_is_gone() {
    let script = Script::quick();
    let config = small();
    let retention = config.result_retention.get();
    let worker = script.worker(config).await;
    let call = call();
    outcome(&mut worker.start(call.clone(), None).await.unwrap()).await;
    tokio::time::sleep(retention + Duration::from_secs(2)).await;
    for refused in [
        worker.attach(Attach::new(call.id, 0)).await,
        worker.start(call.clone(), None).await,
    ] {
        let refused = refused.err();
        assert!(matches!(refused, Some(CallFailure::OutcomeUnknown { .. })));
    }
    assert_eq!(script.runs(), 1);
}

#[tokio::test]
async fn journaled_call_that_was_bound_to_an_earlier_process_is_not_run() {
    let script = Script::quick();
    let earlier = script.worker(small()).await.ledger();
    let worker = script.worker(small()).await;
    let refused = worker.start(call(), earlier).await.err();
    assert!(matches!(refused, Some(CallFailure::OutcomeUnknown { .. })));
    assert_eq!(script.runs(), 0);
    let repeatable = Call {
        repeat: shoal_ports::Repeat::Safe,
        id: CallId::from_bytes([0; 16]),
        ..call()
    };
    outcome(&mut worker.start(repeatable, earlier).await.unwrap()).await;
    assert_eq!(script.runs(), 1);
}

#[tokio::test]
async fn refusal_of_a_journaled_call_is_final_for_its_binding() {
    let script = Script::obedient();
    let worker = script.worker(small()).await;
    let mut busy = worker.start(call(), None).await.unwrap();
    until(|| script.runs() == 1).await;
    let (bound, ledger) = (call(), worker.ledger());
    let refused = worker.start(bound.clone(), ledger).await.err();
    assert!(matches!(refused, Some(CallFailure::Overloaded { .. })));
    busy.control.cancel("make room");
    outcome(&mut busy).await;
    until(|| worker.load().running == 0 && worker.load().queued == 0).await;
    // The refusal stays, because the sender may have bound the call to another worker since.
    assert_eq!(worker.start(bound.clone(), ledger).await.err(), refused);
    // A new binding under a later number is accepted.
    until(|| worker.ledger() != ledger).await;
    drop(worker.start(bound, worker.ledger()).await.unwrap());
    until(|| script.runs() == 2).await;
}

#[tokio::test]
async fn a_call_that_is_only_attached_to_is_never_run() {
    let script = Script::quick();
    let worker = script.worker(small()).await;
    let ledger = worker.ledger();
    let bound = call();
    let attach_only = Call {
        may_start: MayStart::No,
        ..bound.clone()
    };
    let cancelled = Some(CallFailure::Cancelled);
    assert_eq!(worker.start(attach_only, ledger).await.err(), cancelled);
    // A former owner's start may arrive after the next owner's.
    assert_eq!(worker.start(bound, ledger).await.err(), cancelled);
    assert_eq!(script.runs(), 0);
    let (known, ledger) = (call(), worker.ledger());
    let mut first = worker.start(known.clone(), ledger).await.unwrap();
    outcome(&mut first).await;
    let attached = Call {
        may_start: MayStart::No,
        ..known
    };
    let mut attached = worker.start(attached, ledger).await.unwrap();
    assert!(is_done(&outcome(&mut attached).await));
    assert_eq!(script.runs(), 1);
}

#[tokio::test]
async fn after_a_goodbye_calls_are_attached_to_and_none_starts() {
    let script = Script::quick();
    let worker = script.worker(small()).await;
    let ledger = worker.ledger();
    let (known, unknown, cancelled) = (call(), call(), call());
    outcome(&mut worker.start(known.clone(), ledger).await.unwrap()).await;
    let stopped = Call {
        may_start: MayStart::No,
        ..cancelled.clone()
    };
    worker.start(stopped, ledger).await.err();

    let mut again = worker.start_known(known, ledger).await.unwrap();
    assert!(is_done(&outcome(&mut again).await));
    let refused = worker.start_known(unknown.clone(), ledger).await.err();
    assert_eq!(refused, Some(CallFailure::worker_left()));
    // Another link of the worker may still take calls.
    assert_eq!(worker.start(unknown, ledger).await.err(), refused);
    let refused = worker.start_known(cancelled, ledger).await.err();
    assert_eq!(refused, Some(CallFailure::Cancelled));
    let refused = worker.start_known(repeatable(), None).await.err();
    assert_eq!(refused, Some(CallFailure::worker_left()));
    assert_eq!(script.runs(), 1);
}

#[tokio::test]
async fn no_clock_decides_whether_a_call_runs() {
    let script = Script::quick();
    let worker = script.worker(small()).await;
    // The clock of the node that made the id may be wrong in either direction.
    for seconds in [-3600_i64, -5, 5, 3600] {
        let call = Call {
            id: id_made(seconds),
            ..call()
        };
        let mut running = worker.start(call, worker.ledger()).await.expect("it runs");
        assert!(is_done(&outcome(&mut running).await));
        until(|| worker.load().running == 0 && worker.load().queued == 0).await;
    }
    assert_eq!(script.runs(), 4);
}

fn id_made(ahead: i64) -> CallId {
    let id = CallId::generate();
    let mut bytes = *id.as_bytes();
    let made = bytes[..6]
        .iter()
        .fold(0_u64, |made, byte| made << 8 | u64::from(*byte));
    let millis = made.saturating_add_signed(ahead * 1000);
    bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
    CallId::from_bytes(bytes)
}

#[tokio::test]
async fn control_of_a_reader_that_was_replaced_has_no_effect() {
    let script = Script::new(|context| async move {
        context.ask(Method::RootsList, None).await;
        context.cancelled().cancelled().await;
        done()
    });
    let worker = script.worker(small()).await;
    let call = call();
    let id = call.id;
    let mut first = worker.start(call, None).await.unwrap();
    let CallEventKind::Ask { ask, .. } = event(&mut first).await.kind else {
        panic!("expected a question");
    };
    assert!(!first.control.is_replaced());
    let mut second = worker.attach(Attach::new(id, 0)).await.unwrap();
    let roots = || Outcome::Result(RawJson::from_static(r#"{"roots":[]}"#));
    assert!(first.control.is_replaced() && !second.control.is_replaced());
    assert!(!first.control.answer(ask, roots()).await);
    first.control.cancel("its parking time is over");
    event(&mut second).await;
    // A reader that left still controls the call until the next reader attaches.
    let control = second.control.clone();
    drop(second);
    assert!(control.answer(ask, roots()).await);
    let mut third = worker.attach(Attach::new(id, 1)).await.unwrap();
    control.cancel("too late");
    third.control.cancel("enough");
    let ended = outcome(&mut third).await;
    assert!(matches!(ended, CallOutcome::Failed(CallFailure::Cancelled)));
}

#[tokio::test]
async fn a_reader_comes_back_under_its_name_unless_another_has_come() {
    let (script, permits) = stepping(3);
    let worker = script.worker(small()).await;
    let call = call();
    let id = call.id;
    let first = worker.start(call, None).await.unwrap();
    let name = first.control.reader().unwrap();
    drop(first.events);
    let mut again = worker
        .attach(Attach {
            reader: Some(name),
            ..Attach::new(id, 0)
        })
        .await
        .unwrap();
    assert_eq!(again.control.reader(), Some(name));
    assert!(first.control.is_replaced(), "what is late has no effect");
    permits.add_permits(1);
    assert_eq!(event(&mut again).await.sequence, 1);
    let mut other = worker.attach(Attach::new(id, 1)).await.unwrap();
    let mut late = worker
        .attach(Attach {
            reader: Some(name),
            ..Attach::new(id, 1)
        })
        .await
        .unwrap();
    assert!(late.events.next().await.is_none());
    assert!(late.control.is_replaced() && !other.control.is_replaced());
    late.control.cancel("too late");
    drop(late);
    permits.add_permits(2);
    assert!(is_done(&outcome(&mut other).await));
    let unknown = worker
        .attach(Attach {
            reader: Some(1),
            ..Attach::new(CallId::generate(), 0)
        })
        .await
        .err();
    assert!(matches!(unknown, Some(CallFailure::OutcomeUnknown { .. })));
}

#[tokio::test(start_paused = true)]
async fn what_is_said_while_a_reader_is_away_waits_for_it() {
    let script = Script::new(|context| async move {
        for step in 0..1000 {
            progress(&context, step).await;
        }
        done()
    });
    let worker = script.worker(small()).await;
    let call = call();
    let id = call.id;
    let first = worker.start(call, None).await.unwrap();
    let name = first.control.reader().unwrap();
    drop(first);
    until(|| script.runs() == 1).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut again = worker
        .attach(Attach {
            reader: Some(name),
            ..Attach::new(id, 0)
        })
        .await
        .unwrap();
    for sequence in 1..=1001 {
        assert_eq!(event(&mut again).await.sequence, sequence);
    }
}

const DESERTED: Duration = Duration::from_secs(10);

#[tokio::test(start_paused = true)]
async fn a_call_without_a_session_ends_when_its_reader_does_not_come_back() {
    let script = Script::obedient();
    let worker = script.worker(small()).await;
    let call = call();
    let id = call.id;
    let running = worker.start(call, None).await.unwrap();
    tokio::time::sleep(DESERTED).await;
    drop(running);
    tokio::time::sleep(DESERTED / 2).await;
    let again = worker.attach(Attach::new(id, 0)).await.unwrap();
    tokio::time::sleep(2 * DESERTED).await;
    assert_eq!(worker.load().running, 1, "somebody reads it");
    drop(again);
    tokio::time::sleep(2 * DESERTED).await;
    assert_eq!(worker.load().running, 0);
    let mut told = worker.attach(Attach::new(id, 0)).await.unwrap();
    let told = outcome(&mut told).await;
    assert!(
        matches!(told, CallOutcome::Failed(CallFailure::Cancelled)),
        "{told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_session_waits_for_its_next_owner() {
    let worker = Script::obedient().worker(small()).await;
    let mut call = call();
    Arc::make_mut(&mut call.caller).session = Some(SessionId::new("session"));
    drop(worker.start(call, None).await.unwrap());
    tokio::time::sleep(3 * DESERTED).await;
    assert_eq!(worker.load().running, 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_owner_of_a_session_has_come_for_waits_for_the_next_one() {
    let worker = Script::obedient().worker(small()).await;
    let call = call();
    let id = call.id;
    let begun = worker.start(call, None).await.unwrap();
    let by_owner = |epoch| Attach {
        epoch: Some(Epoch(epoch)),
        ..Attach::new(id, 0)
    };
    let owner = worker.attach(by_owner(2)).await.unwrap();
    drop((begun, owner));
    tokio::time::sleep(3 * DESERTED).await;
    assert_eq!(worker.load().running, 1, "it has become a task");
    let superseded = Some(CallFailure::Superseded { epoch: Epoch(2) });
    assert_eq!(worker.attach(by_owner(1)).await.err(), superseded);
    let next = worker.attach(by_owner(3)).await.unwrap();
    assert!(!next.control.is_replaced());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_comes_again_does_not_take_a_call_from_the_task_that_it_has_become() {
    let worker = Script::obedient().worker(small()).await;
    let call = call();
    let id = call.id;
    let _begun = worker.start(call.clone(), None).await.unwrap();
    let again = worker.start(call.clone(), None).await.unwrap();
    assert!(!again.control.is_replaced(), "nobody has come for it yet");
    let by_owner = Attach {
        epoch: Some(Epoch(2)),
        ..Attach::new(id, 0)
    };
    let owner = worker.attach(by_owner).await.unwrap();
    let superseded = Some(CallFailure::Superseded { epoch: Epoch(2) });
    assert_eq!(worker.start(call, None).await.err(), superseded);
    assert_eq!(worker.attach(Attach::new(id, 0)).await.err(), superseded);
    assert!(!owner.control.is_replaced());
}

#[tokio::test]
async fn a_call_is_open_until_somebody_has_read_its_end_or_a_while_has_passed() {
    let long = Duration::from_secs(600);
    for (patience, session, open) in [(long, true, 1), (long, false, 1), (Duration::ZERO, true, 0)]
    {
        let (script, permits) = stepping(1);
        let config = PoolConfig {
            deserted_after: patience,
            ..small()
        };
        let worker = script.worker(config).await;
        let mut call = call();
        Arc::make_mut(&mut call.caller).session = session.then(|| SessionId::new("session"));
        let id = call.id;
        drop(worker.start(call, None).await.unwrap());
        until(|| worker.load().running == 1).await;
        permits.add_permits(1);
        until(|| worker.load().running == 0).await;
        assert_eq!(
            worker.open_calls(),
            open,
            "its session's next owner may come, or its reader come back"
        );
        let mut next = worker.attach(Attach::new(id, 1)).await.unwrap();
        assert!(is_done(&outcome(&mut next).await));
        assert_eq!(worker.open_calls(), 0);
    }
}

fn in_epoch(call: &Call, epoch: u64) -> Call {
    Call {
        epoch: Some(Epoch(epoch)),
        ..call.clone()
    }
}

#[tokio::test]
async fn a_former_owner_neither_starts_nor_takes_back_a_call() {
    let script = Script::obedient();
    let config = PoolConfig {
        queue: 1,
        ..small()
    };
    let worker = script.worker(config).await;
    let (call, ledger) = (call(), worker.ledger());
    let session = Some(SessionId::new("s"));
    let caller = Caller {
        session,
        ..(*call.caller).clone()
    };
    let call = Call {
        caller: Arc::new(caller),
        ..call
    };
    let _first = worker.start(in_epoch(&call, 1), ledger).await.unwrap();
    let next = Attach {
        epoch: Some(Epoch(2)),
        ..Attach::new(call.id, 0)
    };
    let mut next = worker.attach(next).await.unwrap();
    let superseded = Some(CallFailure::Superseded { epoch: Epoch(2) });
    let back = Attach {
        epoch: Some(Epoch(1)),
        ..Attach::new(call.id, 0)
    };
    assert_eq!(worker.attach(back).await.err(), superseded);
    let again = worker.start(in_epoch(&call, 1), ledger).await.err();
    assert_eq!(again, superseded);
    assert!(!next.control.is_replaced());
    // A former owner's refused start leaves nothing behind, so the next owner may still start that call.
    let other = Call {
        id: CallId::generate(),
        ..call.clone()
    };
    let late = worker.start(in_epoch(&other, 1), ledger).await.err();
    assert_eq!(late, superseded);
    assert!(worker.start(in_epoch(&other, 2), ledger).await.is_ok());
    next.control.cancel("enough");
    let ended = outcome(&mut next).await;
    assert!(matches!(ended, CallOutcome::Failed(CallFailure::Cancelled)));
}
