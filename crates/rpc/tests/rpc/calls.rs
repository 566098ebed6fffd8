use std::time::Duration;

use shoal_ports::{AskId, CallFailure, CallOutcome};
use shoal_protocol::RpcError;

use crate::probe::{journaled, long, next, repeatable, rest};
use crate::scripted_worker::{Plan, ScriptedWorker};
use crate::setting::{Pair, until, within};
use crate::steering::answer;

#[tokio::test]
async fn a_call_that_ends_at_once_is_answered_with_its_result() {
    within(async {
        let pair = Pair::new(ScriptedWorker::echoing("w")).await;
        let call = repeatable();
        let mut running = pair.remote.start(call.clone(), None).await.unwrap();
        assert_eq!(running.worker.as_ref().unwrap().as_str(), "w");
        assert_eq!(
            rest(&mut running).await,
            [(1, r#"result {"name":"probe"}"#.to_owned())]
        );
        assert!(!running.control.answer(AskId(1), answer("1")).await);
        let arrived = pair.worker.started.lock()[0].clone();
        assert_eq!(arrived.id, call.id);
        assert_eq!(arrived.caller.principal, call.caller.principal);
        assert_eq!(arrived.repeat, call.repeat);
        assert!(arrived.deadline >= call.deadline - Duration::from_secs(1));
    })
    .await;
}

#[tokio::test]
async fn events_arrive_in_order_and_end_with_the_result() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let call = journaled();
        let id = call.id;
        let script = async {
            let record = pair.worker.call(id).await;
            (0..500).for_each(|number| record.progress(number));
            record.close_stream();
            record.result(7);
        };
        let (running, ()) = tokio::join!(pair.remote.start(call, None), script);
        let events = rest(&mut running.unwrap()).await;
        let numbers: Vec<u64> = events.iter().map(|(sequence, _)| *sequence).collect();
        assert_eq!(numbers, (1..=502).collect::<Vec<_>>());
        assert!((0..500).all(|number| events[number].1 == number.to_string()));
        assert_eq!(events[500].1, "close 1500");
        assert_eq!(events[501].1, "result 7");
    })
    .await;
}

#[tokio::test]
async fn a_silent_call_is_accepted_before_its_first_event() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let call = journaled();
        let id = call.id;
        let mut running = pair.remote.start(call, None).await.unwrap();
        pair.worker.call(id).await.result(1);
        assert_eq!(next(&mut running).await, Some((1, "result 1".to_owned())));
        assert_eq!(next(&mut running).await, None);
        assert_eq!(pair.worker.starts(id), 1);
    })
    .await;
}

#[tokio::test]
async fn every_end_of_a_call_arrives_as_it_is() {
    within(async {
        let ends = [
            CallOutcome::Error(RpcError::invalid_params("no such tool").with_data(long(3))),
            CallOutcome::Failed(CallFailure::Cancelled),
            CallOutcome::Failed(CallFailure::DeadlineExceeded {
                limit: Duration::from_millis(1500),
            }),
            CallOutcome::Failed(CallFailure::OutcomeUnknown {
                reason: "the process died".to_owned(),
            }),
        ];
        for end in ends {
            let said = format!("{end:?}");
            let pair = Pair::new(ScriptedWorker::new("w", move |_| Plan::End(end.clone()))).await;
            let mut running = pair.remote.start(journaled(), None).await.unwrap();
            let event = running.events.next().await.unwrap();
            assert!(format!("{event:?}").contains(&said), "{event:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn refusals_arrive_as_they_are() {
    within(async {
        let refusals = [
            CallFailure::NotExecuted {
                reason: "shutting down".to_owned(),
            },
            CallFailure::Overloaded {
                reason: "the queue is full".to_owned(),
                retry_after: Duration::from_millis(2500),
            },
            CallFailure::OutcomeUnknown {
                reason: "it may have run".to_owned(),
            },
        ];
        for refusal in refusals {
            let said = refusal.clone();
            let pair = Pair::new(ScriptedWorker::new("w", move |_| {
                Plan::Refuse(said.clone())
            }))
            .await;
            let refused = pair.remote.start(journaled(), None).await;
            assert_eq!(refused.err(), Some(refusal));
        }
    })
    .await;
}

#[tokio::test]
async fn a_slow_start_may_still_be_refused() {
    within(async {
        let pair = Pair::new(ScriptedWorker::new("w", |_| Plan::StallAndRefuse)).await;
        let call = journaled();
        let id = call.id;
        let start = pair.remote.start(call, None);
        let let_go = async {
            until(|| pair.worker.starts(id) == 1).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            pair.worker.let_start.send_replace(true);
        };
        let (refused, ()) = tokio::join!(start, let_go);
        let refused = refused.err();
        assert!(
            matches!(refused, Some(CallFailure::NotExecuted { .. })),
            "{refused:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_start_that_is_given_up_lets_go_of_its_call() {
    within(async {
        let pair = Pair::new(ScriptedWorker::new("w", |_| Plan::Stall)).await;
        let call = journaled();
        let id = call.id;
        let start = tokio::spawn({
            let (remote, call) = (pair.remote.clone(), call.clone());
            async move { remote.start(call, None).await }
        });
        until(|| pair.worker.starts(id) == 1).await;
        start.abort();
        assert!(start.await.is_err());
        pair.worker.let_start.send_replace(true);
        let mut running = pair.remote.start(call, None).await.unwrap();
        pair.worker.call(id).await.result(1);
        assert_eq!(rest(&mut running).await.len(), 1);
    })
    .await;
}
