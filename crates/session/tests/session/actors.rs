use std::sync::Arc;
use std::time::Duration;

use futures::poll;
use shoal_ports::{
    AskId, CallEventKind, GatewayError, NodeLimits, SessionGateway as _, SessionSettings,
    StateRequest,
};
use shoal_protocol::{Outcome, RawJson};
use shoal_session::SessionConfig;

use crate::support::{Bench, call, post, within};

fn subscription(id: u64, method: &str, uri: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/{method}","params":{{"uri":"{uri}"}}}}"#
    )
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let holds = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let held = tokio::time::timeout(Duration::from_secs(20), holds).await;
    assert!(held.is_ok(), "{what}");
}

#[tokio::test]
async fn what_was_taken_in_is_done_in_order_though_nobody_waits() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    bench.script.holds.send_replace(true);
    let uris: Vec<String> = (0..9).map(|n| format!("r://{n}")).collect();
    for (id, uri) in (1..).zip(&uris) {
        let subscribe = post(&subscription(id, "subscribe", uri));
        let mut delivering = Box::pin(bench.sessions.deliver(&alice, subscribe));
        assert!(poll!(&mut delivering).is_pending());
    }
    let first = post(&subscription(20, "unsubscribe", &uris[0]));
    assert!(poll!(&mut Box::pin(bench.sessions.deliver(&alice, first))).is_pending());
    bench.script.holds.send_replace(false);
    until("all is done", || bench.sessions.status().waiting == 0).await;
    assert_eq!(*bench.script.asked.lock(), uris);
    let detail = bench.sessions.detail(&alice.session).await.unwrap();
    assert_eq!(detail.subscriptions, uris[1..]);
    assert_eq!(bench.sessions.status().subscriptions, uris.len() - 1);
}

#[tokio::test]
async fn changes_that_wait_are_bounded_and_hold_up_nothing_else() {
    let bench = Bench::new(SessionConfig {
        limits: NodeLimits {
            messages_per_session: 2,
            ..NodeLimits::default()
        },
        ..SessionConfig::default()
    });
    let alice = bench.open("alice", "2025-11-25").await;
    let mut stream = bench.stream(&alice, 9, "stream").await;
    bench.script.holds.send_replace(true);
    let subscribe = |id: u64| post(&subscription(id, "subscribe", &format!("r://{id}")));
    let mut first = Box::pin(bench.sessions.deliver(&alice, subscribe(1)));
    let mut second = Box::pin(bench.sessions.deliver(&alice, subscribe(2)));
    let mut third = Box::pin(bench.sessions.deliver(&alice, subscribe(3)));
    assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
    assert!(poll!(&mut third).is_pending());
    match bench.sessions.deliver(&alice, subscribe(4)).await {
        Err(GatewayError::Overloaded { reason, .. }) => {
            assert!(reason.starts_with("2 changes"), "{reason}");
            assert!(reason.contains("wait for their answers"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    let echo = bench.json(&alice, &call(6, "echo")).await;
    assert!(echo.contains("result"), "{echo}");
    let tool = bench.script.call("stream").await;
    let request = StateRequest::set("k", Some(RawJson::of("v")));
    let ask = AskId(1);
    tool.send(CallEventKind::State { ask, request }).await;
    let kept = tool.answer_to(ask).await;
    assert!(matches!(kept, Outcome::Result(_)), "{kept:?}");
    bench.script.holds.send_replace(false);
    within(first).await.unwrap();
    within(second).await.unwrap();
    within(third).await.unwrap();
    bench.sessions.deliver(&alice, subscribe(5)).await.unwrap();
    tool.finish("{}").await;
    assert_eq!(crate::support::read_all(&mut stream).await.events.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn thousands_of_changes_from_many_sides_are_each_done_once_and_in_order() {
    const SIDES: u64 = 8;
    const ROUNDS: u64 = 200;
    let bench = Arc::new(Bench::new(SessionConfig {
        session: SessionSettings {
            passivate_after: Duration::ZERO.into(),
            sweep_every: Duration::from_millis(1).into(),
            ..SessionSettings::default()
        },
        ..SessionConfig::default()
    }));
    let alice = bench.open("alice", "2025-11-25").await;
    let sides = (0..SIDES).map(|side| {
        let (bench, alice) = (bench.clone(), alice.clone());
        tokio::spawn(async move {
            for round in 0..ROUNDS {
                let uri = format!("r://{side}/{round}");
                for (method, id) in [("subscribe", 0), ("unsubscribe", 1)] {
                    let id = 1_000 * side + 2 * round + id;
                    let answer = bench.json(&alice, &subscription(id, method, &uri)).await;
                    assert!(answer.contains("result"), "{answer}");
                }
                let id = 1_000 * side + 999;
                let echo = bench.json(&alice, &call(id, "echo")).await;
                assert!(echo.contains("result"), "{echo}");
                if round % 20 == side {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        })
    });
    for side in Vec::from_iter(sides) {
        tokio::time::timeout(Duration::from_secs(120), side)
            .await
            .expect("in time")
            .unwrap();
    }
    let asked = bench.script.asked.lock().clone();
    for side in 0..SIDES {
        let own = format!("r://{side}/");
        let own: Vec<_> = asked.iter().filter(|uri| uri.starts_with(&own)).collect();
        let expected: Vec<_> = (0..ROUNDS).map(|n| format!("r://{side}/{n}")).collect();
        assert_eq!(own, Vec::from_iter(&expected));
    }
    assert!(bench.script.subscribed.iter().all(|it| *it.value() == 0));
    until("all is done", || bench.sessions.status().waiting == 0).await;
    assert_eq!(bench.sessions.status().subscriptions, 0);
}

#[tokio::test]
async fn a_panic_over_a_change_costs_the_session_its_memory_and_nobody_else_anything() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    bench
        .json(&alice, &subscription(1, "subscribe", "r://kept"))
        .await;
    let panicking = post(&subscription(2, "subscribe", "panic://r"));
    let after = post(&subscription(3, "subscribe", "r://after"));
    let (panicked, after) = futures::join!(
        bench.sessions.deliver(&alice, panicking),
        bench.sessions.deliver(&alice, after)
    );
    assert!(
        matches!(panicked, Err(GatewayError::Internal(_))),
        "{panicked:?}"
    );
    after.unwrap();
    let echo = bench.json(&alice, &call(4, "echo")).await;
    assert!(echo.contains("result"), "{echo}");
    assert_eq!(bench.sessions.status().waiting, 0);
    let detail = bench.sessions.detail(&alice.session).await.unwrap();
    assert_eq!(detail.subscriptions, ["r://after", "r://kept"]);
}
