#![allow(
    clippy::unwrap_used,
    reason = "a failed step of the suite is the report"
)]

use std::time::Duration;

use tokio::time::timeout;

use crate::{ClusterEvent, NodeId, Store};

pub(super) async fn delivery(store: &Store) {
    let (mut one, mut two) = (store.bus.subscribe(), store.bus.subscribe());
    let events = ["n", "m", "o"].map(|node| ClusterEvent::NodeLeft {
        node: NodeId::new(node),
    });
    for event in &events {
        store.bus.publish(event.clone()).await.unwrap();
    }
    for subscription in [&mut one, &mut two] {
        for event in &events {
            let next = timeout(Duration::from_secs(5), subscription.next())
                .await
                .expect("in time");
            assert_eq!(
                next,
                Some(Ok(event.clone())),
                "each subscriber gets all, in order, untouched"
            );
        }
    }
}
