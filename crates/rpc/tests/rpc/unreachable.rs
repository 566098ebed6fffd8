use std::time::Duration;

use shoal_ports::{GatewayError, NodeId, SessionGateway};
use shoal_rpc::RemoteGateway;

use crate::gateway::{edge, ping, session};
use crate::proxy::Proxy;
use crate::scripted_gateway::Answer;
use crate::setting::{Node, config, until, within};

async fn comes_back(edge: &RemoteGateway) {
    while let Err(error) = edge.listen(&session(), None).await {
        if error == GatewayError::NotFound {
            break;
        }
        assert!(matches!(error, GatewayError::Unsent { .. }), "{error}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn what_waits_when_the_link_breaks_is_unreachable() {
    within(async {
        let node = Node::start(config()).await;
        let proxy = Proxy::start(node.address).await;
        let edge = RemoteGateway::new(NodeId::new("e"), None, &proxy.address(), config());
        node.routing.will(Answer::Never);
        let waiting = tokio::spawn({
            let edge = edge.clone();
            async move { edge.deliver(&session(), ping()).await.err() }
        });
        node.routing.first().await;
        proxy.block();
        let lost = waiting.await.unwrap();
        assert!(
            matches!(lost, Some(GatewayError::Unreachable { .. })),
            "{lost:?}"
        );
        let mut dropped = node.routing.dropped.subscribe();
        dropped.wait_for(|dropped| *dropped == 1).await.unwrap();
        let refused = edge.deliver(&session(), ping()).await.err();
        assert!(matches!(refused, Some(GatewayError::Unsent { .. })));
        proxy.unblock();
        until(|| node.links.connected() == 0).await;
        comes_back(&edge).await;
        assert_eq!(node.links.connected(), 1);
    })
    .await;
}

#[tokio::test]
async fn who_stops_waiting_lets_go() {
    within(async {
        let node = Node::start(config()).await;
        let edge = edge(&node);
        node.routing.will(Answer::Never);
        let waiting = tokio::spawn({
            let edge = edge.clone();
            async move { edge.deliver(&session(), ping()).await.err() }
        });
        node.routing.first().await;
        waiting.abort();
        let mut dropped = node.routing.dropped.subscribe();
        dropped.wait_for(|dropped| *dropped == 1).await.unwrap();
        assert_eq!(node.links.connected(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_gateway_that_panics_is_answered_for() {
    within(async {
        let node = Node::start(config()).await;
        let edge = edge(&node);
        node.routing.will(Answer::Panic);
        let failed = edge.deliver(&session(), ping()).await.err();
        assert!(
            matches!(failed, Some(GatewayError::Internal(_))),
            "{failed:?}"
        );
        let refused = edge.deliver(&session(), ping()).await.err();
        assert_eq!(refused, Some(GatewayError::NotFound));
    })
    .await;
}

#[tokio::test]
async fn a_node_of_another_name_is_not_spoken_to() {
    within(async {
        let node = Node::start(config()).await;
        let address = node.address.to_string();
        let other = Some(NodeId::new("node-2"));
        let edge = RemoteGateway::new(NodeId::new("e"), other, &address, config());
        let refused = edge.deliver(&session(), ping()).await.err();
        assert!(
            matches!(&refused, Some(GatewayError::Unsent { reason }) if reason.contains("node-1")),
            "{refused:?}"
        );
        let named = Some(NodeId::new("node-1"));
        let edge = RemoteGateway::new(NodeId::new("e"), named, &address, config());
        let refused = edge.deliver(&session(), ping()).await.err();
        assert_eq!(refused, Some(GatewayError::NotFound));
    })
    .await;
}

#[tokio::test]
async fn a_link_that_breaks_is_made_again_when_it_is_needed() {
    within(async {
        let node = Node::start(config()).await;
        let proxy = Proxy::start(node.address).await;
        let edge = RemoteGateway::new(NodeId::new("e"), None, &proxy.address(), config());
        for _ in 0..3 {
            comes_back(&edge).await;
            assert_eq!(node.links.connected(), 1);
            proxy.block();
            until(|| node.links.connected() == 0).await;
            proxy.unblock();
        }
        comes_back(&edge).await;
        drop(edge);
        until(|| node.links.connected() == 0).await;
    })
    .await;
}
