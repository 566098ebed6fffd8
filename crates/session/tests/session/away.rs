use std::sync::atomic::Ordering;
use std::time::Duration;

use shoal_ports::{Delivered, Epoch, SessionGateway, StoreError, StreamSettings};
use shoal_session::SessionConfig;

use crate::support::flaky::{away, flaky};
use crate::support::{call, post, read_all, within};

async fn what_runs_waits(says: StoreError) {
    let config = SessionConfig {
        streams: StreamSettings {
            grace: Duration::ZERO.into(),
            ..StreamSettings::default()
        },
        begin_patience: Duration::ZERO,
        ..SessionConfig::default()
    };
    let (bench, journal) = flaky(config);
    journal.says(Some(says));
    let alice = bench.open("alice", "2025-11-25").await;
    let (sessions, session) = (bench.sessions.clone(), alice.clone());
    let answering = tokio::spawn(async move {
        sessions
            .deliver(&session, post(&call(1, "reads")))
            .await
            .map(|delivered| match delivered {
                Delivered::Stream(stream) => stream,
                other => panic!("{other:?}"),
            })
    });
    let tool = within(bench.script.call("reads")).await;
    tool.progress(1).await;
    within(async {
        while journal.begins.load(Ordering::SeqCst) < 3 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    journal.says(None);
    within(async {
        let journal = &bench.store.journal;
        let running = || journal.running(&alice.session, Epoch(1));
        while running().await.expect("it is there").is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    tool.finish(r#"{"content":[]}"#).await;
    let answered = within(answering).await.expect("it did not panic");
    let mut stream = answered.expect("the call goes on");
    let read = within(read_all(&mut stream)).await;
    assert_eq!(read.events.len(), 2, "progress and the result: {read:?}");
    assert!(read.events[1].1.contains(r#""content""#), "{read:?}");
}

#[tokio::test]
async fn a_call_that_runs_waits_for_a_journal_that_is_away() {
    what_runs_waits(away()).await;
}

#[tokio::test]
async fn a_call_that_runs_waits_for_a_journal_that_confirms_nothing() {
    let unconfirmed = StoreError::Unavailable("the test says so".to_owned());
    what_runs_waits(unconfirmed).await;
}
