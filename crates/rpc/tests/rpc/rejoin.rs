//! Links that break, and workers that come back or do not.

use std::time::Duration;

use shoal_ports::{AskId, CallFailure};
use shoal_protocol::{Outcome, RawJson};
use shoal_rpc::{JoiningWorker, LinkConfig, WorkerJoin};

use crate::scripted_worker::{Plan, ScriptedWorker};
use crate::setting::{Pair, config, journaled, next, repeatable, rest, until, within};

fn impatient() -> LinkConfig {
    LinkConfig {
        rejoin: Duration::from_millis(50),
        ..config()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_repeated_however_often_the_link_breaks() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let call = journaled();
        let id = call.id;
        let mut running = pair.remote.start(call).await.unwrap();
        let record = pair.worker.call(id).await;
        let script = async {
            for number in 0..2000 {
                record.progress(number);
                if number % 200 == 100 {
                    // In the middle of things.
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    pair.proxy.cut();
                }
                if number % 10 == 0 {
                    tokio::task::yield_now().await;
                }
            }
            record.result(1);
        };
        let (events, ()) = tokio::join!(rest(&mut running), script);
        let numbers: Vec<u64> = events.iter().map(|(sequence, _)| *sequence).collect();
        assert_eq!(numbers, (1..=2001).collect::<Vec<_>>());
        assert!((0..2000).all(|number| events[number].1 == number.to_string()));
        assert_eq!(pair.worker.starts(id), 1);
        assert!(pair.proxy.connections() > 1);
    })
    .await;
}

#[tokio::test]
async fn a_call_goes_on_where_it_was() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let call = journaled();
        let id = call.id;
        let mut running = pair.remote.start(call).await.unwrap();
        let record = pair.worker.call(id).await;
        record.progress(1);
        assert_eq!(next(&mut running).await, Some((1, "1".to_owned())));
        pair.proxy.block();
        pair.seen(false).await;
        assert_eq!(pair.remote.load().capacity, 0);
        record.progress(2);
        record.result(3);
        pair.proxy.unblock();
        let events = rest(&mut running).await;
        assert_eq!(events, [(2, "2".to_owned()), (3, "result 3".to_owned())]);
        assert_eq!(pair.worker.starts(id), 1);
    })
    .await;
}

#[tokio::test]
async fn a_start_without_a_reply_is_sent_again_and_runs_once() {
    within(async {
        let pair = Pair::new(ScriptedWorker::new("w", |_| Plan::Stall)).await;
        let accept_late = journaled();
        let id = accept_late.id;
        pair.proxy.freeze();
        let start = tokio::spawn({
            let remote = pair.remote.clone();
            async move { remote.start(accept_late).await }
        });
        // Sent, and lost with the connection.
        tokio::time::sleep(Duration::from_millis(20)).await;
        pair.proxy.block();
        pair.proxy.thaw();
        pair.seen(false).await;
        pair.worker.let_start.send_replace(true);
        pair.proxy.unblock();
        let mut running = start.await.unwrap().unwrap();
        pair.worker.call(id).await.result(5);
        assert_eq!(next(&mut running).await, Some((1, "result 5".to_owned())));
        assert_eq!(pair.worker.starts(id), 1);
    })
    .await;
}

#[tokio::test]
async fn a_start_that_stalls_through_a_break_is_begun_once() {
    within(async {
        let pair = Pair::new(ScriptedWorker::new("w", |_| Plan::Stall)).await;
        let call = journaled();
        let id = call.id;
        let start = tokio::spawn({
            let remote = pair.remote.clone();
            async move { remote.start(call).await }
        });
        until(|| pair.worker.starts(id) == 1).await;
        pair.proxy.block();
        pair.seen(false).await;
        pair.worker.let_start.send_replace(true);
        let record = pair.worker.call(id).await;
        pair.proxy.unblock();
        let mut running = start.await.unwrap().unwrap();
        record.result(5);
        assert_eq!(next(&mut running).await, Some((1, "result 5".to_owned())));
        assert_eq!(pair.worker.starts(id), 1);
    })
    .await;
}

#[tokio::test]
async fn a_call_that_may_be_repeated_and_said_nothing_ends_with_its_link() {
    within(async {
        let pair = Pair::new(ScriptedWorker::new("w", |call| {
            match call.params.as_ref().map(RawJson::as_str) {
                Some("1") => Plan::Stall,
                _ => Plan::Run,
            }
        }))
        .await;
        let mut accepted = pair.remote.start(repeatable()).await.unwrap();
        let mut stalled = repeatable();
        stalled.params = Some(RawJson::from_static("1"));
        let id = stalled.id;
        let pending = tokio::spawn({
            let remote = pair.remote.clone();
            async move { remote.start(stalled).await }
        });
        until(|| pair.worker.starts(id) == 1).await;
        let talked = repeatable();
        let talking = pair.worker.call(talked.id);
        let start = pair.remote.start(talked.clone());
        let (running, record) = tokio::join!(start, talking);
        let mut running = running.unwrap();
        record.progress(1);
        next(&mut running).await.unwrap();
        pair.proxy.block();
        assert_eq!(next(&mut accepted).await, None);
        let failure = pending.await.unwrap().err().unwrap();
        assert!(matches!(failure, CallFailure::OutcomeUnknown { .. }));
        // One that said something has been seen, and waits.
        pair.proxy.unblock();
        record.result(2);
        assert_eq!(rest(&mut running).await, [(2, "result 2".to_owned())]);
    })
    .await;
}

#[tokio::test]
async fn answers_and_cancels_are_sent_again_until_they_have_arrived() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let call = journaled();
        let id = call.id;
        let mut running = pair.remote.start(call).await.unwrap();
        let record = pair.worker.call(id).await;
        record.ask(1, RawJson::from_static("{}"));
        next(&mut running).await.unwrap();
        pair.proxy.freeze();
        let answer = Outcome::Result(RawJson::from_static("true"));
        let answered = running.control.answer(AskId(1), answer);
        running.control.cancel("enough");
        tokio::time::sleep(Duration::from_millis(20)).await;
        pair.proxy.cut();
        pair.proxy.thaw();
        assert!(answered.await);
        assert_eq!(record.cancelled().await, "enough");
        assert_eq!(record.answer().await.1, "true");
        assert_eq!(record.answers(), 1);
    })
    .await;
}

#[tokio::test]
async fn what_was_cancelled_and_dropped_while_the_worker_was_away_is_cancelled() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let call = journaled();
        let id = call.id;
        let running = pair.remote.start(call).await.unwrap();
        let record = pair.worker.call(id).await;
        pair.proxy.block();
        pair.seen(false).await;
        running.control.cancel("nobody waits");
        drop(running);
        pair.proxy.unblock();
        assert_eq!(record.cancelled().await, "nobody waits");
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_stays_away_is_given_up() {
    within(async {
        let worker = ScriptedWorker::running("w");
        let pair = Pair::configured(worker, impatient(), config()).await;
        let mut running = pair.remote.start(journaled()).await.unwrap();
        let mut waiting = journaled();
        waiting.worker = Some(pair.worker.id.clone());
        pair.proxy.block();
        pair.seen(false).await;
        // Any worker would do for the one, only this for the other.
        let elsewhere = pair.remote.start(journaled()).await.err();
        assert!(matches!(elsewhere, Some(CallFailure::NotExecuted { .. })));
        let never_sent = pair.remote.start(waiting).await.err();
        assert!(
            matches!(never_sent, Some(CallFailure::NotExecuted { .. })),
            "{never_sent:?}"
        );
        assert_eq!(next(&mut running).await, None);
        pair.node.set.gone("w").await;
        let gone = pair.remote.attach(journaled().id, 0).await.err();
        assert!(matches!(gone, Some(CallFailure::OutcomeUnknown { .. })));
        // It may come back as a new member all the same.
        pair.proxy.unblock();
        let back = pair.node.set.worker("w").await;
        back.start(journaled()).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn what_is_for_this_worker_only_waits_for_it() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let known = journaled();
        let first = pair.remote.start(known.clone()).await.unwrap();
        let record = pair.worker.call(known.id).await;
        pair.proxy.block();
        pair.seen(false).await;
        let mut bound = journaled();
        bound.worker = Some(pair.worker.id.clone());
        let id = bound.id;
        let (start, attach, ()) = tokio::join!(
            pair.remote.start(bound),
            pair.remote.attach(known.id, 0),
            async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                pair.proxy.unblock();
            }
        );
        pair.worker.call(id).await.result(1);
        record.result(2);
        assert_eq!(rest(&mut start.unwrap()).await.len(), 1);
        let (mut first, mut attached) = (first, attach.unwrap());
        // Both read the same call by the same link: whoever came later has it.
        assert_eq!(rest(&mut attached).await, [(1, "result 2".to_owned())]);
        drop(rest(&mut first).await);
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_has_started_anew_is_another_one() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let mut running = pair.remote.start(journaled()).await.unwrap();
        pair.join.stop();
        pair.connected(false).await;
        let anew = ScriptedWorker::running("w");
        let join = WorkerJoin::start(
            &JoiningWorker::new(anew.clone()),
            &pair.proxy.address(),
            config(),
        );
        // It has forgotten the call: waiting for it would be in vain, and starting it again wrong.
        assert_eq!(next(&mut running).await, None);
        assert!(anew.started.lock().is_empty());
        let call = journaled();
        let id = call.id;
        until(|| !pair.node.workers.connected().is_empty()).await;
        loop {
            let remote = pair.node.set.worker("w").await;
            if remote.start(call.clone()).await.is_ok() {
                break;
            }
        }
        assert_eq!(anew.starts(id), 1);
        drop(join);
    })
    .await;
}

#[tokio::test]
async fn a_reader_that_comes_back_does_not_take_the_call_from_who_has_it() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let other = crate::setting::Node::start(config()).await;
        let join = WorkerJoin::start(&pair.joining, &other.address.to_string(), config());
        let call = journaled();
        let id = call.id;
        let mut former = pair.remote.start(call).await.unwrap();
        let record = pair.worker.call(id).await;
        record.progress(1);
        next(&mut former).await.unwrap();
        pair.proxy.block();
        pair.seen(false).await;
        // The other node takes over while the first is cut off.
        let remote = other.set.worker("w").await;
        let mut owner = remote.attach(id, 1).await.unwrap();
        record.progress(2);
        assert_eq!(next(&mut owner).await, Some((2, "2".to_owned())));
        pair.proxy.unblock();
        assert_eq!(next(&mut former).await, None);
        assert!(former.control.is_replaced());
        former.control.cancel("not mine any more");
        record.result(3);
        assert_eq!(rest(&mut owner).await, [(3, "result 3".to_owned())]);
        drop(join);
    })
    .await;
}

#[tokio::test]
async fn a_peer_that_is_stopped_is_noticed() {
    within(async {
        let quick = LinkConfig {
            ping_after: Duration::from_millis(40),
            ping_timeout: Duration::from_millis(60),
            ..config()
        };
        let worker = ScriptedWorker::running("w");
        let pair = Pair::configured(worker, quick.clone(), quick).await;
        let call = journaled();
        let id = call.id;
        let mut running = pair.remote.start(call).await.unwrap();
        pair.proxy.freeze();
        pair.seen(false).await;
        assert_eq!(pair.remote.load().capacity, 0);
        pair.proxy.cut();
        pair.proxy.thaw();
        pair.worker.call(id).await.result(1);
        assert_eq!(rest(&mut running).await, [(1, "result 1".to_owned())]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_breaks_leaves_every_call_whole() {
    within(async {
        let tight = LinkConfig {
            credit: 8 * 1024,
            ..config()
        };
        let worker = ScriptedWorker::running("w");
        let pair = std::sync::Arc::new(Pair::configured(worker, tight.clone(), tight).await);
        let calls = (0..20).map(|seed| {
            let pair = std::sync::Arc::clone(&pair);
            tokio::spawn(async move { talk(&pair, seed).await })
        });
        let calls: Vec<_> = calls.collect();
        let storm = tokio::spawn({
            let proxy = pair.proxy.clone();
            async move {
                for wait in [
                    3, 1, 7, 2, 11, 5, 13, 1, 1, 4, 17, 2, 6, 3, 9, 8, 1, 12, 5, 2,
                ] {
                    tokio::time::sleep(Duration::from_millis(wait)).await;
                    proxy.cut();
                }
            }
        });
        for call in calls {
            call.await.unwrap();
        }
        storm.await.unwrap();
        assert!(pair.proxy.connections() > 3);
    })
    .await;
}

/// One call with notifications, questions and a long result, checked event by event.
async fn talk(pair: &Pair, seed: usize) {
    let mut call = journaled();
    call.worker = Some(pair.worker.id.clone());
    let id = call.id;
    let script = async {
        let record = pair.worker.call(id).await;
        for round in 0..30 {
            record.notify(crate::setting::long((seed * 37 + round * 411) % 3000));
            if round % 10 == 5 {
                record.ask(round as u64, RawJson::of(&round));
                until(|| record.answers() > round / 10).await;
            }
            tokio::time::sleep(Duration::from_millis((seed as u64 + round as u64) % 3)).await;
        }
        record.finish(shoal_ports::CallOutcome::Result(crate::setting::long(
            100_000,
        )));
    };
    let read = async {
        let mut running = pair.remote.start(call).await.unwrap();
        let mut expected = 1;
        while let Some(event) = running.events.next().await {
            assert_eq!(event.sequence, expected, "call {seed}");
            expected += 1;
            if let shoal_ports::CallEventKind::Ask { ask, .. } = event.kind {
                let answer = Outcome::Result(RawJson::of(&ask.0));
                assert!(running.control.answer(ask, answer).await, "call {seed}");
            }
        }
        assert_eq!(expected, 35, "call {seed}");
    };
    tokio::join!(script, read);
}
