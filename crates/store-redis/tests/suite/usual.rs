//! The scripts have a short way for what is usual. It leaves the same as the long one.

use std::collections::BTreeMap;

use shoal_ports::{CallId, WorkerId};
use shoal_protocol::EventId;

use crate::fixture::{append, begin, config, connect, ending, entry, opening, session};
use crate::server::{IN_MEMORY, Server};

/// Begins go the long way for each eighth stream.
const LONG_WAY: u64 = 8;

type Fields = BTreeMap<String, String>;

/// The fields that say something of a stream and its call, with what differs from stream to stream left out.
fn about(fields: &Fields, at: EventId, call: CallId) -> Fields {
    let (stream, call) = (at.stream.0.to_string(), call.to_string());
    let field = |name: &str, value: Option<&str>| Some((name.to_owned(), value?.to_owned()));
    let found = |name: &str| fields.get(name).map(String::as_str);
    // What is journaled begins with the call's id.
    let journaled = found(&format!("j{call}")).and_then(|entry| entry.split_once(','));
    [
        // How the stream stands; its delivery comes after the last colon.
        field(
            "s",
            found(&format!("s{stream}")).and_then(|it| Some(it.rsplit_once(':')?.0)),
        ),
        field("j", journaled.map(|(_, entry)| entry)),
        field("w", found(&format!("w{call}"))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[tokio::test]
async fn a_call_is_journaled_alike_on_either_way() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let config = config(&server.url());
    let prefix = config.key_prefix.clone();
    let (_, store) = connect(config).await;
    let (id, epoch) = session(&store).await;
    let mut before: Option<Fields> = None;
    for stream in 1..=LONG_WAY + 1 {
        let mut call = entry();
        call.worker = Some(WorkerId::new("worker"));
        let opening = opening(&call);
        let delivery = opening.delivery;
        let at = store.journal.begin(&id, epoch, opening).await.unwrap().id();
        let delivered = store.journal.delivered(&id, delivery).await;
        assert_eq!(delivered, Ok(Some(at)));
        let key = format!("{prefix}:{{{id}}}:s");
        let fields: Fields = server.ask(&["HGETALL", &key]).await;
        let found = about(&fields, at, call.call);
        assert_eq!(
            found.len(),
            3,
            "the stream, its call, the worker: {found:?}"
        );
        if let Some(before) = before.replace(found.clone()) {
            assert_eq!(found, before, "stream {stream}");
        }
    }
    let running = store.journal.running(&id, epoch).await.unwrap();
    assert_eq!(running.len(), 9);
}

#[tokio::test]
async fn an_answer_is_appended_alike_on_either_way() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let config = config(&server.url());
    let (prefix, retention) = (config.key_prefix.clone(), config.retention);
    let (_, store) = connect(config).await;
    let (id, epoch) = session(&store).await;
    let key = format!("{prefix}:{{{id}}}:s");
    let mut ends = Vec::new();
    for short in [true, false, true] {
        let (start, call) = begin(&store, &id, epoch).await;
        if short {
            let end = ending(start, &[b"result"], call);
            let appended = store.log.append(&id, epoch, end.clone()).await.unwrap();
            // A reply that was lost: the same again finds it done.
            assert_eq!(store.log.append(&id, epoch, end).await, Ok(appended));
        } else {
            let one = store.log.append(&id, epoch, append(start, &[b"result"]));
            let last = one.await.unwrap().last;
            let end = store.log.append(&id, epoch, ending(last, &[], call));
            assert!(end.await.unwrap().finished);
        }
        let page = store.log.read(&id, start, 9).await.unwrap();
        assert!(page.finished);
        assert_eq!(page.events.len(), 1);
        ends.push((start, call));
    }
    let fields: Fields = server.ask(&["HGETALL", &key]).await;
    for (place, (start, call)) in ends.into_iter().enumerate() {
        let stream = start.stream.0;
        let stands = &fields[&format!("s{stream}")];
        let [last, trimmed, bytes, open, till, _] = stands.split(':').collect::<Vec<_>>()[..]
            .try_into()
            .unwrap();
        assert_eq!(
            [last, trimmed, bytes, open],
            ["1", "0", "6", "0"],
            "{stands}"
        );
        assert_eq!(fields[&format!("f{place}")], format!("{stream}:{till}"));
        let left: Vec<_> = ["j", "w", "q"]
            .iter()
            .filter(|field| fields.contains_key(&format!("{field}{call}")))
            .collect();
        assert!(left.is_empty(), "{left:?}");
        let events = format!("{key}:{}:{stream}", start.epoch);
        let life: u128 = server.ask(&["PTTL", &events]).await;
        assert!(life > 0 && life <= retention.as_millis(), "{life}");
    }
    assert_eq!(fields["b"], "18");
    assert_eq!(fields["t"], "3");
    assert_eq!(store.journal.running(&id, epoch).await, Ok(Vec::new()));
}
