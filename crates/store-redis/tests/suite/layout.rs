//! The keys of a call, which other releases use too, and the commands of a call.

use std::collections::BTreeMap;

use shoal_ports::{
    Append, CallId, CallProgress, Claim, DeliveryId, Epoch, JournalEntry, SessionId, Store,
    WorkerId,
};
use shoal_protocol::{EventId, StreamId};

use crate::fixture::{
    LONG, append, config, connect, ending, entry, entry_with, node, opening, session,
};
use crate::server::{IN_MEMORY, Server};

type Fields = BTreeMap<String, String>;

struct Looked {
    server: Server,
    store: Store,
    id: SessionId,
    epoch: Epoch,
    key: String,
}

impl Looked {
    async fn new() -> Self {
        let server = Server::on_socket(&IN_MEMORY).await;
        let config = config(&server.url());
        let prefix = config.redis.prefix.clone();
        let (_, store) = connect(config).await;
        let (id, epoch) = session(&store).await;
        let key = format!("{prefix}:{{{id}}}:s");
        Self {
            server,
            store,
            id,
            epoch,
            key,
        }
    }

    async fn fields(&self) -> Fields {
        self.server.ask(&["HGETALL", &self.key]).await
    }

    async fn commands(&self, step: impl AsyncFn()) -> String {
        let _: redis::Value = self.server.ask(&["CONFIG", "RESETSTAT"]).await;
        step().await;
        let stats: String = self.server.ask(&["INFO", "commandstats"]).await;
        let mut commands: Vec<_> = stats.lines().filter_map(command).collect();
        commands.sort_unstable();
        commands.join(" ")
    }

    async fn append(&self, append: Append) -> EventId {
        let appended = self.store.log.append(&self.id, self.epoch, append).await;
        appended.unwrap().last
    }
}

/// Parses `cmdstat_hset:calls=2,usec=…`.
fn command(line: &str) -> Option<String> {
    let (name, stats) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
    let calls = stats.split(',').next()?;
    let asked = [
        "config|resetstat",
        "info",
        "client|setinfo",
        "hello",
        "select",
    ];
    (!asked.contains(&name)).then(|| format!("{name}:{calls}"))
}

fn progress(after: EventId, call: &JournalEntry, seen: u64) -> Append {
    Append {
        progress: Some(CallProgress {
            call: call.call,
            seen,
            ended: false,
        }),
        ..append(after, &[b"progress"])
    }
}

#[tokio::test]
async fn what_a_call_leaves_is_what_older_releases_read() {
    let looked = Looked::new().await;
    let at_first = looked.fields().await;
    let names: Vec<_> = at_first.keys().map(String::as_str).collect();
    assert_eq!(names, ["b", "e", "i", "l", "n", "o", "p", "r", "x"]);

    let call = entry_with(1);
    let opening = opening(&call);
    let delivery = opening.delivery;
    let begun = looked
        .store
        .journal
        .begin(&looked.id, looked.epoch, opening);
    let start = begun.await.unwrap().id();
    let (n, its) = (start.stream.0, call.call);
    let mut expected = at_first.clone();
    expected.insert(format!("s{n}"), format!("0:0:0:1:0:{delivery}"));
    expected.insert(format!("d{delivery}"), n.to_string());
    let entry = serde_json::to_string(&call).unwrap();
    expected.insert(format!("j{its}"), format!("{n}:{entry}"));
    assert_eq!(looked.fields().await, expected);

    let one = looked.append(progress(start, &call, 4)).await;
    expected.insert(format!("s{n}"), format!("1:0:8:1:0:{delivery}"));
    expected.insert(format!("q{its}"), "4".to_owned());
    expected.insert("b".to_owned(), "8".to_owned());
    assert_eq!(looked.fields().await, expected);
    let events = format!("{}:{}:{n}", looked.key, start.epoch);
    let life: u128 = looked.server.ask(&["PTTL", &events]).await;
    assert!(life > LONG.as_millis(), "longer than the session: {life}");

    looked.append(ending(one, &[b"result"], its)).await;
    let found = looked.fields().await;
    let till = found["f0"].strip_prefix(&format!("{n}:")).unwrap();
    assert!(till.parse::<u64>().is_ok(), "{till}");
    expected.remove(&format!("j{its}"));
    expected.remove(&format!("q{its}"));
    expected.insert(format!("s{n}"), format!("2:0:14:0:{till}:{delivery}"));
    expected.insert("f0".to_owned(), format!("{n}:{till}"));
    expected.insert("t".to_owned(), "1".to_owned());
    expected.insert("b".to_owned(), "14".to_owned());
    assert_eq!(found, expected);
    let life: u128 = looked.server.ask(&["PTTL", &events]).await;
    assert!(life > 0 && life <= 2000, "the retention: {life}");
}

#[tokio::test]
async fn a_call_takes_few_commands() {
    let looked = Looked::new().await;
    let (begin, event, end) = (
        "evalsha:1 hmget:1 hset:1",
        "evalsha:1 hmget:1 hset:1 rpush:1",
        "evalsha:1 hdel:1 hmget:1 hset:1 pexpire:1 rpush:1 time:1",
    );
    for (round, expected) in [None, Some([begin, event, end])].into_iter().enumerate() {
        let call = entry_with(u8::try_from(2 * round + 1).unwrap());
        let opening = opening(&call);
        let start = EventId {
            epoch: 0,
            stream: call.call.stream(),
            sequence: 0,
        };
        let (log, journal) = (&looked.store.log, &looked.store.journal);
        let begun = looked.commands(async || {
            let begun = journal.begin(&looked.id, looked.epoch, opening.clone());
            begun.await.unwrap();
        });
        let begun = begun.await;
        looked.append(progress(start, &call, 1)).await;
        let at = |sequence| EventId { sequence, ..start };
        let told = looked.commands(async || {
            looked.append(progress(at(1), &call, 2)).await;
        });
        let told = told.await;
        let ended = ending(at(2), &[b"result"], call.call);
        let over = looked.commands(async || {
            looked.append(ended.clone()).await;
        });
        let over = over.await;
        if let Some(expected) = expected {
            assert_eq!([&*begun, &*told, &*over], expected);
        }
        log.last(&looked.id, start.stream).await.unwrap();
    }
}

/// An older release stored a call's worker beside its entry, and numbered streams by a counter.
#[tokio::test]
async fn a_session_of_an_older_release_goes_on() {
    let looked = Looked::new().await;
    let (id, key) = (&looked.id, &looked.key);
    let (open, over) = (DeliveryId::generate(), DeliveryId::generate());
    let call = JournalEntry {
        worker: None,
        ..entry()
    };
    let its = call.call;
    let entry = serde_json::to_string(&call).unwrap();
    let till = "4000000000000";
    let fields = [
        ("l".to_owned(), "77".to_owned()),
        ("n".to_owned(), "3".to_owned()),
        ("b".to_owned(), "11".to_owned()),
        ("t".to_owned(), "1".to_owned()),
        ("f0".to_owned(), format!("9:{till}")),
        ("s9".to_owned(), format!("1:0:6:0:{till}:{over}")),
        (format!("d{over}"), "9".to_owned()),
        ("s5".to_owned(), format!("1:0:5:1:0:{open}")),
        (format!("d{open}"), "5".to_owned()),
        (format!("j{its}"), format!("5:{entry}")),
        (format!("w{its}"), "w".to_owned()),
        (format!("q{its}"), "2".to_owned()),
    ];
    for (field, value) in &fields {
        let _: u64 = looked.server.ask(&["HSET", key, field, value]).await;
    }
    for (n, event) in [("5", "hello"), ("9", "result")] {
        let list = format!("{key}:77:{n}");
        let _: u64 = looked.server.ask(&["RPUSH", &list, event]).await;
    }

    let (directory, journal) = (&looked.store.directory, &looked.store.journal);
    let Claim { epoch, .. } = directory.claim(id, &node("a")).await.unwrap();
    let running = journal.running(id, epoch).await.unwrap();
    assert_eq!(running.len(), 1);
    let journaled = &running[0].calls[0];
    assert_eq!(journaled.entry.worker, Some(WorkerId::new("w")));
    assert_eq!(journaled.seen, 2);
    let last = running[0].last;
    assert_eq!((last.stream, last.sequence), (StreamId(5), 1));
    let end = ending(last, &[b"end"], its);
    let ended = looked.store.log.append(id, epoch, end).await.unwrap();
    assert!(ended.finished);
    assert_eq!(ended.kept, 14);
    for (delivery, events) in [(open, 2), (over, 1)] {
        let start = journal.delivered(id, delivery).await.unwrap().unwrap();
        let page = looked.store.log.read(id, start, 9).await.unwrap();
        assert_eq!((page.events.len(), page.finished), (events, true));
    }
    let found = looked.fields().await;
    let left = found
        .keys()
        .filter(|field| field.ends_with(&its.to_string()));
    assert_eq!(left.count(), 0, "{found:?}");
}

/// A stream's number comes from its call's id, so two calls may have the same number.
#[tokio::test]
async fn two_calls_with_one_number_get_streams_of_their_own() {
    let looked = Looked::new().await;
    let journal = &looked.store.journal;
    let (one, mut two) = (entry_with(255), entry_with(255));
    let mut id = *two.call.as_bytes();
    id[12..].copy_from_slice(&one.call.as_bytes()[12..]);
    two.call = CallId::from_bytes(id);
    assert_ne!(one.call, two.call);
    let mut starts = Vec::new();
    for opening in [opening(&one), opening(&two)] {
        for _ in 0..2 {
            let begun = journal.begin(&looked.id, looked.epoch, opening.clone());
            starts.push(begun.await.unwrap().id());
        }
        let found = journal.delivered(&looked.id, opening.delivery).await;
        assert_eq!(found.as_ref(), Ok(&starts.last().copied()));
    }
    assert_eq!((starts[0], starts[2]), (starts[1], starts[3]), "repeated");
    assert_ne!(starts[0].stream, starts[2].stream);
    let running = journal.running(&looked.id, looked.epoch).await.unwrap();
    assert_eq!(running.len(), 2);
}
