//! Peers that break the protocol lose their link with a reason, without effect on others.

use bytes::Bytes;
use shoal_rpc::proto::types::v1::{Fragment, Versions};
use shoal_rpc::proto::worker::v1::event::{Kind, Notification};
use shoal_rpc::proto::worker::v1::worker_frame::{Batch, Frame};
use shoal_rpc::proto::worker::v1::worker_link_server::WorkerLinkServer;
use shoal_rpc::proto::worker::v1::{
    Accepted, Announce, AnswerTaken, Catalog, Event, Hello, Lost, NodeFrame, Refused, Subscribed,
    Welcome, WorkerFrame, node_frame,
};
use shoal_rpc::{JoiningWorker, LinkConfig, WorkerJoin};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};

use crate::probe::{repeatable, rest};
use crate::raw::{Raw, RawNode, announce, frame, hello};
use crate::scripted_worker::ScriptedWorker;
use crate::setting::{Node, config, within};

#[tokio::test]
async fn a_hello_that_does_not_suit_is_refused_with_a_reason() {
    within(async {
        let node = Node::start(config()).await;
        let cases = [
            (hello(7, 9), "no common protocol version"),
            (hello(0, 0), "no common protocol version"),
            (announce(), "no hello"),
            (frame(Frame::Hello(Hello::default())), "version"),
            (
                frame(Frame::Hello(Hello {
                    versions: Some(Versions {
                        lowest: 1,
                        highest: 1,
                    }),
                    ..Hello::default()
                })),
                "names no worker",
            ),
        ];
        for (first, reason) in cases {
            let refusal = Raw::dial(&node, first).await.err().unwrap();
            assert!(refusal.message().contains(reason), "{refusal:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_breach_of_the_protocol_ends_the_link_with_a_reason() {
    within(async {
        let node = Node::start(LinkConfig {
            max_frame: 100_000,
            ..config()
        })
        .await;
        let fragment = |flight, bytes: usize, last| {
            frame(Frame::Fragment(Fragment {
                flight,
                data: Bytes::from(vec![7; bytes]),
                last,
            }))
        };
        let batch = |frames| frame(Frame::Batch(Batch { frames }));
        let bad_catalog = frame(Frame::Announce(Announce {
            catalog: Some(Catalog {
                tools: vec![Bytes::from_static(b"{oops")],
                ..Catalog::default()
            }),
            ..Announce::default()
        }));
        let cases = [
            (vec![hello(1, 2)], "second hello"),
            (vec![batch(vec![batch(vec![])])], "batch within a batch"),
            (vec![bad_catalog], "malformed tool"),
            (vec![fragment(1, 10, true)], "fragments"),
            (
                vec![fragment(1, 60_000, false), fragment(1, 60_000, false)],
                "more than 100000 bytes",
            ),
            (
                (1..=9).map(|flight| fragment(flight, 1, false)).collect(),
                "at a time",
            ),
            (vec![fragment(1, 200_000, true)], "too large"),
        ];
        for (frames, reason) in cases {
            let raw = Raw::dial(&node, hello(1, 2)).await.unwrap();
            for frame in frames {
                raw.send.send(frame).await.unwrap();
            }
            let said = raw.reason().await;
            assert!(said.contains(reason), "{said:?} does not say {reason:?}");
        }
        let raw = Raw::dial(&node, hello(1, 1)).await.unwrap();
        raw.send.send(batch(vec![announce()])).await.unwrap();
        assert!(raw.reason().await.contains("version 1"));
    })
    .await;
}

#[tokio::test]
async fn frames_that_belong_to_nothing_are_ignored() {
    within(async {
        let node = Node::start(config()).await;
        let mut raw = Raw::dial(&node, hello(1, 2)).await.unwrap();
        let nonsense = [
            WorkerFrame::default(),
            frame(Frame::Accepted(Accepted {
                flight: 99,
                reader: 1,
            })),
            frame(Frame::Refused(Refused::default())),
            frame(Frame::Event(Event::default())),
            frame(Frame::Lost(Lost {
                flight: 7,
                replaced: true,
            })),
            frame(Frame::AnswerTaken(AnswerTaken::default())),
            frame(Frame::Subscribed(Subscribed::default())),
            announce(),
        ];
        for frame in nonsense {
            raw.send.send(frame).await.unwrap();
        }
        let remote = node.set.worker("raw").await;
        let serve = async {
            loop {
                let frames = match raw.hear().await.unwrap() {
                    node_frame::Frame::Batch(batch) => batch.frames,
                    other => vec![NodeFrame { frame: Some(other) }],
                };
                for heard in frames {
                    if let Some(node_frame::Frame::Start(start)) = heard.frame {
                        let finished = br#"{"content":[]}"#;
                        let answer = shoal_rpc::proto::types::v1::CallOutcome {
                            outcome: Some(
                                shoal_rpc::proto::types::v1::call_outcome::Outcome::Result(
                                    Bytes::from_static(finished),
                                ),
                            ),
                        };
                        let event = Event {
                            flight: start.flight,
                            sequence: 1,
                            kind: Some(Kind::Finished(answer)),
                            ..Event::default()
                        };
                        raw.send.send(frame(Frame::Event(event))).await.unwrap();
                        return;
                    }
                }
            }
        };
        let (running, ()) = tokio::join!(remote.start(repeatable(), None), serve);
        let events = rest(&mut running.unwrap()).await;
        assert_eq!(events, [(1, r#"result {"content":[]}"#.to_owned())]);
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_sends_more_than_it_may_is_cut_off() {
    within(async {
        let node = Node::start(LinkConfig {
            credit: 1000,
            max_frame: 70_000,
            ..config()
        })
        .await;
        let raw = Raw::dial(&node, hello(1, 2)).await.unwrap();
        raw.send.send(announce()).await.unwrap();
        let remote = node.set.worker("raw").await;
        let flood = async {
            for sequence in 1..=4 {
                let note = Notification {
                    method: "notifications/progress".to_owned(),
                    params: Some(Bytes::from(vec![b'1'; 60_000])),
                };
                let kind = Some(Kind::Notification(note));
                let event = Event {
                    flight: 1,
                    sequence,
                    kind,
                    ..Event::default()
                };
                raw.send.send(frame(Frame::Event(event))).await.unwrap();
            }
            raw
        };
        let (running, raw) = tokio::join!(remote.start(repeatable(), None), flood);
        let _unread = running.unwrap();
        let reason = raw.reason().await;
        assert!(reason.contains("credit"), "{reason}");
    })
    .await;
}

#[tokio::test]
async fn bytes_that_are_no_http2_disturb_nobody() {
    within(async {
        let node = Node::start(config()).await;
        for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 4096], b""] {
            let mut socket = TcpStream::connect(node.address).await.unwrap();
            let _ = socket.write_all(garbage).await;
        }
        let joining = JoiningWorker::new(ScriptedWorker::echoing("w"));
        let _join = WorkerJoin::start(&joining, &node.address.to_string(), config());
        let remote = node.set.worker("w").await;
        rest(&mut remote.start(repeatable(), None).await.unwrap()).await;
    })
    .await;
}

#[tokio::test]
async fn a_node_that_breaks_the_protocol_is_left_with_a_reason() {
    within(async {
        let welcome = |version| {
            node_frame::Frame::Welcome(Welcome {
                version,
                node: "n".to_owned(),
                ..Welcome::default()
            })
        };
        let start = node_frame::Frame::Start(Box::default());
        let cases = [
            (vec![start.clone()], "no welcome"),
            (vec![welcome(7)], "not offered"),
            (vec![welcome(2), welcome(2)], "second welcome"),
            (vec![welcome(2), start], "start of no call"),
        ];
        for (frames, reason) in cases {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap().to_string();
            let serving = tonic::transport::Server::builder()
                .add_service(WorkerLinkServer::new(RawNode(frames)))
                .serve_with_incoming(tonic::transport::server::TcpIncoming::from(listener));
            let serving = tokio::spawn(serving);
            let joining = JoiningWorker::new(ScriptedWorker::echoing("w"));
            let join = WorkerJoin::start(&joining, &address, config());
            let mut state = join.state();
            let says = |error: &String| error.contains(reason);
            state
                .wait_for(|state| state.last_error.as_ref().is_some_and(says))
                .await
                .unwrap();
            serving.abort();
        }
    })
    .await;
}

#[tokio::test]
async fn an_address_where_nobody_is_says_so() {
    within(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        drop(listener);
        for address in [address.as_str(), "not an address"] {
            let joining = JoiningWorker::new(ScriptedWorker::echoing("w"));
            let join = WorkerJoin::start(&joining, address, config());
            let mut state = join.state();
            let failed = state.wait_for(|state| state.last_error.is_some()).await;
            assert!(!failed.unwrap().connected);
        }
    })
    .await;
}
