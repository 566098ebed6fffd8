use std::time::Duration;

use shoal_ports::{GatewayError, SessionGateway as _, SessionId, SessionSettings, mark_of};
use shoal_session::SessionConfig;

use crate::support::{Bench, call, post, read_all, within};

fn quick() -> SessionConfig {
    SessionConfig {
        session: SessionSettings {
            passivate_after: Duration::from_millis(40).into(),
            sweep_every: Duration::from_millis(10).into(),
            ..SessionSettings::default()
        },
        ..SessionConfig::default()
    }
}

async fn asleep(bench: &Bench, count: usize) {
    within(async {
        while bench.sessions.status().passive != count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn sessions_are_found_by_what_is_known_of_them() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let bob = bench.open("bob", "2025-06-18").await;
    let sessions = &bench.sessions;
    let all = sessions.list("", 10);
    assert_eq!((all.items.len(), all.total), (2, 2));
    let report = all.items.iter().find(|it| it.id == alice.session.as_str());
    let report = report.unwrap();
    assert_eq!(report.principal, mark_of(&alice.principal));
    assert_eq!(report.revision.as_deref(), Some("2025-11-25"));
    assert!(report.live && !report.single_stream && report.client.is_some());

    let found = |filter: &str| {
        let found = sessions.list(filter, 10).items;
        found.into_iter().map(|it| it.id).collect::<Vec<_>>()
    };
    let (alices, bobs) = (alice.session.to_string(), bob.session.to_string());
    assert_eq!(found(&alices[4..20]), [alices.as_str()]);
    assert_eq!(found("bob"), [bobs.as_str()], "a whole name");
    assert!(
        found("bo").is_empty(),
        "no part of a name, which is not shown"
    );
    assert_eq!(found(&mark_of(&bob.principal)[..8]), [bobs.as_str()]);
    assert_eq!(found(" 2025-06 "), [bobs.as_str()]);

    tokio::time::sleep(Duration::from_millis(5)).await;
    bench.json(&alice, &call(1, "echo")).await;
    let one = sessions.list("", 1);
    assert_eq!((one.items[0].id.as_str(), one.total), (alices.as_str(), 2));
}

#[tokio::test]
async fn looking_at_a_session_wakes_it_not() {
    let bench = Bench::new(quick());
    let alice = bench.open("alice", "2025-11-25").await;
    let subscribe =
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"r://a"}}"#;
    bench.json(&alice, subscribe).await;
    let awake = bench.sessions.detail(&alice.session).await.unwrap();
    assert_eq!(awake.log_level.as_deref(), Some("info"));
    assert_eq!(awake.subscriptions, ["r://a"]);
    asleep(&bench, 1).await;
    let sleeping = bench.sessions.detail(&alice.session).await.unwrap();
    assert!(!sleeping.session.live);
    assert_eq!(sleeping.session.client, awake.session.client);
    assert_eq!(sleeping.session.revision, awake.session.revision);
    assert_eq!(sleeping.subscriptions, ["r://a"]);
    assert_eq!(sleeping.log_level, None);
    assert_eq!(bench.sessions.status().live, 0, "it still sleeps");
    assert!(bench.sessions.list("r://", 10).items.is_empty());
    let unknown = SessionId::new("unknown");
    assert!(bench.sessions.detail(&unknown).await.is_none());
}

#[tokio::test]
async fn an_operator_ends_a_session_with_what_runs_in_it() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let bob = bench.open("bob", "2025-11-25").await;
    let mut stream = bench.stream(&alice, 1, "stream").await;
    let tool = bench.script.call("stream").await;
    let detail = bench.sessions.detail(&alice.session).await.unwrap();
    assert_eq!(detail.session.in_flight, 1);
    assert_eq!(detail.streams.len(), 1);
    assert!(detail.streams[0].read && !detail.streams[0].standalone);

    assert!(bench.sessions.end(&alice.session).await);
    let mut cancelled = tool.cancelled.subscribe();
    let reason = within(cancelled.wait_for(Option::is_some))
        .await
        .unwrap()
        .clone();
    assert!(reason.unwrap().contains("operator"));
    let told = read_all(&mut stream).await.texts;
    assert!(told.len() == 1 && told[0].contains("50410"), "{told:?}");
    let gone = bench.sessions.deliver(&alice, post(&call(2, "echo"))).await;
    assert_eq!(gone.err(), Some(GatewayError::NotFound));
    assert!(!bench.sessions.end(&alice.session).await, "only once");
    assert!(bench.json(&bob, &call(2, "echo")).await.contains("result"));
}

#[tokio::test]
async fn an_operator_ends_a_sleeping_session() {
    let bench = Bench::new(quick());
    let alice = bench.open("alice", "2025-11-25").await;
    asleep(&bench, 1).await;
    assert!(bench.sessions.end(&alice.session).await);
    let gone = bench.sessions.deliver(&alice, post(&call(2, "echo"))).await;
    assert_eq!(gone.err(), Some(GatewayError::NotFound));
    assert_eq!(bench.sessions.list("", 10).total, 0);
}
