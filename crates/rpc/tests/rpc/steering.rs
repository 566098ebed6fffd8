use futures::FutureExt as _;
use shoal_ports::{AskId, Attach, Call, CallFailure, CallId, CallOutcome, Epoch, StateRequest};
use shoal_protocol::{Outcome, RawJson};

use crate::probe::{journaled, next, rest};
use crate::scripted_worker::{Plan, ScriptedWorker};
use crate::setting::{Pair, until, within};

#[tokio::test]
async fn answers_reach_the_tool_and_are_acknowledged() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let call = journaled();
        let id = call.id;
        let mut running = pair.remote.start(call, None).await.unwrap();
        let record = pair.worker.call(id).await;
        record.ask(9, RawJson::from_static(r#"{"message":"sure?"}"#));
        assert_eq!(
            next(&mut running).await.unwrap().1,
            r#"{"message":"sure?"}"#
        );
        assert!(running.control.answer(AskId(9), answer("true")).await);
        assert_eq!(record.answer().await, (AskId(9), "true".to_owned()));
        assert!(running.control.answer(AskId(9), answer("false")).await);
        assert!(!running.control.answer(AskId(10), answer("false")).await);
        assert_eq!(record.answers(), 1);
        record.ask(11, RawJson::from_static("{}"));
        next(&mut running).await.unwrap();
        drop(running.control.answer(AskId(11), answer("2")));
        until(|| record.answers() == 2).await;
        record.result(1);
        assert_eq!(next(&mut running).await.unwrap().1, "result 1");
    })
    .await;
}

#[tokio::test]
async fn a_call_asks_its_session_as_often_as_it_likes() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let call = journaled();
        let id = call.id;
        let mut running = pair.remote.start(call, None).await.unwrap();
        let record = pair.worker.call(id).await;
        for ask in 1..=600 {
            let key = format!("key {ask}");
            record.state(ask, StateRequest::Get { key });
            next(&mut running).await.unwrap();
            assert!(running.control.answer(AskId(ask), answer("{}")).await);
        }
        assert_eq!(record.answers(), 600);
    })
    .await;
}

#[tokio::test]
async fn a_cancelled_call_is_over_when_its_tool_has_stopped() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let call = journaled();
        let id = call.id;
        let mut running = pair.remote.start(call, None).await.unwrap();
        let record = pair.worker.call(id).await;
        record.works_on(true);
        running.control.cancel("changed my mind");
        record.cancelled().await;
        record.finish(CallOutcome::Failed(CallFailure::Cancelled));
        assert_eq!(rest(&mut running).await.len(), 1);
        let mut over = running.control.over().expect("its tool works on");
        let other = journaled();
        let other_id = other.id;
        let mut other = pair.remote.start(other, None).await.unwrap();
        pair.worker.call(other_id).await.result(1);
        assert_eq!(next(&mut other).await.unwrap().1, "result 1");
        assert!(other.control.over().is_none());
        assert_eq!((&mut over).now_or_never(), None);
        record.works_on(false);
        over.await;
        assert!(running.control.over().is_none());
    })
    .await;
}

#[tokio::test]
async fn a_cancelled_call_still_ends_in_its_own_way() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let call = journaled();
        let id = call.id;
        let mut running = pair.remote.start(call, None).await.unwrap();
        let record = pair.worker.call(id).await;
        running.control.cancel("changed my mind");
        assert_eq!(record.cancelled().await, "changed my mind");
        record.finish(CallOutcome::Failed(CallFailure::Cancelled));
        assert_eq!(rest(&mut running).await.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_call_can_be_steered_while_nobody_reads_it() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let call = journaled();
        let id = call.id;
        let running = pair.remote.start(call, None).await.unwrap();
        let record = pair.worker.call(id).await;
        drop(running.events);
        running.control.cancel("nobody waits");
        assert_eq!(record.cancelled().await, "nobody waits");
        drop(running.control);
        record.progress(1);
        record.result(2);
        let mut again = pair.remote.attach(Attach::new(id, 1)).await.unwrap();
        assert_eq!(rest(&mut again).await, [(2, "result 2".to_owned())]);
    })
    .await;
}

#[tokio::test]
async fn starting_a_known_call_attaches_to_it() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let call = journaled();
        let id = call.id;
        let mut first = pair.remote.start(call.clone(), None).await.unwrap();
        let record = pair.worker.call(id).await;
        record.progress(1);
        next(&mut first).await.unwrap();
        let mut second = pair.remote.start(call, None).await.unwrap();
        assert_eq!(next(&mut first).await, None);
        assert!(first.control.is_replaced() && !second.control.is_replaced());
        first.control.cancel("too late");
        record.ask(1, RawJson::from_static("{}"));
        assert!(!first.control.answer(AskId(1), answer("1")).await);
        record.result(2);
        assert_eq!(rest(&mut second).await.len(), 3);
        assert_eq!(record.answers(), 0);
    })
    .await;
}

#[tokio::test]
async fn attaching_to_an_unknown_call_is_refused() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let refused = pair
            .remote
            .attach(Attach::new(CallId::generate(), 3))
            .await
            .err();
        assert!(matches!(refused, Some(CallFailure::OutcomeUnknown { .. })));
    })
    .await;
}

#[tokio::test]
async fn a_reader_that_the_worker_lets_go_sees_no_end() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let call = journaled();
        let id = call.id;
        let mut running = pair.remote.start(call, None).await.unwrap();
        let record = pair.worker.call(id).await;
        record.progress(1);
        assert_eq!(next(&mut running).await, Some((1, "1".to_owned())));
        record.let_go();
        assert_eq!(next(&mut running).await, None);
        assert!(!running.control.is_replaced());
        assert_eq!(next(&mut running).await, None);
    })
    .await;
}

pub(crate) fn answer(text: &'static str) -> Outcome {
    Outcome::Result(RawJson::from_static(text))
}

#[tokio::test]
async fn the_sessions_epoch_goes_with_starts_and_attachments() {
    within(async {
        let worker = ScriptedWorker::new("w", |call| match call.epoch {
            Some(Epoch(epoch)) if epoch < 7 => {
                Plan::Refuse(CallFailure::Superseded { epoch: Epoch(7) })
            }
            _ => Plan::Run,
        });
        let pair = Pair::new(worker).await;
        let call = Call {
            epoch: Some(Epoch(7)),
            ..journaled()
        };
        let _running = pair.remote.start(call.clone(), None).await.unwrap();
        let attach = Attach {
            epoch: call.epoch,
            ..Attach::new(call.id, 0)
        };
        let _attached = pair.remote.attach(attach).await.unwrap();
        let silent = pair.remote.attach(Attach::new(call.id, 0)).await;
        drop(silent.unwrap());
        assert_eq!(*pair.worker.epochs.lock(), [Some(Epoch(7)), None]);
        let former = Call {
            epoch: Some(Epoch(6)),
            ..journaled()
        };
        let refused = pair.remote.start(former, None).await.err();
        assert_eq!(refused, Some(CallFailure::Superseded { epoch: Epoch(7) }));
    })
    .await;
}
