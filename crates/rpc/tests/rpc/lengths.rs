use shoal_ports::{AskId, CallFailure, CallOutcome};
use shoal_protocol::{Outcome, RawJson};

use crate::probe::{journaled, long, next};
use crate::scripted_worker::{Plan, ScriptedWorker};
use crate::setting::{Pair, config, within};

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
        let refused = pair.remote.start(call, None).await.err();
        assert!(
            matches!(&refused, Some(CallFailure::NotExecuted { reason }) if reason.contains("131072")),
            "{refused:?}"
        );
        let call = journaled();
        let id = call.id;
        let mut running = pair.remote.start(call, None).await.unwrap();
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
        let mut running = pair.remote.start(call, None).await.unwrap();
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
        let mut running = pair.remote.start(journaled(), None).await.unwrap();
        let (_, end) = next(&mut running).await.unwrap();
        assert!(
            end.starts_with("error") && end.contains("not JSON"),
            "{end}"
        );
    })
    .await;
}
