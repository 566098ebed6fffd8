#![allow(
    clippy::unwrap_used,
    reason = "a failed step of the suite is the report"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use super::{LONG, node};
use crate::{NodeInfo, Store};

pub(super) async fn coming_and_going(store: &Store) {
    let membership = &store.membership;
    let info = |name: &str| NodeInfo {
        id: node(name),
        address: format!("{name}:7000"),
        session: true,
        edge: false,
        draining: false,
        starting: false,
        pools: vec!["tools".to_owned()],
        sessions: 3,
        in_flight: 0,
        version: "1".to_owned(),
    };
    assert!(membership.nodes().await.unwrap().is_empty());
    membership.announce(&info("a"), LONG).await.unwrap();
    membership.announce(&info("b"), LONG).await.unwrap();
    let brief = Duration::from_millis(30);
    membership.announce(&info("c"), brief).await.unwrap();
    tokio::time::sleep(brief * 3).await;

    let mut nodes = membership.nodes().await.unwrap();
    nodes.sort_by(|one, other| one.id.cmp(&other.id));
    assert_eq!(
        nodes,
        [info("a"), info("b")],
        "what is said no more is over"
    );

    let draining = NodeInfo {
        draining: true,
        ..info("a")
    };
    membership.announce(&draining, LONG).await.unwrap();
    membership.withdraw(&node("b")).await.unwrap();
    assert_eq!(membership.nodes().await.unwrap(), [draining]);
}

pub(super) async fn remembered_pools(store: &Store) {
    let membership = &store.membership;
    let pools = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    assert!(membership.remembered_pools().await.unwrap().is_empty());
    let both = pools(&["one", "other"]);
    membership.remember_pools(&both, LONG).await.unwrap();
    assert_eq!(membership.remembered_pools().await.unwrap(), both);
    let brief = Duration::from_millis(30);
    membership
        .remember_pools(&pools(&["one"]), brief)
        .await
        .unwrap();
    tokio::time::sleep(brief * 3).await;
    assert!(
        membership.remembered_pools().await.unwrap().is_empty(),
        "for so long only"
    );
}

pub(super) async fn remembered_catalogs(store: &Store) {
    let membership = &store.membership;
    let remembered = async |pool: &str| membership.remembered_catalog(pool).await.unwrap();
    assert_eq!(remembered("one").await, None);
    let any = [0, 1, 255].as_slice();
    membership.remember_catalog("one", any, LONG).await.unwrap();
    membership
        .remember_catalog("other", b"{}", LONG)
        .await
        .unwrap();
    assert_eq!(remembered("one").await.as_deref(), Some(any));
    assert_eq!(remembered("other").await.as_deref(), Some(&b"{}"[..]));
    let brief = Duration::from_millis(30);
    let remember = async |pool: &str, life| {
        let remembered = membership.remember_catalog(pool, any, life);
        remembered.await.unwrap();
    };
    let keep = async |pool: &str, catalog: &[u8]| {
        let kept = membership.keep_catalog(pool, catalog, LONG);
        kept.await.unwrap();
    };
    let forgotten = async |pool: &str| {
        let forgotten = async {
            while remembered(pool).await.is_some() {
                tokio::time::sleep(brief / 10).await;
            }
        };
        let forgotten = tokio::time::timeout(LONG, forgotten).await;
        forgotten.expect("it is remembered for so long only");
    };
    remember("one", brief).await;
    forgotten("one").await;
    keep("one", any).await;
    keep("one", b"new").await;
    assert_eq!(
        remembered("one").await.as_deref(),
        Some(any),
        "it stays as it is"
    );
    // On a busy machine, the catalog may expire between the two steps.
    for _ in 0..100 {
        remember("one", brief).await;
        keep("one", b"new").await;
        if remembered("one").await.as_deref() == Some(any) {
            break;
        }
    }
    remember("later", brief).await;
    forgotten("later").await;
    assert_eq!(
        remembered("one").await.as_deref(),
        Some(any),
        "it stays longer"
    );
    membership.forget_catalog("one").await.unwrap();
    membership.forget_catalog("one").await.unwrap();
    assert_eq!(remembered("one").await, None);
    assert!(remembered("other").await.is_some());
}

pub(super) async fn settled_names(store: &Store) {
    let membership = &store.membership;
    let names = |kept: &[(&str, &str)]| -> BTreeMap<String, String> {
        let owned = |(name, pool): &(&str, &str)| ((*name).to_owned(), (*pool).to_owned());
        kept.iter().map(owned).collect()
    };
    let both = ["one", "other"].map(str::to_owned);
    assert!(membership.settled_names().await.unwrap().is_empty());
    let first = names(&[("tool a", "one"), ("tool b", "other")]);
    let settled = membership.settle_names(&first, &both, LONG).await.unwrap();
    assert_eq!(settled, first);
    let second = names(&[("tool a", "other"), ("tool c", "one")]);
    let settled = membership.settle_names(&second, &both, LONG).await.unwrap();
    let due = names(&[("tool a", "one"), ("tool c", "one")]);
    assert_eq!(settled, due, "who has it keeps it, and b is free");
    assert_eq!(membership.settled_names().await.unwrap(), due);
    let last = &both[1..];
    let settled = membership.settle_names(&second, last, LONG).await.unwrap();
    assert_eq!(settled["tool a"], "other", "the pool has left for good");
    let none = membership.settle_names(&names(&[]), &both, LONG).await;
    assert!(none.unwrap().is_empty());
    assert!(membership.settled_names().await.unwrap().is_empty());
    let brief = Duration::from_millis(30);
    membership.settle_names(&first, &both, brief).await.unwrap();
    tokio::time::sleep(brief * 3).await;
    assert!(
        membership.settled_names().await.unwrap().is_empty(),
        "for so long only"
    );
}
