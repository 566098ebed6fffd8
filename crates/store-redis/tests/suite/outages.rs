use shoal_ports::{Lagged, LogError, Period, Renewal, StoreError};
use tokio::time::timeout;

use crate::fixture::{
    LONG, append, begin, config, config_with, connect, eventually, is_unavailable, new_session,
    node, once_available, session,
};
use crate::server::{IN_MEMORY, LONG_ENOUGH, Server};

#[tokio::test]
async fn a_restart_with_its_data_is_only_an_outage() {
    let durable = [
        "--save",
        "",
        "--appendonly",
        "yes",
        "--appendfsync",
        "always",
    ];
    let mut server = Server::on_socket(&durable).await;
    let (redis, store) = connect(config(&server.url())).await;
    let mut subscribed = store.bus.subscribe();
    let (id, epoch) = session(&store).await;
    let (start, _) = begin(&store, &id, epoch).await;
    let one = append(start, &[b"one"]);
    let at = store.log.append(&id, epoch, one).await.unwrap().last;

    server.kill();
    let down = store.directory.lookup(&id).await.unwrap_err();
    assert!(is_unavailable(&down), "{down}");
    eventually("it is known", || async { redis.status().outage.is_some() }).await;
    server.start_again().await;

    let asked = [(id.clone(), epoch)];
    let held = once_available(|| store.directory.held(&asked)).await;
    assert_eq!(held, Ok(vec![true]));
    let two = append(at, &[b"two"]);
    store.log.append(&id, epoch, two).await.unwrap();
    let page = store.log.read(&id, start, 9).await.unwrap();
    assert_eq!(page.events.len(), 2);
    assert_eq!(store.journal.running(&id, epoch).await.unwrap().len(), 1);
    let next = timeout(LONG_ENOUGH, subscribed.next()).await.unwrap();
    assert_eq!(next, Some(Err(Lagged)));
    assert!(redis.status().reconnects >= 1);
    assert!(redis.status().outage.is_none());
}

#[tokio::test]
async fn a_restart_without_its_data_is_noticed() {
    let mut server = Server::on_socket(&IN_MEMORY).await;
    let (_, store) = connect(config(&server.url())).await;
    let (id, epoch) = session(&store).await;
    let (start, _) = begin(&store, &id, epoch).await;
    store
        .log
        .append(&id, epoch, append(start, &[b"1"]))
        .await
        .unwrap();
    server.start_again().await;

    let directory = &store.directory;
    let placed = once_available(|| directory.lookup(&id)).await;
    assert_eq!(placed, Ok(None));
    let claim = directory.claim(&id, &node("b")).await;
    assert_eq!(claim, Err(StoreError::NotFound));
    let lost = store.log.read(&id, start, 9).await;
    assert_eq!(lost, Err(LogError::Store(StoreError::NotFound)));
    let alive = directory.renew_lease(&node("a"), LONG).await;
    assert_eq!(alive, Ok(Renewal::Begun), "the lease went with the data");

    let epoch = directory.create(new_session(&id, "a")).await.unwrap();
    let (again, _) = begin(&store, &id, epoch).await;
    assert_ne!(again.stream, start.stream);
    store
        .log
        .append(&id, epoch, append(again, &[b"x"]))
        .await
        .unwrap();
    let lost = store.log.read(&id, start, 9).await;
    assert!(matches!(lost, Err(LogError::Gone(_))), "{lost:?}");
}

#[tokio::test]
async fn a_server_that_hangs_is_unavailable_until_it_goes_on() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let (redis, store) = connect(config_with(&server.url(), |redis| {
        redis.response_timeout = Period::millis(200);
        redis.connect_timeout = Period::millis(400);
    }))
    .await;
    let (id, epoch) = session(&store).await;
    let (start, _) = begin(&store, &id, epoch).await;
    server.hang();
    let hanging = store.directory.lookup(&id).await.unwrap_err();
    assert!(is_unavailable(&hanging), "{hanging}");
    eventually("it is known to be down", || async {
        redis
            .status()
            .outage
            .is_some_and(|why| why.contains("in time"))
    })
    .await;
    let commands = redis.status().commands;
    for _ in 0..100 {
        let refused = store.directory.lookup(&id).await.unwrap_err();
        assert!(is_unavailable(&refused), "{refused}");
    }
    assert_eq!(redis.status().commands, commands, "nothing is sent");
    server.go_on();
    let placed = once_available(|| store.directory.lookup(&id)).await;
    assert!(placed.unwrap().is_some());
    store
        .log
        .append(&id, epoch, append(start, &[b"1"]))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_dropped_connection_is_replaced() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let (redis, store) = connect(config(&server.url())).await;
    let (id, _) = session(&store).await;
    for _ in 0..3 {
        let _: i64 = server.ask(&["CLIENT", "KILL", "TYPE", "normal"]).await;
        let placed = once_available(|| store.directory.lookup(&id)).await;
        assert!(placed.unwrap().is_some());
    }
    assert!((1..=3).contains(&redis.status().reconnects));
}

#[tokio::test]
async fn forgotten_scripts_are_sent_again() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let (redis, store) = connect(config(&server.url())).await;
    let (id, epoch) = session(&store).await;
    let _: redis::Value = server.ask(&["SCRIPT", "FLUSH"]).await;
    begin(&store, &id, epoch).await;
    assert_eq!(redis.status().failures, 0);
}

#[tokio::test]
async fn a_demoted_master_is_left() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let (redis, store) = connect(config(&server.url())).await;
    let (id, epoch) = session(&store).await;
    let _: redis::Value = server.ask(&["REPLICAOF", "127.0.0.1", "1"]).await;
    let begun = store.journal.begin(
        &id,
        epoch,
        crate::fixture::opening(&crate::fixture::entry()),
    );
    let refused = begun.await.unwrap_err();
    assert!(
        matches!(&refused, LogError::Store(error) if error.is_outage()),
        "{refused}"
    );
    eventually("it looks for the master", || async {
        redis
            .status()
            .outage
            .is_some_and(|why| why.contains("not a master"))
    })
    .await;
    let _: redis::Value = server.ask(&["REPLICAOF", "NO", "ONE"]).await;
    once_available(|| store.directory.lookup(&id))
        .await
        .unwrap();
    begin(&store, &id, epoch).await;
}
