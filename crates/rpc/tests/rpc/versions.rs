//! Mixed releases: every pair of versions works, or reports why not.

use bytes::Bytes;
use shoal_ports::{
    AskId, Binding, CallEventKind, GatewayError, NodeId, Post, SessionGateway, StateRequest,
    StreamItem, TaskRequest, WorkerId,
};
use shoal_protocol::{Outcome, RawJson};
use shoal_rpc::proto::node::v1::node_link_client::NodeLinkClient;
use shoal_rpc::proto::node::v1::{
    EdgeFrame, EventId, Hello, Listen, SessionFrame, edge_frame, item::Kind, session_frame::Frame,
};
use shoal_rpc::proto::types::v1::Versions;
use shoal_rpc::{LinkConfig, RemoteGateway};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;

use crate::probe::{journaled, long, repeatable, rest};
use crate::scripted_gateway::{Asked, event_id};
use crate::scripted_worker::ScriptedWorker;
use crate::setting::{Node, Pair, config, within};

fn speaking(protocol: u32) -> LinkConfig {
    let mut config = config();
    config.cluster.protocol = protocol;
    config
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_and_nodes_of_all_versions_understand_one_another() {
    within(async {
        for (node, worker) in [(1, 1), (1, 4), (4, 1), (2, 3), (4, 4), (0, 9)] {
            let scripted = ScriptedWorker::running("w");
            let pair = Pair::configured(scripted, speaking(node), speaking(worker)).await;
            let call = journaled();
            let id = call.id;
            let mut running = pair.remote.start(call, None).await.unwrap();
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
            let starts = (0..200).map(|_| echo.remote.start(repeatable(), None));
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
            let mut running = pair.remote.start(call, None).await.unwrap();
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
        for (node, edge) in [(1, 1), (1, 3), (3, 1), (4, 4)] {
            let node = Node::start(speaking(node)).await;
            let address = node.address.to_string();
            let gateway = RemoteGateway::new(NodeId::new("e"), None, &address, speaking(edge));
            let session = crate::gateway::session();
            let closes = (0..100).map(|_| gateway.close(&session));
            for closed in futures::future::join_all(closes).await {
                assert_eq!(closed, Err(GatewayError::NotFound));
            }
            let items = node.routing.will_stream();
            let mut stream = gateway.listen(&session, None).await.unwrap();
            for item in [event(1), passing(), event(2)] {
                items.send(item.clone()).await.unwrap();
                let arrived = stream.items.recv().await.unwrap();
                assert_eq!(format!("{arrived:?}"), format!("{item:?}"));
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_node_that_does_not_know_tasks_is_asked_nothing_about_them() {
    within(async {
        let node = Node::start(speaking(5)).await;
        let address = node.address.to_string();
        let gateway = RemoteGateway::new(NodeId::new("e"), None, &address, config());
        let task = crate::gateway::session();
        let refused = gateway.ask_task(&task, TaskRequest::Get).await;
        let refused = refused.unwrap_err();
        assert!(
            matches!(refused, GatewayError::Unavailable { .. }),
            "{refused}"
        );
        assert!(node.routing.asked.borrow().is_empty());
    })
    .await;
}

fn event(sequence: u64) -> StreamItem {
    StreamItem::Event {
        id: event_id(sequence),
        data: Bytes::from_static(b"{}"),
    }
}

fn passing() -> StreamItem {
    StreamItem::Passing {
        data: Bytes::from_static(b"{}"),
    }
}

async fn hear(link: &mut tonic::Streaming<SessionFrame>, waiting: &mut Vec<SessionFrame>) -> Frame {
    loop {
        if waiting.is_empty() {
            waiting.push(link.message().await.unwrap().unwrap());
        }
        match waiting.remove(0).frame.unwrap() {
            Frame::Batch(batch) => waiting.extend(batch.frames),
            Frame::Welcome(_) | Frame::Ping(_) => {}
            frame => return frame,
        }
    }
}

/// An edge from before `in_passing` takes such an item for an event, from whose id it resumes.
#[tokio::test]
async fn an_edge_that_does_not_know_what_passes_takes_it_for_an_event_that_changes_nothing() {
    within(async {
        let node = Node::start(config()).await;
        let (send, frames) = mpsc::channel(4);
        let say = async |frame| {
            let frame = EdgeFrame { frame: Some(frame) };
            send.send(frame).await.unwrap();
        };
        say(edge_frame::Frame::Hello(Hello {
            versions: Some(Versions {
                lowest: 1,
                highest: 1,
            }),
            from: "old".to_owned(),
            ..Hello::default()
        }))
        .await;
        let endpoint = Endpoint::from_shared(format!("http://{}", node.address)).unwrap();
        let mut client = NodeLinkClient::new(endpoint.connect().await.unwrap());
        let link = client.link(ReceiverStream::new(frames)).await.unwrap();
        let (mut link, mut waiting) = (link.into_inner(), Vec::new());
        let items = node.routing.will_stream();
        for item in [passing(), event(1), passing(), event(2), passing()] {
            items.send(item).await.unwrap();
        }
        say(edge_frame::Frame::Listen(Listen {
            flight: 1,
            session: "s".to_owned(),
            principal: "p".to_owned(),
            ..Listen::default()
        }))
        .await;
        let Frame::StreamBegan(began) = hear(&mut link, &mut waiting).await else {
            panic!("a stream")
        };
        assert_eq!(began.cursor.unwrap().sequence, 0);
        let mut ids = Vec::new();
        for _ in 0..5 {
            let Frame::Item(item) = hear(&mut link, &mut waiting).await else {
                panic!("an item")
            };
            let Some(Kind::Event(event)) = item.kind else {
                panic!("{item:?} is no event")
            };
            assert_eq!(event.data, "{}");
            ids.push(event.id.map(|EventId { sequence, .. }| sequence));
        }
        assert_eq!(ids, [0, 1, 1, 2, 2].map(Some));
    })
    .await;
}

/// A node of an earlier version would run the call at another worker, so the edge gets an error instead.
#[tokio::test]
async fn what_an_edge_has_bound_goes_only_to_nodes_that_know_bindings() {
    within(async {
        for (version, known) in [(6, true), (5, false)] {
            let node = Node::start(speaking(version)).await;
            let address = node.address.to_string();
            let gateway = RemoteGateway::new(NodeId::new("e"), None, &address, config());
            let session = crate::gateway::session();
            let binding = Binding {
                worker: WorkerId::new("w"),
                ledger: None,
            };
            let unbound = crate::gateway::ping();
            let mut post = Post {
                binding: Some(binding.clone()),
                ..unbound.clone()
            };
            let first = gateway.deliver(&session, post.clone()).await.unwrap_err();
            post.repeated = true;
            let again = gateway.deliver(&session, post).await.unwrap_err();
            let told = gateway.deliver(&session, unbound).await.unwrap_err();
            assert_eq!(told, GatewayError::NotFound);
            let Asked::Deliver(_, received) = node.routing.first().await else {
                panic!("a post")
            };
            if known {
                assert_eq!((first, again), (told.clone(), told));
                assert_eq!(received.binding, Some(binding));
            } else {
                assert!(matches!(first, GatewayError::WorkerAway { .. }), "{first}");
                assert!(matches!(again, GatewayError::Unreachable { .. }), "{again}");
                assert_eq!(received.binding, None);
            }
        }
    })
    .await;
}
