use std::time::Duration;

use futures::FutureExt as _;
use serde_json::json;
use shoal_ports::{Dispatcher as _, PoolCatalog, ResourceUpdated};
use shoal_protocol::{RawJson, code};
use tokio::time::timeout;

use crate::fake_worker::{FakeWorker, UPDATES};
use crate::setting::{items, setting, tools};

const URI: &str = "r://1";

fn resources() -> PoolCatalog {
    PoolCatalog {
        resources: items(json!([{"uri":URI,"name":"r"}])),
        ..PoolCatalog::default()
    }
}

async fn followed() {
    tokio::task::yield_now().await;
}

#[tokio::test]
async fn the_first_subscriber_subscribes_every_worker_and_the_last_ends_it() {
    let setting = setting();
    let workers = ["w1", "w2"].map(|id| setting.add(FakeWorker::new(id, "a", resources())));
    followed().await;
    setting.dispatch.subscribe(None, URI).await.unwrap();
    setting.dispatch.subscribe(None, URI).await.unwrap();
    setting.dispatch.unsubscribe(URI).await;
    for worker in &workers {
        assert_eq!(*worker.subscribed.lock(), [URI]);
        assert!(worker.unsubscribed.lock().is_empty());
    }
    assert_eq!(setting.dispatch.status().subscriptions, 1);
    for _ in 0..2 {
        setting.dispatch.unsubscribe(URI).await;
    }
    for worker in &workers {
        assert_eq!(*worker.unsubscribed.lock(), [URI]);
    }
    assert_eq!(setting.dispatch.status().subscriptions, 0);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_appears_is_subscribed() {
    let setting = setting();
    let first = setting.add(FakeWorker::new("w1", "a", resources()));
    setting.dispatch.subscribe(None, URI).await.unwrap();
    let late = setting.add(FakeWorker::new("w2", "a", resources()));
    setting.until(|_| late.subscribed.lock().len() == 1).await;
    first.announce(None, None);
    setting
        .until(|d| !d.status().pools[0].workers[1].ready)
        .await;
    first.announce(Some(resources()), None);
    setting.until(|_| first.subscribed.lock().len() == 2).await;
}

#[tokio::test]
async fn a_refusal_or_an_unknown_resource_is_an_error() {
    let setting = setting();
    setting.add(FakeWorker::new("w0", "0", tools(&[])));
    let mut refusing = FakeWorker::new("w1", "a", resources());
    refusing.refuses_subscriptions = true;
    setting.add(refusing);
    assert_eq!(
        setting
            .dispatch
            .subscribe(None, URI)
            .await
            .unwrap_err()
            .message,
        "no"
    );
    assert_eq!(setting.dispatch.status().subscriptions, 0);
    let error = setting.dispatch.subscribe(None, "r://2").await.unwrap_err();
    assert_eq!(error.code, code::RESOURCE_NOT_FOUND);
}

#[tokio::test]
async fn a_subscriber_that_does_not_wait_is_not_counted() {
    let setting = setting();
    let worker = setting.add(FakeWorker::new("w1", "a", resources()));
    followed().await;
    let answering = worker.subscribing.lock().await;
    assert!(
        setting
            .dispatch
            .subscribe(None, URI)
            .now_or_never()
            .is_none()
    );
    assert_eq!(*worker.subscribed.lock(), [URI]);
    drop(answering);
    setting.until(|d| d.status().subscriptions == 0).await;
    assert_eq!(*worker.unsubscribed.lock(), [URI]);
    setting.dispatch.subscribe(None, URI).await.unwrap();
    assert_eq!(*worker.subscribed.lock(), [URI; 2]);
    setting.dispatch.unsubscribe(URI).await;
    assert_eq!(setting.dispatch.status().subscriptions, 0);
}

#[tokio::test]
async fn a_subscriber_that_does_not_wait_takes_nobody_else_along() {
    let setting = setting();
    let worker = setting.add(FakeWorker::new("w1", "a", resources()));
    followed().await;
    let answering = worker.subscribing.lock().await;
    let mut first = setting.dispatch.subscribe(None, URI);
    assert!((&mut first).now_or_never().is_none());
    let mut second = setting.dispatch.subscribe(None, URI);
    assert!((&mut second).now_or_never().is_none());
    drop(first);
    drop(answering);
    second.await.unwrap();
    setting.dispatch.unsubscribe(URI).await;
    assert_eq!(setting.dispatch.status().subscriptions, 0);
    assert_eq!(*worker.unsubscribed.lock(), [URI]);
}

#[tokio::test]
async fn a_subscriber_that_leaves_need_not_wait_for_it() {
    let setting = setting();
    let worker = setting.add(FakeWorker::new("w1", "a", resources()));
    followed().await;
    setting.dispatch.subscribe(None, URI).await.unwrap();
    let answering = worker.subscribing.lock().await;
    let _ = setting.dispatch.unsubscribe(URI).now_or_never();
    setting
        .until(|_| worker.unsubscribed.lock().len() == 1)
        .await;
    drop(answering);
    setting.until(|d| d.status().subscriptions == 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_never_answers_holds_up_nobody_for_long() {
    let setting = setting();
    let worker = setting.add(FakeWorker::new("w1", "a", resources()));
    followed().await;
    setting.dispatch.subscribe(None, URI).await.unwrap();
    let _answering = worker.subscribing.lock().await;
    let told = setting.dispatch.unsubscribe(URI);
    timeout(Duration::from_secs(60), told).await.unwrap();
    assert_eq!(setting.dispatch.status().subscriptions, 0);
}

#[tokio::test]
async fn updates_of_every_worker_reach_whoever_listens() {
    let setting = setting();
    let mut updates = setting.dispatch.resource_updates();
    let worker = setting.add(FakeWorker::new("w1", "a", resources()));
    let event = ResourceUpdated {
        uri: URI.into(),
        params: RawJson::from_static(r#"{"uri":"r://1"}"#),
    };
    worker.report(event.clone());
    assert_eq!(updates.recv().await, Ok(event));
}

#[tokio::test]
async fn who_may_have_missed_an_update_is_told_of_every_resource_of_the_pool() {
    let setting = setting();
    let mut updates = setting.dispatch.resource_updates();
    let worker = setting.add(FakeWorker::new("w1", "a", resources()));
    followed().await;
    setting.dispatch.subscribe(None, URI).await.unwrap();
    let of_another = ResourceUpdated {
        uri: "r://2".into(),
        params: RawJson::from_static(r#"{"uri":"r://2"}"#),
    };
    for _ in 0..=UPDATES {
        worker.report(of_another.clone());
    }
    assert_eq!(updates.recv().await.unwrap().uri, URI);
    for _ in 0..UPDATES {
        assert_eq!(updates.recv().await, Ok(of_another.clone()));
    }
}
