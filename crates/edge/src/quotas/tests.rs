use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::{join_all, pending};
use shoal_ports::memory::MemoryQuotas;
use shoal_ports::{
    CellRate, Principal, QuotaCells, QuotaConfig, QuotaKey, QuotaPer, StoreError, Taken,
};
use shoal_protocol::Body;
use tokio::sync::Barrier;
use tokio::time::{Instant, advance, sleep};

use super::{ASKED_AT_ONCE, AT_ONCE, PAUSE, Quotas};
use crate::refusal::Refusal;

const LIFE_AND_MORE: std::time::Duration = std::time::Duration::from_secs(3);

#[derive(Default)]
struct Store {
    cells: MemoryQuotas,
    away: AtomicBool,
    hangs: AtomicBool,
    asked: AtomicUsize,
    together: Option<Barrier>,
}

#[async_trait]
impl QuotaCells for Store {
    async fn take(
        &self,
        key: &QuotaKey,
        rate: CellRate,
        need: u32,
        want: u32,
    ) -> Result<Taken, StoreError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
        if self.hangs.load(Ordering::Relaxed) {
            return pending().await;
        }
        match self.away.load(Ordering::Relaxed) {
            true => Err(StoreError::Away("test".to_owned())),
            false => self.cells.take(key, rate, need, want).await,
        }
    }

    async fn give_back(
        &self,
        key: &QuotaKey,
        rate: CellRate,
        cells: u32,
    ) -> Result<(), StoreError> {
        if self.hangs.load(Ordering::Relaxed) {
            return pending().await;
        }
        if let Some(together) = &self.together {
            together.wait().await;
        }
        match self.away.load(Ordering::Relaxed) {
            true => Err(StoreError::Away("test".to_owned())),
            false => self.cells.give_back(key, rate, cells).await,
        }
    }
}

fn quota(per: QuotaPer, burst: u32) -> QuotaConfig {
    QuotaConfig {
        name: "some".to_owned(),
        per,
        tools: Vec::new(),
        rate: "1/h".parse().ok(),
        burst: Some(burst),
        concurrent: None,
    }
}

fn edges(store: &Arc<Store>, count: usize, quota: &QuotaConfig) -> Vec<Quotas> {
    let edge = || {
        let edge = Quotas::new(store.clone(), move || count);
        edge.set(std::slice::from_ref(quota));
        edge
    };
    std::iter::repeat_with(edge).take(count).collect()
}

fn body(text: &'static str) -> Body {
    Body::parse(&Bytes::from_static(text.as_bytes()), 64).unwrap()
}

fn call() -> Body {
    body(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}"#)
}

async fn passes(edge: &Quotas, principal: &str) -> bool {
    let principal = Principal::new(principal);
    edge.admit(&principal, &call(), Instant::now())
        .await
        .is_ok()
}

async fn admitted(edge: &Quotas, calls: usize) -> usize {
    let calls = join_all((0..calls).map(|_| passes(edge, "alice"))).await;
    calls.into_iter().filter(|passed| *passed).count()
}

#[tokio::test(start_paused = true)]
async fn three_edges_let_through_what_one_bucket_holds_with_few_questions() {
    let store = Arc::new(Store::default());
    let edges = edges(&store, 3, &quota(QuotaPer::Principal, 1_000));
    let mut passed = 0;
    for edge in &edges {
        passed += admitted(edge, 100).await;
    }
    assert_eq!(passed, 300);
    let asked = store.asked.load(Ordering::Relaxed);
    assert!(asked < 40, "{asked}");
    for edge in &edges {
        passed += admitted(edge, 1_000).await;
    }
    assert!(passed <= 1_000);
    for edge in &edges {
        edge.close().await;
    }
    advance(LIFE_AND_MORE).await;
    passed += admitted(&edges[0], 1_000).await;
    assert_eq!(passed, 1_000);
    assert!(passes(&edges[0], "bob").await, "alice's quota is hers");
}

#[tokio::test(start_paused = true)]
async fn what_nobody_uses_goes_back_by_itself() {
    let store = Arc::new(Store::default());
    let edges = edges(&store, 2, &quota(QuotaPer::All, 100));
    assert_eq!(admitted(&edges[0], 20).await, 20);
    for _ in 0..10 {
        advance(LIFE_AND_MORE).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(admitted(&edges[1], 100).await, 80);
}

#[tokio::test(start_paused = true)]
async fn who_hangs_up_takes_nothing_along() {
    let store = Arc::new(Store::default());
    let edge = edges(&store, 1, &quota(QuotaPer::All, 10)).remove(0);
    assert_eq!(passes(&edge, "alice").now_or_never(), None, "it asks");
    tokio::task::yield_now().await;
    assert_eq!(admitted(&edge, 20).await, 10);
    let one = QuotaConfig {
        concurrent: Some(1),
        ..quota(QuotaPer::Principal, 10)
    };
    edge.set(&[one]);
    assert_eq!(passes(&edge, "alice").now_or_never(), None, "it asks");
    assert!(passes(&edge, "alice").await, "its place is free again");
    assert!(passes(&edge, "bob").await, "who waits takes one place");
}

#[tokio::test(start_paused = true)]
async fn without_the_store_each_edge_has_its_share_and_says_so() {
    let store = Arc::new(Store::default());
    let edges = edges(&store, 2, &quota(QuotaPer::All, 40));
    store.away.store(true, Ordering::Relaxed);
    assert_eq!(admitted(&edges[0], 100).await, 20);
    assert!(edges[0].trouble().unwrap().contains("Redis is away"));
    assert_eq!(store.asked.load(Ordering::Relaxed), 1, "once in a while");
    assert_eq!(admitted(&edges[1], 100).await, 20);
    store.away.store(false, Ordering::Relaxed);
    advance(PAUSE * 2).await;
    assert_eq!(admitted(&edges[0], 100).await, 40);
    assert_eq!(edges[0].trouble(), None);
}

#[tokio::test(start_paused = true)]
async fn operators_hear_that_the_store_is_back_also_when_nobody_calls() {
    let store = Arc::new(Store::default());
    let edge = edges(&store, 1, &quota(QuotaPer::All, 10)).remove(0);
    store.away.store(true, Ordering::Relaxed);
    assert!(passes(&edge, "alice").await);
    sleep(PAUSE * 3).await;
    assert!(edge.trouble().is_some());
    store.away.store(false, Ordering::Relaxed);
    sleep(PAUSE * 3).await;
    assert_eq!(edge.trouble(), None);
}

#[tokio::test(start_paused = true)]
async fn one_waits_for_a_store_that_hangs_and_no_other() {
    let store = Arc::new(Store::default());
    let edge = edges(&store, 1, &quota(QuotaPer::Principal, 10)).remove(0);
    store.hangs.store(true, Ordering::Relaxed);
    assert!(passes(&edge, "first").await);
    assert_eq!(store.asked.load(Ordering::Relaxed), 1);
    sleep(PAUSE * 3 / 2).await;
    let principals: Vec<_> = (0..50)
        .map(|number| format!("principal {number}"))
        .collect();
    let calls = join_all(principals.iter().map(|name| passes(&edge, name))).await;
    assert!(calls.into_iter().all(|passed| passed));
    let asked = store.asked.load(Ordering::Relaxed);
    assert!(asked <= 2, "{asked}");
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_let_through_whole_or_not_at_all() {
    let edge = Quotas::embedded();
    let few = QuotaConfig {
        tools: vec!["a*".to_owned()],
        ..quota(QuotaPer::All, 3)
    };
    edge.set(&[few]);
    let alice = Principal::new("alice");
    let two = body(
        r#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}},
            {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"\u0061dd"}},
            {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo"}},
            {"jsonrpc":"2.0","id":4,"method":"ping"}]"#,
    );
    assert!(edge.admit(&alice, &two, Instant::now()).await.is_ok());
    let refused = edge
        .admit(&alice, &two, Instant::now())
        .await
        .err()
        .unwrap();
    let Refusal::QuotaUsedUp { wait, .. } = &refused else {
        panic!("{refused}");
    };
    assert_eq!(wait.as_secs(), 3600);
    let data = refused.error().data.unwrap();
    assert_eq!(data.as_str(), r#"{"quota":"some","retryAfterMs":3600000}"#);
    assert!(edge.admit(&alice, &call(), Instant::now()).await.is_ok());
    let ping = body(r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#);
    assert!(edge.admit(&alice, &ping, Instant::now()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn calls_under_way_are_counted_until_they_are_answered() {
    let edge = Quotas::embedded();
    let two = QuotaConfig {
        rate: None,
        burst: None,
        concurrent: Some(2),
        ..quota(QuotaPer::Principal, 1)
    };
    edge.set(&[two]);
    let (alice, bob) = (Principal::new("alice"), Principal::new("bob"));
    let one = edge.admit(&alice, &call(), Instant::now()).await.ok();
    let two = edge.admit(&alice, &call(), Instant::now()).await.ok();
    assert!(one.is_some() && two.is_some());
    let third = edge
        .admit(&alice, &call(), Instant::now())
        .await
        .err()
        .unwrap();
    assert!(
        matches!(third, Refusal::QuotaPlaces { limit: 2, .. }),
        "{third}"
    );
    let data = third.error().data.unwrap();
    assert_eq!(data.as_str(), r#"{"quota":"some","retryAfterMs":1000}"#);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let three = Body::parse(&Bytes::from(format!("[{ping},{ping},{ping}]")), 64).unwrap();
    let never = edge
        .admit(&bob, &three, Instant::now())
        .await
        .err()
        .unwrap();
    assert!(
        matches!(never, Refusal::BatchOverQuota { count: 3, .. }),
        "{never}"
    );
    assert!(edge.admit(&bob, &call(), Instant::now()).await.is_ok());
    drop(one);
    assert!(edge.admit(&alice, &call(), Instant::now()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_stays_keeps_its_count() {
    let edge = Quotas::embedded();
    let one = quota(QuotaPer::All, 1);
    let other = QuotaConfig {
        name: "other".to_owned(),
        ..quota(QuotaPer::All, 50)
    };
    edge.set(std::slice::from_ref(&one));
    assert!(passes(&edge, "alice").await);
    edge.set(&[one, other]);
    assert!(!passes(&edge, "alice").await);
    edge.set(&[]);
    assert!(passes(&edge, "alice").await);
}

async fn arrivals(edge: &Quotas, addresses: u32) -> usize {
    let arrive = |number: u32| {
        let address = IpAddr::V4(Ipv4Addr::from(number));
        edge.arrive(Some(address), Instant::now())
    };
    let all: Vec<_> = (0..addresses).map(arrive).collect();
    let mut passed = 0;
    for mut arriving in all.into_iter().map(Box::pin) {
        passed += usize::from(arriving.as_mut().now_or_never().is_some());
        tokio::task::yield_now().await;
    }
    passed
}

#[tokio::test(start_paused = true)]
async fn however_many_addresses_there_are_few_questions_are_open() {
    let store = Arc::new(Store::default());
    let edge = edges(&store, 1, &quota(QuotaPer::Address, 10)).remove(0);
    store.hangs.store(true, Ordering::Relaxed);
    assert_eq!(arrivals(&edge, 5_000).await, 5_000 - ASKED_AT_ONCE);
    assert_eq!(store.asked.load(Ordering::Relaxed), ASKED_AT_ONCE);
}

#[tokio::test(start_paused = true)]
async fn a_sweep_gives_back_many_at_a_time() {
    let store = Arc::new(Store {
        together: Some(Barrier::new(AT_ONCE)),
        ..Store::default()
    });
    let edge = edges(&store, 1, &quota(QuotaPer::Address, 1_000)).remove(0);
    for number in 0..u32::try_from(AT_ONCE).unwrap() {
        let address = IpAddr::V4(Ipv4Addr::from(number));
        for _ in 0..4 {
            edge.arrive(Some(address), Instant::now()).await.unwrap();
        }
    }
    sleep(LIFE_AND_MORE).await;
    assert_eq!(edge.trouble(), None, "nobody has waited for another");
}
