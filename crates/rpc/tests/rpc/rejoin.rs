//! Links that break, and workers that come back or do not.

use std::time::Duration;

use shoal_ports::{AskId, CallFailure, Worker as _};
use shoal_protocol::{Outcome, RawJson};
use shoal_rpc::WorkerJoin;

use crate::probe::{journaled, next, repeatable, rest};
use crate::scripted_worker::{Plan, ScriptedWorker};
use crate::setting::{Pair, config, until, within};

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
async fn a_refusal_while_the_link_is_broken_is_told_once() {
    within(async {
        let pair = Pair::new(ScriptedWorker::new("w", |_| Plan::StallAndRefuse)).await;
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
        tokio::time::sleep(Duration::from_millis(10)).await;
        pair.proxy.unblock();
        let refused = start.await.unwrap().err();
        assert!(
            matches!(refused, Some(CallFailure::NotExecuted { .. })),
            "{refused:?}"
        );
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
async fn a_worker_that_reaches_its_node_by_two_addresses_does_not_replace_its_own_reader() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let call = journaled();
        let id = call.id;
        let mut running = pair.remote.start(call).await.unwrap();
        let record = pair.worker.call(id).await;
        record.progress(1);
        next(&mut running).await.unwrap();
        for last in [2, 4] {
            // The link breaks, and while it is dialled again, another address leads to the same node.
            pair.proxy.block();
            pair.seen(false).await;
            let other = WorkerJoin::start(&pair.joining, &pair.node.address.to_string(), config());
            pair.seen(true).await;
            record.progress(last);
            assert_eq!(next(&mut running).await.unwrap().0, last as u64);
            other.stop();
            pair.seen(false).await;
            pair.proxy.unblock();
            pair.seen(true).await;
            record.progress(last + 1);
            let came = next(&mut running).await;
            assert!(
                came.is_some(),
                "replaced: {}",
                running.control.is_replaced()
            );
        }
        // Another node's reader is not disturbed.
        pair.proxy.block();
        pair.seen(false).await;
        let _other = pair.worker.attach(id, 5, None).await.unwrap();
        pair.proxy.unblock();
        assert_eq!(next(&mut running).await, None);
        assert!(running.control.is_replaced());
    })
    .await;
}
