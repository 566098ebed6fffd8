//! News.
#![allow(
    clippy::unwrap_used,
    reason = "a failed step of the suite is the report"
)]

use std::time::Duration;

use shoal_protocol::RawJson;
use tokio::time::timeout;

use crate::{BusEvent, Store};

pub(super) async fn delivery(store: &Store) {
    let (mut one, mut two) = (store.bus.subscribe(), store.bus.subscribe());
    let news = |n: usize| BusEvent::ResourceUpdated {
        uri: format!("test://{n}"),
        params: RawJson::from_static(r#"{"uri":"test://","unknown":1.0}"#),
    };
    for n in 0..3 {
        store.bus.publish(news(n)).await.unwrap();
    }
    for subscription in [&mut one, &mut two] {
        for n in 0..3 {
            let next = timeout(Duration::from_secs(5), subscription.next())
                .await
                .expect("in time");
            assert_eq!(
                next,
                Some(Ok(news(n))),
                "each subscriber gets all, in order, untouched"
            );
        }
    }
}
