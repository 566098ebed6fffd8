use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use shoal_ports::{
    Delivered, GatewayError, NodeId, OpenSession, Opened, Post, Principal, SessionGateway,
    SessionId, SessionRef, SessionTransport,
};
use shoal_protocol::{Body, RawJson, Revision, RpcError};
use shoal_rpc::{LinkConfig, RemoteGateway};

use crate::scripted_gateway::{Answer, Asked};
use crate::setting::{Node, config, within};

pub(crate) fn session() -> SessionRef {
    SessionRef::new(SessionId::new("s-1"), Principal::new("alice"))
}

pub(crate) fn edge(node: &Node) -> RemoteGateway {
    let address = node.address.to_string();
    RemoteGateway::new(NodeId::new("edge-1"), None, &address, config())
}

fn post(text: &'static str) -> Post {
    Post::new(Body::parse(&Bytes::from_static(text.as_bytes()), 64).unwrap())
}

pub(crate) fn ping() -> Post {
    post(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)
}

#[tokio::test]
async fn a_session_is_opened_and_closed() {
    within(async {
        let node = Node::start(config()).await;
        let edge = edge(&node);
        let opened = Opened {
            session: SessionId::new("s-9"),
            revision: Some(Revision::V2025_06_18),
            response: Some(Bytes::from_static(b"{}")),
        };
        *node.routing.opened.lock() = Some(Ok(opened.clone()));
        let Body::Single(shoal_protocol::Message::Request(initialize)) =
            post(r#"{"jsonrpc":"2.0","id":"a\u0062","method":"initialize","params":{"x": 1.0}}"#)
                .body
        else {
            panic!("a request");
        };
        let open = OpenSession {
            principal: Principal::new("alice"),
            transport: SessionTransport::SingleStream,
            initialize: Some(initialize),
            trace: None,
        };
        let answer = edge.open(open.clone()).await.unwrap();
        assert_eq!(format!("{answer:?}"), format!("{opened:?}"));
        let Asked::Open(asked) = node.routing.first().await else {
            panic!("an opening");
        };
        assert_eq!(format!("{asked:?}"), format!("{open:?}"));
        node.local.will(Answer::Delivered(Delivered::Accepted));
        edge.relayed();
        SessionGateway::close(&edge.relayed(), &session())
            .await
            .unwrap();
        assert!(matches!(node.local.first().await, Asked::Close));
        assert_eq!(node.links.connected(), 1);
    })
    .await;
}

#[tokio::test]
async fn bodies_arrive_as_they_were_posted() {
    within(async {
        let bodies = [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name": "t", "n":1e400}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"a":[1,2]}}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no","data":[1]}}"#,
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}, 7, {"id":3}, {"jsonrpc":"2.0","method":"a"}]"#,
        ];
        for body in bodies {
            let node = Node::start(config()).await;
            let edge = edge(&node);
            let mut posted = post(body);
            posted.repeated = true;
            node.routing.will(Answer::Delivered(Delivered::Accepted));
            let delivered = edge.deliver(&session(), posted.clone()).await;
            assert!(matches!(delivered, Ok(Delivered::Accepted)));
            let Asked::Deliver(to, arrived) = node.routing.first().await else {
                panic!("a delivery");
            };
            assert_eq!((to.session, to.principal), (session().session, session().principal));
            assert_eq!(format!("{arrived:?}"), format!("{posted:?}"));
        }
    })
    .await;
}

#[tokio::test]
async fn every_refusal_arrives_as_it_is() {
    within(async {
        let node = Node::start(config()).await;
        let edge = edge(&node);
        let retry_after = Duration::from_millis(1234);
        let reason = || "full".to_owned();
        let refusals = [
            GatewayError::NotFound,
            GatewayError::Rejected(
                RpcError::invalid_request("no batches").with_data(RawJson::from_static("[1]")),
            ),
            GatewayError::Moved { owner: None },
            GatewayError::Moved {
                owner: Some(NodeId::new("n-2")),
            },
            GatewayError::Unreachable { reason: reason() },
            GatewayError::HistoryGone(Cow::Borrowed("trimmed")),
            GatewayError::TooManySessionsOfPrincipal {
                limit: 3,
                retry_after,
            },
            GatewayError::TooManySessions {
                limit: 4,
                retry_after,
            },
            GatewayError::Overloaded {
                reason: reason(),
                retry_after,
            },
            GatewayError::Unavailable {
                reason: reason(),
                retry_after,
            },
            GatewayError::Internal("a fault".to_owned()),
        ];
        for refusal in refusals {
            node.routing.will(Answer::Refused(refusal.clone()));
            let refused = edge.deliver(&session(), ping()).await.err();
            assert_eq!(refused, Some(refusal.clone()));
            node.routing.will(Answer::Refused(refusal.clone()));
            assert_eq!(edge.listen(&session(), None).await.err(), Some(refusal));
        }
    })
    .await;
}

#[tokio::test]
async fn json_answers_arrive_long_or_short() {
    within(async {
        let node = Node::start(config()).await;
        let edge = edge(&node);
        for bytes in [2, 70_000, 8 << 20] {
            let text = Bytes::from(vec![b'1'; bytes]);
            let answer = Delivered::Json(text.clone());
            node.routing.will(Answer::Delivered(answer));
            let delivered = edge.deliver(&session(), ping()).await.unwrap();
            assert!(matches!(delivered, Delivered::Json(arrived) if arrived == text));
        }
        let answer = Delivered::Json(Bytes::from(vec![b'1'; 20 << 20]));
        node.routing.will(Answer::Delivered(answer));
        let refused = edge.deliver(&session(), ping()).await.err();
        assert!(
            matches!(&refused, Some(GatewayError::Internal(what)) if what.contains("16777216")),
            "{refused:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_post_that_is_too_long_is_refused_on_this_side() {
    within(async {
        let node = Node::start(LinkConfig {
            max_frame: 100_000,
            ..config()
        })
        .await;
        let edge = edge(&node);
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":"{}"}}}}"#,
            "x".repeat(200_000)
        );
        let body = Body::parse(&Bytes::from(text), 64).unwrap();
        let refused = edge.deliver(&session(), Post::new(body)).await.err();
        assert!(
            matches!(refused, Some(GatewayError::Internal(_))),
            "{refused:?}"
        );
    })
    .await;
}
