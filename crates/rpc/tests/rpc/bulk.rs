//! Long texts and slow readers delay only themselves.

use std::sync::Arc;

use shoal_ports::{CallOutcome, RunningCall};
use shoal_rpc::LinkConfig;

use crate::probe::{journaled, long, next, repeatable, rest};
use crate::scripted_worker::ScriptedWorker;
use crate::setting::{Pair, config, until, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_texts_arrive_whole_in_both_directions() {
    within(async {
        let pair = Pair::new(ScriptedWorker::echoing("w")).await;
        for bytes in [0, 1, 32 << 10, 65_000, 66_000, 1 << 20, 8 << 20] {
            let mut call = journaled();
            call.params = Some(long(bytes));
            let mut running = pair.remote.start(call, None).await.unwrap();
            let event = running.events.next().await.unwrap();
            let result = match event.kind {
                shoal_ports::CallEventKind::Finished(CallOutcome::Result(result)) => result,
                other => panic!("{other:?}"),
            };
            assert!(result == long(bytes), "{bytes} bytes");
        }
    })
    .await;
}

#[tokio::test]
async fn small_calls_pass_by_long_ones() {
    within(async {
        let pair = Arc::new(Pair::new(ScriptedWorker::echoing("w")).await);
        let mut long_calls = Vec::new();
        for _ in 0..12 {
            let pair = Arc::clone(&pair);
            long_calls.push(tokio::spawn(async move {
                let mut call = journaled();
                call.params = Some(long(4 << 20));
                let mut running = pair.remote.start(call, None).await.unwrap();
                rest(&mut running).await.len()
            }));
        }
        tokio::task::yield_now().await;
        let mut running = pair.remote.start(repeatable(), None).await.unwrap();
        assert_eq!(rest(&mut running).await.len(), 1);
        let passed = long_calls.iter().filter(|call| !call.is_finished()).count();
        assert_eq!(
            passed,
            12,
            "the small call waited for {} long ones",
            12 - passed
        );
        for call in long_calls {
            assert_eq!(call.await.unwrap(), 1);
        }
    })
    .await;
}

#[tokio::test]
async fn a_reader_that_does_not_read_stalls_only_itself() {
    within(async {
        let tight = LinkConfig {
            credit: 16 * 1024,
            ..config()
        };
        let worker = ScriptedWorker::running("w");
        let pair = Pair::configured(worker, tight, config()).await;
        let (mut slow, slow_record) = started(&pair).await;
        for _ in 0..200 {
            slow_record.notify(long(1000));
        }
        slow_record.result(1);
        until(|| slow_record.last_read() >= 10).await;
        let (mut quick, record) = started(&pair).await;
        for number in 0..500 {
            record.progress(number);
        }
        record.result(2);
        assert_eq!(rest(&mut quick).await.len(), 501);
        assert!(slow_record.last_read() < 20, "{}", slow_record.last_read());
        let events = rest(&mut slow).await;
        let numbers: Vec<u64> = events.iter().map(|(sequence, _)| *sequence).collect();
        assert_eq!(numbers, (1..=201).collect::<Vec<_>>());
    })
    .await;
}

#[tokio::test]
async fn an_event_longer_than_the_credit_gets_through() {
    within(async {
        let tight = LinkConfig {
            credit: 1000,
            ..config()
        };
        let worker = ScriptedWorker::running("w");
        let pair = Pair::configured(worker, tight, config()).await;
        let (mut running, record) = started(&pair).await;
        for _ in 0..3 {
            record.notify(long(300_000));
        }
        record.result(1);
        for sequence in 1..=3 {
            let (number, text) = next(&mut running).await.unwrap();
            assert_eq!((number, text.len()), (sequence, 300_002));
        }
        assert_eq!(next(&mut running).await, Some((4, "result 1".to_owned())));
    })
    .await;
}

#[tokio::test]
async fn a_link_that_is_backed_up_refuses_calls() {
    within(async {
        let narrow = LinkConfig {
            max_queued: 1 << 20,
            ..config()
        };
        let worker = ScriptedWorker::echoing("w");
        let pair = Arc::new(Pair::configured(worker, narrow, config()).await);
        pair.proxy.freeze();
        let mut waiting = Vec::new();
        let refused = loop {
            let mut call = journaled();
            call.params = Some(long(500_000));
            let pair = Arc::clone(&pair);
            let start = tokio::spawn(async move { pair.remote.start(call, None).await });
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            if start.is_finished() {
                break start.await.unwrap().err();
            }
            waiting.push(start);
        };
        assert!(
            matches!(refused, Some(shoal_ports::CallFailure::Overloaded { .. })),
            "{refused:?}"
        );
        pair.proxy.thaw();
        for start in waiting {
            rest(&mut start.await.unwrap().unwrap()).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_calls_at_once_are_kept_apart() {
    within(async {
        let pair = Arc::new(Pair::new(ScriptedWorker::echoing("w")).await);
        let calls: Vec<_> = (0..2000)
            .map(|number: usize| {
                let pair = Arc::clone(&pair);
                tokio::spawn(async move {
                    let mut call = repeatable();
                    let text = if number.is_multiple_of(100) {
                        200_000
                    } else {
                        number
                    };
                    call.params = Some(long(text));
                    let mut running = pair.remote.start(call, None).await.unwrap();
                    let (_, result) = next(&mut running).await.unwrap();
                    assert_eq!(result.len(), "result ".len() + text + 2);
                })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
    })
    .await;
}

async fn started(pair: &Pair) -> (RunningCall, Arc<crate::record::Record>) {
    let call = journaled();
    let id = call.id;
    let running = pair.remote.start(call, None).await.unwrap();
    (running, pair.worker.call(id).await)
}
