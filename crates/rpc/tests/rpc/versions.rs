//! Releases that are mixed: every pair of versions speaks, or says why not.

use shoal_ports::{GatewayError, NodeId, SessionGateway};
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
        for (node, worker) in [(1, 1), (1, 2), (2, 1), (2, 2), (0, 9)] {
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
async fn edges_and_session_nodes_of_all_versions_understand_one_another() {
    within(async {
        for (node, edge) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
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
