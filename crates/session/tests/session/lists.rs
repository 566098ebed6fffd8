use std::time::Duration;

use shoal_ports::{EventStream, NodeId, SessionGateway, SessionRef};
use shoal_session::SessionConfig;

use crate::support::counted::Counted;
use crate::support::{Bench, Read, read, read_all};

const CHANGED: &str = "notifications/tools/list_changed";

fn asked(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":9,"method":"{method}","params":{params}}}"#)
}

async fn listened(bench: &Bench, version: &str) -> (SessionRef, EventStream) {
    let alice = bench.open("alice", version).await;
    let stream = bench.sessions.listen(&alice, None).await.unwrap();
    (alice, stream)
}

async fn rest(bench: &Bench, session: &SessionRef, mut stream: EventStream) -> Read {
    bench.sessions.drain_streams();
    let read = read_all(&mut stream).await;
    bench.sessions.close(session).await.unwrap();
    read
}

#[tokio::test]
async fn who_only_listens_is_told_without_a_write() {
    let counted = Counted::new();
    let bench = Bench::on(counted.store(), SessionConfig::default());
    let mut listening = Vec::new();
    for number in 0..20 {
        let session = bench.open(&format!("p{number}"), "2025-11-25").await;
        let stream = bench.sessions.listen(&session, None).await.unwrap();
        listening.push(stream);
    }
    let before = counted.writes();
    assert_eq!(before, (0, 20), "each session's record, and no event");
    for _ in 0..3 {
        bench.script.change_lists();
        for stream in &mut listening {
            let told = read(stream, 1).await;
            assert!(told.events.is_empty(), "{told:?}");
            assert!(told.passing[0].contains(CHANGED), "{told:?}");
        }
    }
    assert_eq!(counted.writes(), before);
}

#[tokio::test]
async fn who_was_told_on_a_connection_that_broke_is_told_again_and_then_no_more() {
    for version in ["2025-06-18", "2025-11-25"] {
        let bench = Bench::new(SessionConfig::default());
        let (alice, mut stream) = listened(&bench, version).await;
        bench.script.change_lists();
        assert_eq!(read(&mut stream, 1).await.passing.len(), 1);
        drop(stream);
        let mut again = bench.sessions.listen(&alice, None).await.unwrap();
        let told = read(&mut again, 1).await;
        assert!(told.events[0].1.contains(CHANGED), "{told:?}");
        let before = again.cursor;
        drop(again);
        let mut resumed = bench.sessions.listen(&alice, Some(before)).await.unwrap();
        assert_eq!(read(&mut resumed, 1).await.events, told.events);
        drop(resumed);
        for cursor in [Some(told.cursor()), None, None] {
            let stream = bench.sessions.listen(&alice, cursor).await.unwrap();
            drop(stream);
        }
        let last = bench.sessions.listen(&alice, None).await.unwrap();
        let nothing = rest(&bench, &alice, last).await;
        assert!(nothing.texts.is_empty(), "{nothing:?}");
    }
}

#[tokio::test]
async fn a_session_that_has_seen_no_change_is_told_nothing() {
    let bench = Bench::new(SessionConfig::default());
    bench.script.change_lists();
    let (alice, stream) = listened(&bench, "2025-11-25").await;
    drop(stream);
    let again = bench.sessions.listen(&alice, None).await.unwrap();
    let nothing = rest(&bench, &alice, again).await;
    assert!(nothing.texts.is_empty(), "{nothing:?}");
}

#[tokio::test]
async fn who_has_asked_for_the_list_since_is_not_told_again() {
    for (params, knows) in [("{}", true), (r#"{"cursor":"c"}"#, false)] {
        let bench = Bench::new(SessionConfig::default());
        let (alice, mut stream) = listened(&bench, "2025-11-25").await;
        bench.script.change_lists();
        read(&mut stream, 1).await;
        let listing = asked("tools/list", params);
        let sessions = bench.sessions.clone();
        let (to, post) = (alice.clone(), crate::support::post(&listing));
        let asking = tokio::spawn(async move { sessions.deliver(&to, post).await });
        bench.script.call("").await.finish(r#"{"tools":[]}"#).await;
        asking.await.unwrap().unwrap();
        drop(stream);
        let again = bench.sessions.listen(&alice, None).await.unwrap();
        let told = rest(&bench, &alice, again).await;
        assert_eq!(told.texts.is_empty(), knows, "{params}: {told:?}");
    }
}

#[tokio::test]
async fn the_next_owner_tells_again_what_the_record_does_not_know() {
    let bench = Bench::new(SessionConfig::default());
    let lease = Duration::from_secs(60);
    let directory = &bench.store.directory;
    for node in ["test", "b"] {
        directory
            .renew_lease(&NodeId::new(node), lease)
            .await
            .unwrap();
    }
    let second = bench.another_node("b");
    let (alice, mut stream) = listened(&bench, "2025-11-25").await;
    bench.script.change_lists();
    read(&mut stream, 1).await;
    let cursor = stream.cursor;
    directory.end_lease(&NodeId::new("test")).await.unwrap();
    let mut after = second.listen(&alice, Some(cursor)).await.unwrap();
    let told = read(&mut after, 1).await;
    assert!(told.texts[0].contains(CHANGED), "{told:?}");
    assert_eq!(second.hand_over().await.sessions, 1);
    let third = bench.another_node("c");
    directory
        .renew_lease(&NodeId::new("c"), lease)
        .await
        .unwrap();
    let mut last = third.listen(&alice, Some(told.cursor())).await.unwrap();
    third.drain_streams();
    let nothing = read_all(&mut last).await;
    assert!(nothing.texts.is_empty(), "the record knows: {nothing:?}");
}

#[tokio::test]
async fn what_cannot_be_logged_is_told_in_passing_and_again_later() {
    let counted = Counted::new();
    let bench = Bench::on(counted.store(), SessionConfig::default());
    let (alice, mut stream) = listened(&bench, "2025-11-25").await;
    bench.script.change_lists();
    read(&mut stream, 1).await;
    drop(stream);
    counted.refuse(true);
    let mut again = bench.sessions.listen(&alice, None).await.unwrap();
    assert_eq!(read(&mut again, 1).await.passing.len(), 1);
    drop(again);
    counted.refuse(false);
    let last = bench.sessions.listen(&alice, None).await.unwrap();
    let told = rest(&bench, &alice, last).await;
    assert_eq!(told.events.len(), 1, "{told:?}");
}
