use shoal_ports::{Attach, Binding, CallFailure, Period};
use shoal_rpc::{JoiningWorker, LinkConfig, WorkerJoin};

use crate::probe::{Following, journaled, next, rest};
use crate::scripted_worker::ScriptedWorker;
use crate::setting::{Pair, config, until, within};

fn impatient() -> LinkConfig {
    let mut config = config();
    config.cluster.rejoin = Period::millis(50);
    config
}

#[tokio::test]
async fn a_worker_that_stays_away_is_given_up() {
    within(async {
        let worker = ScriptedWorker::running("w");
        let pair = Pair::configured(worker, impatient(), config()).await;
        let mut running = pair.remote.start(journaled(), None).await.unwrap();
        pair.proxy.block();
        assert_eq!(next(&mut running).await, None);
        let mut call = journaled();
        for bound in [None, Some(pair.worker.id.clone())] {
            let ledger = None;
            call.binding = bound.map(|worker| Binding { worker, ledger });
            let only_this = call.binding.is_some();
            let never_sent = pair.remote.start(call.clone(), None).await.err();
            match never_sent {
                Some(CallFailure::NotExecuted { .. }) if !only_this => {}
                Some(CallFailure::WorkerAway { .. }) if only_this => {}
                other => panic!("{other:?}"),
            }
        }
        let mut perhaps = pair.remote.start_again(call.clone(), None).await.unwrap();
        assert_eq!(next(&mut perhaps).await, None);
        pair.node.set.gone("w").await;
        let mut gone = pair.remote.attach(Attach::new(call.id, 0)).await.unwrap();
        assert_eq!(next(&mut gone).await, None);
        assert!(!gone.control.is_replaced());
        pair.proxy.unblock();
        let back = pair.node.set.worker("w").await;
        back.start(journaled(), None).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_can_be_reached_again_says_so() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        until(|| pair.remote.load().capacity > 0).await;
        let mut said = pair.remote.announcement();
        pair.proxy.block();
        pair.seen(false).await;
        said.borrow_and_update();
        pair.proxy.unblock();
        while pair.remote.load().capacity == 0 {
            said.changed().await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_has_started_anew_is_another_one() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let mut running = pair.remote.start(journaled(), None).await.unwrap();
        pair.join.stop();
        pair.connected(false).await;
        let anew = ScriptedWorker::running("w");
        let join = WorkerJoin::start(
            &JoiningWorker::new(anew.clone()),
            &pair.proxy.address(),
            config(),
        );
        assert_eq!(next(&mut running).await, None);
        assert!(anew.started.lock().is_empty());
        let call = journaled();
        let id = call.id;
        until(|| !pair.node.workers.connected().is_empty()).await;
        loop {
            let remote = pair.node.set.worker("w").await;
            if remote.start(call.clone(), None).await.is_ok() {
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
        let mut former = Following::start(&pair.remote, call).await;
        let record = pair.worker.call(id).await;
        record.progress(1);
        former.next().await.unwrap();
        pair.proxy.block();
        pair.seen(false).await;
        let remote = other.set.worker("w").await;
        let mut owner = remote.attach(Attach::new(id, 1)).await.unwrap();
        record.progress(2);
        assert_eq!(next(&mut owner).await, Some((2, "2".to_owned())));
        pair.proxy.unblock();
        assert!(former.next().await.is_none());
        assert!(former.running.control.is_replaced());
        former.running.control.cancel("not mine any more");
        record.result(3);
        assert_eq!(rest(&mut owner).await, [(3, "result 3".to_owned())]);
        assert_eq!(record.cancels(), 0);
        drop(join);
    })
    .await;
}

#[tokio::test]
async fn a_peer_that_is_stopped_is_noticed() {
    within(async {
        let mut quick = config();
        quick.cluster.silence = Period::millis(100);
        let worker = ScriptedWorker::running("w");
        let pair = Pair::configured(worker, quick.clone(), quick).await;
        let call = journaled();
        let id = call.id;
        let mut following = Following::start(&pair.remote, call).await;
        pair.proxy.freeze();
        pair.seen(false).await;
        assert_eq!(pair.remote.load().capacity, 0);
        assert!(following.running.events.next().await.is_none());
        pair.proxy.cut();
        pair.proxy.thaw();
        pair.worker.call(id).await.result(1);
        assert_eq!(following.next().await.unwrap().sequence, 1);
    })
    .await;
}
