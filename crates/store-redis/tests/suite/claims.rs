use std::collections::HashSet;

use shoal_ports::{LogError, StoreError};

use crate::fixture::{append, begin, config, connect, node, session};
use crate::server::{IN_MEMORY, Server};

#[tokio::test(flavor = "multi_thread")]
async fn one_claim_wins_each_epoch() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let config = config(&server.url());
    let (_, store) = connect(config.clone()).await;
    let (_, elsewhere) = connect(config).await;
    let (id, first) = session(&store).await;
    store.directory.end_lease(&node("a")).await.unwrap();
    let claims = (0..64).map(|n| {
        let directory = if n % 2 == 0 { &store } else { &elsewhere }
            .directory
            .clone();
        let id = id.clone();
        tokio::spawn(async move { directory.claim(&id, &node(&format!("n{n}"))).await })
    });
    let mut epochs = HashSet::new();
    for claim in claims.collect::<Vec<_>>() {
        match claim.await.unwrap() {
            Ok(claim) => {
                assert!(claim.epoch > first);
                assert!(epochs.insert(claim.epoch), "one winner an epoch");
            }
            Err(error) => assert_eq!(error, StoreError::Held),
        }
    }
    assert!(!epochs.is_empty(), "somebody wins");
    let newest = store.directory.lookup(&id).await.unwrap().unwrap().epoch;
    assert_eq!(epochs.iter().max(), Some(&newest));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_fences_every_write_of_the_former_owner() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let (_, store) = connect(config(&server.url())).await;
    let (id, old) = session(&store).await;
    let (start, call) = begin(&store, &id, old).await;
    store.directory.end_lease(&node("a")).await.unwrap();
    let new = store.directory.claim(&id, &node("b")).await.unwrap().epoch;

    let stale = Err(StoreError::Stale);
    let log_stale = LogError::Store(StoreError::Stale);
    let (directory, journal) = (&store.directory, &store.journal);
    let idle = crate::fixture::LONG;
    let record = bytes::Bytes::new;
    assert_eq!(directory.save(&id, old, record(), idle).await, stale);
    assert_eq!(directory.release(&id, old, record(), idle).await, stale);
    assert_eq!(directory.remove(&id, old).await, stale);
    let worker = crate::fixture::binding("x");
    assert_eq!(journal.rebind(&id, old, call, &worker).await, stale);
    let late = crate::fixture::opening(&crate::fixture::entry());
    assert_eq!(journal.begin(&id, old, late).await, Err(log_stale.clone()));
    let late = store.log.append(&id, old, append(start, &[b"late"])).await;
    assert_eq!(late, Err(log_stale));

    store
        .log
        .append(&id, new, append(start, &[b"new"]))
        .await
        .unwrap();
    assert_eq!(journal.running(&id, new).await.unwrap().len(), 1);
}

/// A failover can lose claims.
#[tokio::test]
async fn an_epoch_that_was_lost_is_not_given_out_again() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let config = config(&server.url());
    let key = |id: &shoal_ports::SessionId| format!("{}:{{{id}}}:s", config.redis.prefix);
    let (_, store) = connect(config.clone()).await;
    let (id, _) = session(&store).await;
    let lost = store.directory.claim(&id, &node("a")).await.unwrap().epoch;
    let _: redis::Value = server.ask(&["HSET", &key(&id), "e", "1"]).await;
    let again = store.directory.claim(&id, &node("a")).await.unwrap().epoch;
    assert_ne!(again, lost);
}
