//! Releases that are mixed: every pair of versions speaks, or says why not.

use shoal_ports::{AskId, CallEventKind, GatewayError, NodeId, SessionGateway, StateRequest};
use shoal_protocol::{Outcome, RawJson};
use shoal_rpc::{LinkConfig, RemoteGateway};

use crate::probe::{journaled, long, repeatable, rest};
use crate::scripted_worker::ScriptedWorker;
use crate::setting::{Node, Pair, config, within};

fn speaking(max_version: u32) -> LinkConfig {
    LinkConfig {
        max_version,
        ..config()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_and_nodes_of_all_versions_understand_one_another() {
    within(async {
        for (node, worker) in [(1, 1), (1, 3), (3, 1), (2, 3), (3, 3), (0, 9)] {
            let scripted = ScriptedWorker::running("w");
            let pair = Pair::configured(scripted, speaking(node), speaking(worker)).await;
            let call = journaled();
            let id = call.id;
            let mut running = pair.remote.start(call).await.unwrap();
            let record = pair.worker.call(id).await;
            for number in 0..300 {
                record.progress(number);
                if number == 150 {
                    record.notify(long(300_000));
                }
            }
            record.result(1);
            let events = rest(&mut running).await;
            let numbers: Vec<u64> = events.iter().map(|(sequence, _)| *sequence).collect();
            assert_eq!(
                numbers,
                (1..=302).collect::<Vec<_>>(),
                "{node} and {worker}"
            );
            let echo = Pair::configured(
                ScriptedWorker::echoing("e"),
                speaking(node),
                speaking(worker),
            )
            .await;
            let starts = (0..200).map(|_| echo.remote.start(repeatable()));
            for running in futures::future::join_all(starts).await {
                assert_eq!(rest(&mut running.unwrap()).await.len(), 1);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn state_passes_where_both_know_it_and_is_refused_at_once_elsewhere() {
    within(async {
        for (node, worker) in [(1, 3), (2, 3), (3, 2), (3, 3)] {
            let scripted = ScriptedWorker::running("w");
            let pair = Pair::configured(scripted, speaking(node), speaking(worker)).await;
            let call = journaled();
            let id = call.id;
            let mut running = pair.remote.start(call).await.unwrap();
            let record = pair.worker.call(id).await;
            let request = StateRequest::set("key", Some(RawJson::from_static("7")));
            record.state(5, request.clone());
            if (node, worker) == (3, 3) {
                let event = running.events.next().await.unwrap();
                let CallEventKind::State { ask, request: read } = event.kind else {
                    panic!("{event:?}")
                };
                assert_eq!((ask, read), (AskId(5), request));
                let kept = Outcome::Result(RawJson::from_static("{}"));
                assert!(running.control.answer(ask, kept).await);
            }
            let (ask, told) = record.answer().await;
            assert_eq!(ask, AskId(5));
            let expected = match node.min(worker) {
                3 => "{}".to_owned(),
                spoken => format!(
                    "the state of a session cannot be reached while this worker and its node speak \
                     version {spoken} of their protocol; it takes version 3"
                ),
            };
            assert_eq!(told, expected);
            // What follows is not disturbed.
            record.result(1);
            let last = rest(&mut running).await.pop().unwrap();
            assert_eq!(last, (2, "result 1".to_owned()));
        }
    })
    .await;
}

#[tokio::test]
async fn edges_and_session_nodes_of_all_versions_understand_one_another() {
    within(async {
        for (node, edge) in [(1, 1), (1, 3), (3, 1), (3, 3)] {
            let node = Node::start(speaking(node)).await;
            let address = node.address.to_string();
            let gateway = RemoteGateway::new(NodeId::new("e"), None, &address, speaking(edge));
            let session = crate::gateway::session();
            let closes = (0..100).map(|_| gateway.close(&session));
            for closed in futures::future::join_all(closes).await {
                assert_eq!(closed, Err(GatewayError::NotFound));
            }
        }
    })
    .await;
}
