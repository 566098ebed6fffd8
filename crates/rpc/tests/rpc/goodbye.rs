//! Each side hears everything that the other has sent before the worker leaves.

use std::sync::Arc;
use std::time::Duration;

use shoal_ports::{CallFailure, CallOutcome};
use shoal_protocol::RawJson;
use shoal_rpc::proto::types::v1::{CallFailure as Failure, Close, call_failure};
use shoal_rpc::proto::worker::v1::{Goodbye, Refused, node_frame, worker_frame};
use shoal_rpc::{JoiningWorker, LinkConfig, WorkerJoin};
use tokio::time::{Instant, timeout};

use crate::probe::{journaled, repeatable};
use crate::raw::{Raw, announce, frame, hello};
use crate::raw_node::{RawLink, RawNode};
use crate::scripted_worker::ScriptedWorker;
use crate::setting::{Node, config, within};

const A_WHILE: Duration = Duration::from_millis(100);

fn patient() -> LinkConfig {
    LinkConfig {
        handshake_timeout: Duration::from_secs(60),
        ..config()
    }
}

async fn joined(worker: &Arc<ScriptedWorker>) -> (WorkerJoin, RawLink) {
    let mut node = RawNode::start().await;
    let joining = JoiningWorker::new(worker.clone());
    let join = WorkerJoin::start(&joining, &node.address, patient());
    let link = node.welcomed(1).await;
    let mut state = join.state();
    state.wait_for(|state| state.connected).await.unwrap();
    (join, link)
}

#[tokio::test]
async fn a_worker_stays_until_the_node_has_read_what_it_refused() {
    within(async {
        let worker = ScriptedWorker::running("w");
        let (join, mut link) = joined(&worker).await;
        let leaving = tokio::spawn(async move { join.leave(Instant::now()).await });
        let said = link.said().await;
        assert!(
            matches!(said, Some(worker_frame::Frame::Goodbye(_))),
            "{said:?}"
        );
        let crossing = journaled();
        link.start(7, &crossing).await;
        link.say(node_frame::Frame::Close(Close::default())).await;
        let said = link.said().await;
        assert!(
            matches!(&said, Some(worker_frame::Frame::Refused(refused)) if refused.flight == 7),
            "{said:?}"
        );
        assert_eq!(link.said().await, None, "the worker has ended its half");
        tokio::time::sleep(A_WHILE).await;
        assert!(!leaving.is_finished(), "the node has not ended its half");
        drop(link);
        assert!(leaving.await.unwrap());
        assert_eq!(worker.starts(crossing.id), 0);
    })
    .await;
}

#[tokio::test]
async fn a_repeated_start_after_the_goodbye_attaches_to_its_call() {
    within(async {
        let worker = ScriptedWorker::running("w");
        let (join, mut link) = joined(&worker).await;
        let running = journaled();
        link.start(7, &running).await;
        let record = worker.call(running.id).await;
        let leaving = tokio::spawn(async move { join.leave(Instant::now()).await });
        while !matches!(link.said().await, Some(worker_frame::Frame::Goodbye(_))) {}
        link.start(8, &running).await;
        record.finish(CallOutcome::Result(RawJson::from_static("{}")));
        let ended = loop {
            match link.said().await {
                Some(worker_frame::Frame::Event(event)) if event.flight == 8 => break true,
                Some(worker_frame::Frame::Refused(refused)) if refused.flight == 8 => break false,
                Some(_) => {}
                None => break false,
            }
        };
        assert!(
            ended,
            "the call has run, so a refusal would let it run again"
        );
        link.say(node_frame::Frame::Close(Close::default())).await;
        drop(link);
        leaving.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_node_ends_its_half_when_the_worker_has_answered_everything() {
    within(async {
        let node = Node::start(patient()).await;
        let mut worker = Raw::dial(&node, hello(3, 3)).await.unwrap();
        worker.send.send(announce()).await.unwrap();
        let remote = node.set.worker("raw").await;
        let crossing = tokio::spawn({
            let remote = remote.clone();
            async move { remote.start(journaled(), None).await.err() }
        });
        let flight = loop {
            if let node_frame::Frame::Start(start) = worker.hear().await.unwrap() {
                break start.flight;
            }
        };
        let goodbye = worker_frame::Frame::Goodbye(Goodbye {});
        worker.send.send(frame(goodbye)).await.unwrap();
        while !matches!(worker.hear().await.unwrap(), node_frame::Frame::Close(_)) {}
        let more = timeout(A_WHILE, worker.hear()).await;
        assert!(more.is_err(), "the worker has not ended its half: {more:?}");
        let refused = worker_frame::Frame::Refused(Refused {
            flight,
            failure: Some(Failure {
                failure: Some(call_failure::Failure::NotExecuted(
                    call_failure::NotExecuted {
                        reason: "left".to_owned(),
                    },
                )),
            }),
        });
        worker.send.send(frame(refused)).await.unwrap();
        assert_eq!(worker.bye().await, None, "the node ends its half as well");
        let failure = crossing.await.unwrap();
        assert!(
            matches!(failure, Some(CallFailure::NotExecuted { .. })),
            "{failure:?}"
        );
        let late = remote.start(repeatable(), None).await.err();
        assert!(
            matches!(late, Some(CallFailure::NotExecuted { .. })),
            "{late:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_node_that_leaves_hears_a_worker_out() {
    within(async {
        let node = Node::start(patient()).await;
        let mut worker = Raw::dial(&node, hello(3, 3)).await.unwrap();
        worker.send.send(announce()).await.unwrap();
        let remote = node.set.worker("raw").await;
        let crossing = tokio::spawn(async move { remote.start(journaled(), None).await.err() });
        let flight = loop {
            if let node_frame::Frame::Start(start) = worker.hear().await.unwrap() {
                break start.flight;
            }
        };
        let goodbye = worker_frame::Frame::Goodbye(Goodbye {});
        worker.send.send(frame(goodbye)).await.unwrap();
        while !matches!(worker.hear().await.unwrap(), node_frame::Frame::Close(_)) {}
        node.workers.close();
        let refused = worker_frame::Frame::Refused(Refused {
            flight,
            ..Refused::default()
        });
        let more = timeout(A_WHILE, worker.hear()).await;
        assert!(more.is_err(), "the worker has not ended its half: {more:?}");
        worker.send.send(frame(refused)).await.unwrap();
        assert_eq!(worker.bye().await, None);
        assert!(crossing.await.unwrap().is_some(), "the call was refused");
    })
    .await;
}
