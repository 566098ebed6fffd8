use bytes::Bytes;
use shoal_ports::Delivered;
use shoal_rpc::LinkConfig;
use shoal_rpc::proto::node::v1::node_link_client::NodeLinkClient;
use shoal_rpc::proto::node::v1::{
    Deliver, Detach, EdgeFrame, Hello, Member, Request, SessionFrame, edge_frame::Frame as Ask,
    member::Member::Request as Ping, session_frame::Frame,
};
use shoal_rpc::proto::types::v1::{Limits, Versions};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Endpoint;

use crate::scripted_gateway::Answer;
use crate::setting::{Node, config, within};

const ANSWER: usize = 1024 * 1024;
const ANSWERS: u64 = 64;
const QUEUED: usize = 4 * ANSWER;
const MOST_PASSED: usize = 24;

fn deliver(flight: u64) -> Ask {
    let ping = Request {
        id: Bytes::from_static(b"1"),
        method: "ping".to_owned(),
        params: None,
    };
    Ask::Deliver(Deliver {
        flight,
        session: "s".to_owned(),
        principal: "p".to_owned(),
        delivery: Bytes::from_static(&[7; 16]),
        members: vec![Member {
            member: Some(Ping(ping)),
        }],
        ..Deliver::default()
    })
}

struct Lazy {
    node: Node,
    send: mpsc::Sender<EdgeFrame>,
    link: Streaming<SessionFrame>,
}

impl Lazy {
    async fn new() -> Self {
        let node = Node::start(LinkConfig {
            max_queued: QUEUED,
            ..config()
        });
        let node = node.await;
        let (send, frames) = mpsc::channel(4);
        let hello = Ask::Hello(Hello {
            versions: Some(Versions {
                lowest: 1,
                highest: 1,
            }),
            from: "lazy".to_owned(),
            limits: Some(Limits {
                frame_bytes: 2 * ANSWER as u64,
                ..Limits::default()
            }),
            ..Hello::default()
        });
        let hello = EdgeFrame { frame: Some(hello) };
        send.send(hello).await.unwrap();
        let endpoint = Endpoint::from_shared(format!("http://{}", node.address)).unwrap();
        let mut client = NodeLinkClient::new(endpoint.connect().await.unwrap());
        let link = client.link(ReceiverStream::new(frames)).await.unwrap();
        let link = link.into_inner();
        Self { node, send, link }
    }

    async fn say(&self, frame: Ask) {
        let frame = EdgeFrame { frame: Some(frame) };
        self.send.send(frame).await.unwrap();
    }

    async fn asked(&self, times: usize) {
        let mut asked = self.node.routing.asked.subscribe();
        asked.wait_for(|asked| asked.len() == times).await.unwrap();
    }

    async fn read(&mut self, answers: usize) -> (usize, Vec<String>) {
        let (mut passed, mut refused) = (0, Vec::new());
        while passed + refused.len() < answers {
            let SessionFrame { frame } = self.link.message().await.unwrap().unwrap();
            match frame.unwrap() {
                Frame::Fragment(part) => passed += usize::from(part.last),
                Frame::Failed(failed) => refused.push(format!("{:?}", failed.error)),
                _ => {}
            }
        }
        (passed, refused)
    }
}

#[tokio::test]
async fn answers_that_are_not_read_are_refused_beyond_the_limit() {
    within(async {
        let mut edge = Lazy::new().await;
        let text = Bytes::from(vec![b'7'; ANSWER]);
        let now = watch::Sender::new(false);
        for flight in 1..=ANSWERS {
            let json = Delivered::Json(text.clone());
            let answer = Answer::Later(now.subscribe(), json);
            edge.node.routing.will(answer);
            edge.say(deliver(flight)).await;
        }
        let all = ANSWERS as usize;
        edge.asked(all).await;
        now.send_replace(true);
        while !text.is_unique() {
            tokio::task::yield_now().await;
        }
        let (passed, refused) = edge.read(all).await;
        assert!((1..MOST_PASSED).contains(&passed), "{passed}");
        assert!(refused[0].contains("Overloaded"), "{refused:?}");
    })
    .await;
}

#[tokio::test]
async fn nothing_is_begun_while_too_many_answers_are_not_read() {
    within(async {
        let mut edge = Lazy::new().await;
        for flight in 1..=ANSWERS {
            edge.node.routing.will(Answer::Never);
            edge.say(deliver(flight)).await;
        }
        let all = ANSWERS as usize;
        edge.asked(all).await;
        let text = Bytes::from(vec![b'7'; ANSWER]);
        for flight in 1..=ANSWERS {
            let json = Delivered::Json(text.clone());
            edge.node.routing.will(Answer::Delivered(json));
            edge.say(deliver(ANSWERS + flight)).await;
            edge.say(Ask::Detach(Detach { flight })).await;
            let mut dropped = edge.node.routing.dropped.subscribe();
            let so_many = |dropped: &usize| *dropped == flight as usize;
            dropped.wait_for(so_many).await.unwrap();
        }
        let begun = edge.node.routing.asked.borrow().len() - all;
        assert!((1..MOST_PASSED).contains(&begun), "{begun}");
        let (_, refused) = edge.read(all).await;
        assert!(refused[0].contains("Overloaded"), "{refused:?}");
    })
    .await;
}
