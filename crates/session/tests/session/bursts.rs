use std::sync::Arc;

use shoal_ports::{EventStream, SessionGateway as _, SessionRef, StreamSettings};
use shoal_session::SessionConfig;

use crate::support::counted::Counted;
use crate::support::{Bench, Driven, Read, read, read_all};

const EVENTS: u64 = 10;

async fn begun(bench: &Bench) -> (SessionRef, EventStream, Arc<Driven>) {
    let alice = bench.open("alice", "2025-11-25").await;
    let stream = bench.stream(&alice, 1, "stream").await;
    (alice, stream, bench.script.call("stream").await)
}

async fn burst(tool: &Driven) {
    for n in 1..=EVENTS {
        tool.progress(n).await;
        tokio::task::yield_now().await;
    }
    tool.finish("{}").await;
}

fn sequences(read: &Read) -> Vec<u64> {
    read.events.iter().map(|(id, _)| id.sequence).collect()
}

#[tokio::test(start_paused = true)]
async fn a_burst_reaches_the_client_as_the_same_events_in_fewer_appends() {
    let counted = Counted::new();
    let bench = Bench::on(counted.store(), SessionConfig::default());
    let (_, mut stream, tool) = begun(&bench).await;
    let mut single = Read::default();
    for n in 1..=EVENTS {
        tool.progress(n).await;
        let one = read(&mut stream, 1).await;
        single.events.extend(one.events);
    }
    tool.finish("{}").await;
    single.events.extend(read_all(&mut stream).await.events);
    assert_eq!(counted.appended(), [1; 11], "nothing came soon enough");

    let counted = Counted::new();
    let bench = Bench::on(counted.store(), SessionConfig::default());
    let (alice, mut stream, tool) = begun(&bench).await;
    burst(&tool).await;
    let together = read_all(&mut stream).await;
    assert_eq!(sequences(&together), Vec::from_iter(1..=EVENTS + 1));
    assert_eq!(sequences(&together), sequences(&single));
    let texts = |read: &Read| Vec::from_iter(read.events.iter().map(|(_, text)| text.clone()));
    assert_eq!(texts(&together), texts(&single));
    let appends = counted.appended();
    assert_eq!(appends.iter().sum::<usize>(), 11);
    assert!(appends.len() < 5, "{appends:?}");

    let cursor = Some(together.events[6].0);
    let mut resumed = bench.sessions.listen(&alice, cursor).await.unwrap();
    let rest = read_all(&mut resumed).await;
    assert_eq!(rest.events, together.events[7..]);
}

#[tokio::test(start_paused = true)]
async fn no_append_is_of_more_events_than_a_reader_may_be_behind() {
    let counted = Counted::new();
    let config = SessionConfig {
        streams: StreamSettings {
            buffer: 3,
            ..StreamSettings::default()
        },
        ..SessionConfig::default()
    };
    let bench = Bench::on(counted.store(), config);
    let (_, mut stream, tool) = begun(&bench).await;
    let reading = tokio::spawn(async move { read_all(&mut stream).await });
    burst(&tool).await;
    let all = reading.await.unwrap();
    assert_eq!(sequences(&all), Vec::from_iter(1..=EVENTS + 1));
    let appends = counted.appended();
    assert!(appends.iter().all(|events| *events <= 4), "{appends:?}");
    assert!(appends.contains(&3), "{appends:?}");
}
