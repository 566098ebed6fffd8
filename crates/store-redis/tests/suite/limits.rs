use bytes::Bytes;
use shoal_ports::{Begin, LogError, Renewal, SessionId, StoreError, StreamSettings};
use shoal_protocol::StreamId;
use shoal_store_redis::RedisConfig;

use crate::fixture::{
    BYTES, LONG, append, begin, config, config_with, connect, ending, entry, is_unavailable,
    new_session, node, opening, session,
};
use crate::server::{IN_MEMORY, Server};

const FULL: fn(&LogError) -> bool = |error| matches!(error, LogError::Store(StoreError::Full(_)));

#[tokio::test]
async fn a_full_redis_admits_nothing_and_ends_what_it_admitted() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let (redis, store) = connect(config(&server.url())).await;
    let (id, epoch) = session(&store).await;
    let (directory, journal) = (&store.directory, &store.journal);
    let open = entry();
    let opened = opening(&open);
    let start = journal
        .begin(&id, epoch, opened.clone())
        .await
        .unwrap()
        .id();
    let _: redis::Value = server.ask(&["CONFIG", "SET", "maxmemory", "1"]).await;

    let new = directory
        .create(new_session(&SessionId::random(), "a"))
        .await;
    assert!(matches!(new, Err(StoreError::Full(_))), "{new:?}");
    let more = journal.begin(&id, epoch, opening(&entry())).await;
    assert!(more.as_ref().is_err_and(FULL), "{more:?}");
    let repeated = journal.begin(&id, epoch, opened).await;
    assert_eq!(
        repeated.map(shoal_ports::Begun::id),
        Ok(start),
        "what was begun is begun"
    );

    let held = entry();
    let running = Begin {
        running: true,
        ..opening(&held)
    };
    let runs = journal.begin(&id, epoch, running).await.unwrap().id();
    let end = ending(runs, &[&[b'x'; 1000]], held.call);
    assert!(store.log.append(&id, epoch, end).await.unwrap().finished);

    let renewed = directory.renew_lease(&node("a"), LONG).await;
    assert_eq!(renewed, Ok(Renewal::Kept));
    let claim = directory.claim(&id, &node("a")).await.unwrap();
    let (epoch, record) = (claim.epoch, claim.record);
    directory
        .save(&id, epoch, record.clone(), LONG)
        .await
        .unwrap();
    let worker = crate::fixture::binding("x");
    journal
        .rebind(&id, epoch, open.call, &worker)
        .await
        .unwrap();
    let standalone = store.log.last(&id, StreamId::STANDALONE).await.unwrap();
    for after in [standalone, start] {
        let event = append(after, &[&[b'x'; 1000]]);
        let appended = store.log.append(&id, epoch, event.clone()).await;
        assert_eq!(appended.as_ref().unwrap().last.sequence, 1);
        let repeated = store.log.append(&id, epoch, event).await;
        assert_eq!(repeated, appended);
    }
    let one = store.log.last(&id, start.stream).await.unwrap();
    let end = ending(one, &[&[b'x'; 1000]], open.call);
    assert!(store.log.append(&id, epoch, end).await.unwrap().finished);
    assert!(store.log.read(&id, start, 9).await.unwrap().finished);
    directory.release(&id, epoch, record, LONG).await.unwrap();
    directory.remove(&id, epoch).await.unwrap();
    directory.end_lease(&node("a")).await.unwrap();
    assert_eq!(redis.status().reconnects, 0, "full is not broken");

    let _: redis::Value = server.ask(&["CONFIG", "SET", "maxmemory", "0"]).await;
    session(&store).await;
}

#[tokio::test]
async fn a_session_keeps_no_more_bytes_than_it_may() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let config = config(&server.url());
    let prefix = config.redis.prefix.clone();
    let (_, store) = connect(config).await;
    let (id, epoch) = session(&store).await;
    let key = format!("{prefix}:{{{id}}}:s");
    let bytes = async || -> usize { server.ask(&["HGET", &key, "b"]).await };
    let half = vec![b'x'; BYTES / 2];

    let (kept, call) = begin(&store, &id, epoch).await;
    let (open, _) = begin(&store, &id, epoch).await;
    let end = ending(kept, &[&half], call);
    store.log.append(&id, epoch, end).await.unwrap();
    let one = store.log.append(&id, epoch, append(open, &[&half])).await;
    let one = one.unwrap().last;
    assert_eq!(bytes().await, BYTES, "exactly full");
    assert!(store.log.read(&id, kept, 9).await.unwrap().finished);

    let two = store.log.append(&id, epoch, append(one, &[&half])).await;
    let two = two.unwrap().last;
    assert_eq!(bytes().await, BYTES);
    let freed = store.log.read(&id, kept, 9).await;
    assert!(
        matches!(freed, Err(LogError::Gone(_))),
        "finished streams go"
    );
    let full = store.log.append(&id, epoch, append(two, &[b"x"])).await;
    assert!(full.as_ref().is_err_and(FULL), "{full:?}");
    let full = store.journal.begin(&id, epoch, opening(&entry())).await;
    assert!(full.as_ref().is_err_and(FULL), "it could not end: {full:?}");
    let page = store.log.read(&id, open, 9).await.unwrap();
    assert_eq!(page.events.len(), 2, "a running stream keeps all that fits");
    let nothing = store.log.append(&id, epoch, append(two, &[])).await;
    assert_eq!(nothing.unwrap().last, two);
}

#[tokio::test]
async fn trimmed_events_make_room() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let (_, store) = connect(RedisConfig {
        streams: StreamSettings {
            events_per_stream: 4,
            ..config(&server.url()).streams
        },
        ..config(&server.url())
    })
    .await;
    let (id, epoch) = session(&store).await;
    let (mut at, _) = begin(&store, &id, epoch).await;
    let start = at;
    let eighth = vec![b'x'; BYTES / 8];
    for _ in 0..64 {
        let appended = store.log.append(&id, epoch, append(at, &[&eighth])).await;
        at = appended.unwrap().last;
    }
    let five: [&[u8]; 6] = [b"1", b"2", b"3", b"4", b"5", b"6"];
    let last = store
        .log
        .append(&id, epoch, append(at, &five))
        .await
        .unwrap();
    let after = shoal_protocol::EventId {
        sequence: last.last.sequence - 4,
        ..last.last
    };
    let page = store.log.read(&id, after, 9).await.unwrap();
    let data: Vec<Bytes> = page.events.into_iter().map(|event| event.data).collect();
    assert_eq!(data, ["3", "4", "5", "6"]);
    let gone = store.log.read(&id, start, 9).await;
    assert!(matches!(gone, Err(LogError::Gone(_))), "{gone:?}");
    let standalone = store.log.last(&id, StreamId::STANDALONE).await.unwrap();
    assert_eq!(standalone.sequence, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_commands_are_refused_at_once() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let (redis, store) = connect(config_with(&server.url(), |redis| redis.commands = 4)).await;
    let (id, _) = session(&store).await;
    server.hang();
    let waiting = (0..16).map(|_| {
        let (directory, id) = (store.directory.clone(), id.clone());
        tokio::spawn(async move { directory.lookup(&id).await })
    });
    let waiting: Vec<_> = waiting.collect();
    crate::fixture::eventually("some are refused", || async {
        waiting.iter().filter(|task| task.is_finished()).count() == 12
    })
    .await;
    assert_eq!(redis.status().in_flight, 4);
    server.go_on();
    let mut refused = 0;
    for task in waiting {
        match task.await.unwrap() {
            Ok(placed) => assert!(placed.is_some()),
            Err(error) => {
                assert!(is_unavailable(&error), "{error}");
                refused += 1;
            }
        }
    }
    assert_eq!(refused, 12);
}

#[tokio::test]
async fn events_that_somebody_else_removed_are_told_to_be_gone() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let config = config(&server.url());
    let prefix = config.redis.prefix.clone();
    let (_, store) = connect(config).await;
    let (id, epoch) = session(&store).await;
    let (start, _) = begin(&store, &id, epoch).await;
    let log = &store.log;
    let removed = append(start, &[b"1", b"2", b"3"]);
    let last = log.append(&id, epoch, removed).await.unwrap().last;
    let key = format!("{prefix}:{{{id}}}:s:{}:{}", start.epoch, start.stream.0);
    let keys: u64 = server.ask(&["DEL", &key]).await;
    assert_eq!(keys, 1, "{key}");
    let more = append(last, &[b"4", b"5", b"6"]);
    let appended = log.append(&id, epoch, more).await.unwrap();
    assert_eq!(appended.kept, 3);
    for limit in [1, 3, 9] {
        let page = log.read(&id, start, limit).await;
        assert!(matches!(page, Err(LogError::Gone(_))), "{page:?}");
    }
    let page = log.read(&id, last, 9).await.unwrap();
    assert_eq!(page.events.len(), 3, "what is there is read");
    let life: i64 = server.ask(&["PTTL", &key]).await;
    assert!(life > 0, "and goes by itself: {life}");
}
