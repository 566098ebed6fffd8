//! Workers that stay away, come back as others, or stop answering.

use std::time::Duration;

use shoal_ports::CallFailure;
use shoal_rpc::{JoiningWorker, LinkConfig, WorkerJoin};

use crate::probe::{journaled, next, rest};
use crate::scripted_worker::ScriptedWorker;
use crate::setting::{Pair, config, until, within};

fn impatient() -> LinkConfig {
    LinkConfig {
        rejoin: Duration::from_millis(50),
        ..config()
    }
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
        let gone = pair.remote.attach(journaled().id, 0, None).await.err();
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
            pair.remote.attach(known.id, 0, None),
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
        let mut owner = remote.attach(id, 1, None).await.unwrap();
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
