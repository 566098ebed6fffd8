//! Calls over a link: what a caller sees is what the worker said.

use std::time::Duration;

use shoal_ports::{AskId, CallFailure, CallId, CallOutcome};
use shoal_protocol::{Outcome, RawJson, RpcError};

use crate::scripted_worker::{Plan, ScriptedWorker};
use crate::setting::{Pair, config, journaled, long, next, repeatable, rest, until, within};

#[tokio::test]
async fn a_call_that_ends_at_once_is_answered_with_its_result() {
    within(async {
        let pair = Pair::new(ScriptedWorker::echoing("w")).await;
        let call = repeatable();
        let mut running = pair.remote.start(call.clone()).await.unwrap();
        assert_eq!(running.worker.as_ref().unwrap().as_str(), "w");
        assert_eq!(
            rest(&mut running).await,
            [(1, r#"result {"name":"probe"}"#.to_owned())]
        );
        assert!(!running.control.answer(AskId(1), answer("1")).await);
        let arrived = pair.worker.started.lock()[0].clone();
        assert_eq!(arrived.id, call.id);
        assert_eq!(arrived.caller.principal, call.caller.principal);
        assert_eq!(arrived.durability, call.durability);
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
        let (running, ()) = tokio::join!(pair.remote.start(call), script);
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
        let mut running = pair.remote.start(call).await.unwrap();
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
            let mut running = pair.remote.start(journaled()).await.unwrap();
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
            let refused = pair.remote.start(journaled()).await;
            assert_eq!(refused.err(), Some(refusal));
        }
    })
    .await;
}

#[tokio::test]
async fn answers_reach_the_tool_and_are_acknowledged() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let call = journaled();
        let id = call.id;
        let mut running = pair.remote.start(call).await.unwrap();
        let record = pair.worker.call(id).await;
        record.ask(9, RawJson::from_static(r#"{"message":"sure?"}"#));
        assert_eq!(
            next(&mut running).await.unwrap().1,
            r#"{"message":"sure?"}"#
        );
        assert!(running.control.answer(AskId(9), answer("true")).await);
        assert_eq!(record.answer().await, (AskId(9), "true".to_owned()));
        // A second answer, and one to a question that was never put.
        assert!(!running.control.answer(AskId(9), answer("false")).await);
        assert!(!running.control.answer(AskId(10), answer("false")).await);
        assert_eq!(record.answers(), 1);
        // Dropping the future takes nothing back.
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
async fn a_cancelled_call_still_ends_in_its_own_way() {
    within(async {
        let pair = Pair::new(ScriptedWorker::running("w")).await;
        let call = journaled();
        let id = call.id;
        let mut running = pair.remote.start(call).await.unwrap();
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
        let running = pair.remote.start(call).await.unwrap();
        let record = pair.worker.call(id).await;
        drop(running.events);
        running.control.cancel("nobody waits");
        assert_eq!(record.cancelled().await, "nobody waits");
        drop(running.control);
        // It can be attached to, as if nothing had been.
        record.progress(1);
        record.result(2);
        let mut again = pair.remote.attach(id, 1).await.unwrap();
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
        let mut first = pair.remote.start(call.clone()).await.unwrap();
        let record = pair.worker.call(id).await;
        record.progress(1);
        next(&mut first).await.unwrap();
        let mut second = pair.remote.start(call).await.unwrap();
        // The first reader is let go, and what it says is not heard any more.
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
        let refused = pair.remote.attach(CallId::generate(), 3).await.err();
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
        let mut running = pair.remote.start(call).await.unwrap();
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

#[tokio::test]
async fn a_slow_start_may_still_be_refused() {
    within(async {
        let pair = Pair::new(ScriptedWorker::new("w", |_| Plan::StallAndRefuse)).await;
        let call = journaled();
        let id = call.id;
        let start = pair.remote.start(call);
        let let_go = async {
            until(|| pair.worker.starts(id) == 1).await;
            // Well after the moment in which a silent call is accepted.
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
            async move { remote.start(call).await }
        });
        until(|| pair.worker.starts(id) == 1).await;
        start.abort();
        assert!(start.await.is_err());
        pair.worker.let_start.send_replace(true);
        // Nobody reads it; whoever starts it again finds it or begins it, as the worker knows best.
        let mut running = pair.remote.start(call).await.unwrap();
        pair.worker.call(id).await.result(1);
        assert_eq!(rest(&mut running).await.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_call_or_answer_that_is_too_long_is_refused_on_this_side() {
    within(async {
        let small = shoal_rpc::LinkConfig {
            max_frame: 128 * 1024,
            ..config()
        };
        let pair = Pair::configured(ScriptedWorker::running("w"), config(), small).await;
        let mut call = journaled();
        call.params = Some(long(200_000));
        let refused = pair.remote.start(call).await.err();
        assert!(
            matches!(&refused, Some(CallFailure::NotExecuted { reason }) if reason.contains("131072")),
            "{refused:?}"
        );
        let call = journaled();
        let id = call.id;
        let mut running = pair.remote.start(call).await.unwrap();
        let record = pair.worker.call(id).await;
        record.ask(1, RawJson::from_static("{}"));
        next(&mut running).await.unwrap();
        let answer = Outcome::Result(long(200_000));
        assert!(running.control.answer(AskId(1), answer).await);
        assert!(record.answer().await.1.contains("not passed on"));
    })
    .await;
}

#[tokio::test]
async fn events_that_are_too_long_count_and_a_result_says_so() {
    within(async {
        let small = shoal_rpc::LinkConfig {
            max_frame: 128 * 1024,
            ..config()
        };
        let pair = Pair::configured(ScriptedWorker::running("w"), small, config()).await;
        let call = journaled();
        let id = call.id;
        let mut running = pair.remote.start(call).await.unwrap();
        let record = pair.worker.call(id).await;
        record.notify(long(200_000));
        record.ask(1, long(200_000));
        record.progress(3);
        assert_eq!(next(&mut running).await, Some((3, "3".to_owned())));
        assert!(record.answer().await.1.contains("not passed on"));
        record.finish(CallOutcome::Result(long(200_000)));
        let (sequence, end) = next(&mut running).await.unwrap();
        assert_eq!(sequence, 4);
        assert!(end.starts_with("error") && end.contains("131072"), "{end}");
    })
    .await;
}

#[tokio::test]
async fn a_result_that_is_no_json_is_an_error() {
    within(async {
        let broken = || CallOutcome::Result(RawJson::from_static("{\"a\":"));
        let pair = Pair::new(ScriptedWorker::new("w", move |_| Plan::End(broken()))).await;
        let mut running = pair.remote.start(journaled()).await.unwrap();
        let (_, end) = next(&mut running).await.unwrap();
        assert!(
            end.starts_with("error") && end.contains("not JSON"),
            "{end}"
        );
    })
    .await;
}

fn answer(text: &'static str) -> Outcome {
    Outcome::Result(RawJson::from_static(text))
}
