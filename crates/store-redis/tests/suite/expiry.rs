use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use shoal_ports::{LogError, StoreError, StreamSettings};
use shoal_protocol::StreamId;
use shoal_store_redis::RedisConfig;
use tokio::time::sleep;

use crate::fixture::{
    LONG, append, begin, config, connect, ending, entry, entry_with, eventually, node, opening,
    session,
};
use crate::server::{IN_MEMORY, Server};

const BRIEF: Duration = Duration::from_millis(50);

#[tokio::test]
async fn finished_streams_go_after_their_time_and_make_room() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let config = RedisConfig {
        streams: StreamSettings {
            retention: BRIEF.into(),
            ..config(&server.url()).streams
        },
        ..config(&server.url())
    };
    let prefix = config.redis.prefix.clone();
    let (_, store) = connect(config).await;
    let (id, epoch) = session(&store).await;
    let key = format!("{prefix}:{{{id}}}:s");
    let mut streams = Vec::new();
    for _ in 0..5 {
        let call = entry();
        let opening = opening(&call);
        let delivery = opening.delivery;
        let start = store.journal.begin(&id, epoch, opening).await.unwrap().id();
        let end = ending(start, &[b"result"], call.call);
        store.log.append(&id, epoch, end).await.unwrap();
        streams.push((start, delivery));
    }
    sleep(BRIEF * 3).await;
    for (start, _) in &streams {
        let read = store.log.read(&id, *start, 9).await;
        assert!(matches!(read, Err(LogError::Gone(_))), "{read:?}");
    }
    begin(&store, &id, epoch).await;
    let settling = entry_with(0);
    let opening = opening(&settling);
    let start = store.journal.begin(&id, epoch, opening).await.unwrap().id();
    let end = ending(start, &[b"end"], settling.call);
    let ended = store.log.append(&id, epoch, end).await.unwrap();
    assert_eq!(ended.kept, 3);
    let fields: BTreeMap<String, String> = server.ask(&["HGETALL", &key]).await;
    let of_streams = |field: &&String| field.starts_with(['s', 'd', 'f']);
    let left: Vec<_> = fields.keys().filter(of_streams).collect();
    assert_eq!(
        left.len(),
        5,
        "of two streams, one of them finished: {left:?}"
    );
    for (start, delivery) in streams {
        assert_eq!(store.journal.delivered(&id, delivery).await, Ok(None));
        let last = store.log.last(&id, start.stream).await;
        assert!(matches!(last, Err(LogError::Gone(_))), "{last:?}");
    }
    assert_eq!(store.journal.running(&id, epoch).await.unwrap().len(), 1);
}

#[tokio::test]
async fn old_events_of_the_standalone_stream_go() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let (_, store) = connect(RedisConfig {
        streams: StreamSettings {
            retention: BRIEF.into(),
            ..config(&server.url()).streams
        },
        ..config(&server.url())
    })
    .await;
    let (id, epoch) = session(&store).await;
    let start = store.log.last(&id, StreamId::STANDALONE).await.unwrap();
    let mut at = start;
    for _ in 0..4 {
        let appended = store.log.append(&id, epoch, append(at, &[b"news"])).await;
        at = appended.unwrap().last;
        sleep(BRIEF * 2).await;
    }
    let gone = store.log.read(&id, start, 9).await;
    assert!(matches!(gone, Err(LogError::Gone(_))), "{gone:?}");
    let newest = shoal_protocol::EventId {
        sequence: at.sequence - 1,
        ..at
    };
    let page = store.log.read(&id, newest, 9).await.unwrap();
    assert_eq!(page.events.len(), 1);
    assert!(!page.finished);
}

#[tokio::test]
async fn a_touched_session_keeps_its_streams_and_an_untouched_one_goes() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let (_, store) = connect(config(&server.url())).await;
    let (id, epoch) = session(&store).await;
    let idle = Duration::from_millis(400);
    let save = async || {
        let record = Bytes::from_static(b"record");
        store.directory.save(&id, epoch, record, idle).await
    };
    save().await.unwrap();
    let (start, _) = begin(&store, &id, epoch).await;
    let one = append(start, &[b"one"]);
    store.log.append(&id, epoch, one).await.unwrap();
    for _ in 0..30 {
        sleep(idle / 4).await;
        save().await.unwrap();
    }
    let page = store.log.read(&id, start, 9).await.unwrap();
    assert_eq!(page.events.len(), 1);

    eventually("the session goes", || async {
        store.directory.lookup(&id).await.unwrap().is_none()
    })
    .await;
    assert_eq!(save().await, Err(StoreError::NotFound));
    assert_eq!(store.directory.sweep().await, Ok(0));
    eventually("its streams go", || async {
        let keys: Vec<String> = server.ask(&["KEYS", "*:s*"]).await;
        keys.is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_claim_restarts_the_idle_time() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let config = config(&server.url());
    let prefix = config.redis.prefix.clone();
    let (_, store) = connect(config).await;
    let (id, _) = session(&store).await;
    let key = format!("{prefix}:{{{id}}}:s");
    let _: u64 = server.ask(&["PEXPIRE", &key, "20000"]).await;
    store.directory.claim(&id, &node("a")).await.unwrap();
    let life: u128 = server.ask(&["PTTL", &key]).await;
    assert!(life > 20_000, "{life}");
}

#[tokio::test]
async fn a_changed_idle_time_holds_for_the_streams_too() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let (_, store) = connect(config(&server.url())).await;
    let (id, epoch) = session(&store).await;
    let save = async |idle| {
        let record = Bytes::from_static(b"record");
        store
            .directory
            .save(&id, epoch, record, idle)
            .await
            .unwrap();
    };
    save(LONG).await;
    let (start, _) = begin(&store, &id, epoch).await;
    let one = append(start, &[b"one"]);
    store.log.append(&id, epoch, one).await.unwrap();
    save(LONG * 10).await;
    let keys: Vec<String> = server.ask(&["KEYS", "*}:s*"]).await;
    assert_eq!(keys.len(), 2);
    for key in keys {
        let life: u128 = server.ask(&["PTTL", &key]).await;
        assert!(life > (LONG * 5).as_millis(), "{key} has {life} ms");
    }
}
