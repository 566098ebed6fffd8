//! Broken links end their flights, and calls continue over the next link.

use std::time::Duration;

use futures::FutureExt as _;
use shoal_ports::{AskId, Attach, CallFailure, Worker as _};
use shoal_protocol::{Outcome, RawJson};
use shoal_rpc::WorkerJoin;

use crate::probe::{Following, journaled, next, repeatable};
use crate::scripted_worker::{Plan, ScriptedWorker};
use crate::setting::{Pair, config, until, within};

#[tokio::test]
async fn a_call_goes_on_where_it_was() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let call = journaled();
        let id = call.id;
        let mut following = Following::start(&pair.remote, call).await;
        let record = pair.worker.call(id).await;
        record.progress(1);
        assert_eq!(following.next().await.unwrap().sequence, 1);
        record.progress(2);
        until(|| record.last_read() == 2).await;
        pair.proxy.block();
        pair.seen(false).await;
        assert_eq!(pair.remote.load().capacity, 0);
        record.progress(3);
        record.result(4);
        pair.proxy.unblock();
        for sequence in 2..=4 {
            assert_eq!(following.next().await.unwrap().sequence, sequence);
        }
        assert_eq!(pair.worker.starts(id), 1);
    })
    .await;
}

#[tokio::test]
async fn a_break_ends_every_call_on_the_link_at_once() {
    within(async {
        let pair = Pair::new(ScriptedWorker::new("w", |call| {
            match call.params.as_ref().map(RawJson::as_str) {
                Some("1") => Plan::Stall,
                _ => Plan::Run,
            }
        }))
        .await;
        let mut accepted = pair.remote.start(repeatable(), None).await.unwrap();
        assert!(accepted.control.reader().is_some());
        let mut stalled = journaled();
        stalled.params = Some(RawJson::from_static("1"));
        let id = stalled.id;
        let pending = tokio::spawn({
            let remote = pair.remote.clone();
            async move { remote.start(stalled, None).await }
        });
        until(|| pair.worker.starts(id) == 1).await;
        pair.proxy.block();
        assert_eq!(next(&mut accepted).await, None);
        let mut unheard = pending.await.unwrap().unwrap();
        assert_eq!(unheard.control.reader(), None);
        assert_eq!(next(&mut unheard).await, None);
        assert!(!unheard.control.is_replaced());
    })
    .await;
}

#[tokio::test]
async fn a_start_that_was_lost_with_its_link_is_sent_again() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let call = journaled();
        let id = call.id;
        pair.proxy.freeze();
        let remote = pair.remote.clone();
        let start = tokio::spawn(async move { Following::start(&remote, call).await });
        tokio::time::sleep(Duration::from_millis(20)).await;
        pair.proxy.block();
        pair.proxy.thaw();
        pair.seen(false).await;
        pair.proxy.unblock();
        let mut following = start.await.unwrap();
        let next = tokio::spawn(async move { following.next().await });
        pair.worker.call(id).await.result(5);
        assert_eq!(next.await.unwrap().unwrap().sequence, 1);
    })
    .await;
}

#[tokio::test]
async fn a_refusal_is_told() {
    within(async {
        let pair = Pair::new(ScriptedWorker::new("w", |_| Plan::StallAndRefuse)).await;
        let call = journaled();
        let id = call.id;
        let start = tokio::spawn({
            let remote = pair.remote.clone();
            async move { remote.start(call, None).await }
        });
        until(|| pair.worker.starts(id) == 1).await;
        pair.worker.let_start.send_replace(true);
        let refused = start.await.unwrap().err();
        assert!(
            matches!(refused, Some(CallFailure::NotExecuted { .. })),
            "{refused:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn the_fate_of_an_answer_that_was_lost_with_its_link_is_told_by_the_next() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let call = journaled();
        let id = call.id;
        let mut following = Following::start(&pair.remote, call).await;
        let record = pair.worker.call(id).await;
        record.ask(1, RawJson::from_static("{}"));
        following.next().await.unwrap();
        let yes = || Outcome::Result(RawJson::from_static("true"));
        pair.proxy.freeze();
        let mut lost = following.running.control.answer(AskId(1), yes());
        tokio::time::sleep(Duration::from_millis(20)).await;
        pair.proxy.cut();
        pair.proxy.thaw();
        assert!(following.running.events.next().await.is_none());
        assert_eq!((&mut lost).now_or_never(), None, "nobody knows");
        record.progress(1);
        following.next().await.unwrap();
        assert!(following.running.control.answer(AskId(1), yes()).await);
        assert_eq!(record.answer().await.1, "true");
        assert_eq!(record.answers(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_reaches_its_node_by_two_addresses_does_not_replace_its_own_reader() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let call = journaled();
        let id = call.id;
        let mut following = Following::start(&pair.remote, call).await;
        let record = pair.worker.call(id).await;
        record.progress(1);
        following.next().await.unwrap();
        for last in [2, 4] {
            pair.proxy.block();
            pair.seen(false).await;
            let other = WorkerJoin::start(&pair.joining, &pair.node.address.to_string(), config());
            pair.seen(true).await;
            record.progress(last);
            assert_eq!(following.next().await.unwrap().sequence, last as u64);
            other.stop();
            pair.seen(false).await;
            pair.proxy.unblock();
            pair.seen(true).await;
            record.progress(last + 1);
            assert!(following.next().await.is_some(), "replaced");
        }
        pair.proxy.block();
        pair.seen(false).await;
        let _other = pair.worker.attach(Attach::new(id, 5)).await.unwrap();
        pair.proxy.unblock();
        assert!(following.next().await.is_none());
        assert!(following.running.control.is_replaced());
    })
    .await;
}
