use std::time::Duration;

use futures::future::join_all;
use shoal_ports::{
    AskId, CallEventKind, Delivered, NodeId, NodeLimits, Post, ResourceUpdated,
    SessionGateway as _, SessionRef, StreamSettings,
};
use shoal_protocol::{EventId, Message, Method, RawJson, StreamId};
use shoal_session::SessionConfig;

use crate::support::{Bench, call, initialize, post, read, read_all, within};

const LONG: Duration = Duration::from_secs(600);

const ENOUGH: usize = 40;

fn bench(config: SessionConfig) -> Bench {
    Bench::with_fate(config).0
}

async fn drop_after(bench: &Bench, to: &SessionRef, post: Post, polls: usize) {
    let mut delivery = Box::pin(bench.sessions.deliver(to, post));
    for _ in 0..polls {
        if futures::poll!(&mut delivery).is_ready() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

fn messages(round: usize) -> Vec<String> {
    let at = |n: u64| 100 * round as u64 + n;
    let tool = |n: u64, kind: &str| call(at(n), &format!("{kind}-{round}-{n}"));
    let request = |n: u64, method: &str, params: &str| {
        let id = at(n);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
    };
    let uri = |n: u64| format!(r#"{{"uri":"r://{}"}}"#, at(n));
    vec![
        call(at(1), "echo"),
        tool(2, "slow"),
        tool(3, "stream"),
        request(4, "ping", "{}"),
        request(5, "logging/setLevel", r#"{"level":"error"}"#),
        request(6, "resources/subscribe", &uri(0)),
        request(7, "resources/subscribe", &uri(1)),
        request(8, "resources/unsubscribe", &uri(1)),
        request(9, "resources/subscribe", &uri(0)),
        request(10, "resources/subscribe", r#"{"uri":"bad://r"}"#),
        request(11, "tools/list", "{}"),
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{}}}}}"#,
            at(2)
        ),
        r#"{"jsonrpc":"2.0","id":"no.such","result":{}}"#.to_owned(),
        format!("[{},{}]", tool(12, "stream"), tool(13, "slow")),
        format!(
            "[{},{},{}]",
            request(14, "resources/subscribe", &uri(2)),
            call(at(15), "echo"),
            request(16, "ping", "{}")
        ),
        tool(17, "stream"),
    ]
}

async fn settle(bench: &Bench, left: usize) {
    let settled = async {
        loop {
            let calls: Vec<_> = bench
                .script
                .calls
                .iter()
                .map(|it| it.key().clone())
                .collect();
            for name in calls.iter().filter(|name| *name != "stream-busy") {
                if let Some((_, call)) = bench.script.calls.remove(name)
                    && call.runs()
                {
                    call.finish("{}").await;
                }
            }
            let status = bench.sessions.status();
            if (status.in_flight, status.journaled, status.waiting) == (left, left, 0) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let settled = tokio::time::timeout(Duration::from_secs(10), settled).await;
    assert!(settled.is_ok(), "{:?}", bench.sessions.status());
}

async fn check_subscriptions(bench: &Bench, to: &SessionRef, what: &str) {
    let consistent = async {
        loop {
            let detail = bench.sessions.detail(&to.session).await.unwrap();
            let record = detail.subscriptions;
            let backend = bench.script.subscribed.iter();
            let mut backend: Vec<_> = backend
                .filter(|it| *it.value() != 0)
                .map(|it| (it.key().clone(), *it.value()))
                .collect();
            backend.sort_unstable();
            let expected: Vec<_> = record.into_iter().map(|uri| (uri, 1)).collect();
            let held = bench.sessions.status().subscriptions;
            if backend == expected && held == expected.len() {
                return Ok::<_, ()>(());
            }
            let differ = format!("backend {backend:?}, record {expected:?}, held {held}");
            LAST.with(|last| *last.borrow_mut() = differ);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let consistent = tokio::time::timeout(Duration::from_secs(5), consistent).await;
    assert!(
        consistent.is_ok(),
        "{what}: {}",
        LAST.with(|last| last.borrow().clone())
    );
}

thread_local! {
    static LAST: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) };
}

async fn check_ids(bench: &Bench, to: &SessionRef, round: usize) {
    for n in 1..=17 {
        let id = 100 * round as u64 + n;
        let ping = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo"}}}}"#
        );
        let answer = bench.json(to, &ping).await;
        assert!(answer.contains("result"), "{id}: {answer}");
    }
}

async fn drop_everything(busy: bool, at_once: bool) {
    for polls in 0..ENOUGH {
        let bench = bench(SessionConfig::default());
        let to = bench.open("alice", "2025-03-26").await;
        let mut running = Vec::new();
        if busy {
            running.push(bench.stream(&to, 1, "stream-busy").await);
        }
        let dropped = messages(1).into_iter();
        let dropped = dropped.map(|text| drop_after(&bench, &to, post(&text), polls));
        match at_once {
            true => drop(join_all(dropped).await),
            false => {
                for one in dropped {
                    one.await;
                }
            }
        }
        settle(&bench, running.len()).await;
        let what = format!("after {polls} polls");
        check_subscriptions(&bench, &to, &what).await;
        check_ids(&bench, &to, 1).await;
        bench.sessions.close(&to).await.unwrap();
        let held = bench.sessions.status();
        assert_eq!(
            (held.live, held.reserved, held.subscriptions),
            (0, 0, 0),
            "{what}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn several_requests_at_once_beside_a_running_call() {
    within(drop_everything(true, true)).await;
}

#[tokio::test(start_paused = true)]
async fn several_requests_at_once_in_a_session_that_is_free() {
    within(drop_everything(false, true)).await;
}

#[tokio::test(start_paused = true)]
async fn one_request_after_another_beside_a_running_call() {
    within(drop_everything(true, false)).await;
}

#[tokio::test(start_paused = true)]
async fn one_request_after_another_in_a_session_that_is_free() {
    within(drop_everything(false, false)).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_clients_give_up_is_never_full() {
    let config = SessionConfig {
        limits: NodeLimits {
            calls_per_session: 8,
            messages_per_session: 16,
            ..NodeLimits::default()
        },
        ..SessionConfig::default()
    };
    let bench = bench(config);
    let to = bench.open("alice", "2025-03-26").await;
    for round in 1..100 {
        let dropped = messages(round).into_iter();
        let dropped = dropped.map(|text| drop_after(&bench, &to, post(&text), round % 7));
        join_all(dropped).await;
        settle(&bench, 0).await;
    }
    let answer = bench.json(&to, &call(1, "echo")).await;
    assert!(answer.contains("result"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn what_was_dropped_is_answered_when_it_is_delivered_again() {
    for polls in 0..ENOUGH {
        let bench = bench(SessionConfig::default());
        let to = bench.open("alice", "2025-03-26").await;
        let _busy = bench.stream(&to, 1, "stream-busy").await;
        for text in messages(1) {
            let first = post(&text);
            let again = Post {
                repeated: true,
                ..first.clone()
            };
            drop_after(&bench, &to, first, polls).await;
            let (sessions, to) = (bench.sessions.clone(), to.clone());
            let redelivered = tokio::spawn(async move { sessions.deliver(&to, again).await });
            let answered = async {
                while !redelivered.is_finished() {
                    for call in bench
                        .script
                        .calls
                        .iter()
                        .filter(|it| it.key() != "stream-busy")
                    {
                        if call.runs() {
                            call.finish("{}").await;
                        }
                    }
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                redelivered.await.unwrap()
            };
            let answer = within(answered).await;
            assert!(answer.is_ok(), "{text}: {answer:?}");
        }
        for driven in bench
            .script
            .calls
            .iter()
            .filter(|it| it.key().starts_with("stream"))
        {
            let started = bench.script.starts.get(driven.key());
            assert_eq!(
                started.map(|it| *it),
                Some(1),
                "{} after {polls} polls",
                driven.key()
            );
        }
        settle(&bench, 1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_dropped_arrives_when_it_is_delivered_again() {
    for polls in 0..12 {
        let bench = bench(SessionConfig::default());
        let to = bench.open("alice", "2025-11-25").await;
        let mut stream = bench.stream(&to, 1, "stream").await;
        let _busy = bench.stream(&to, 2, "stream-busy").await;
        let tool = bench.script.call("stream").await;
        let (ask, method, params) = (AskId(1), Method::RootsList, None);
        let asked = CallEventKind::Ask {
            ask,
            method,
            params,
        };
        tool.send(asked).await;
        let question = read(&mut stream, 1).await.texts.remove(0);
        let Ok(Message::Request(question)) = Message::parse(&question.into()) else {
            panic!("a question");
        };
        let id = question.id.to_json();
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, id.as_str());
        let cancel =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        for said in [answer.as_str(), cancel] {
            let first = post(said);
            let again = Post {
                repeated: true,
                ..first.clone()
            };
            drop_after(&bench, &to, first, polls).await;
            bench.sessions.deliver(&to, again).await.unwrap();
        }
        assert_eq!(tool.answers.lock().len(), 1, "after {polls} polls");
        assert!(tool.cancelled.borrow().is_some(), "after {polls} polls");
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_that_nobody_waits_for_take_no_places() {
    let config = SessionConfig {
        limits: NodeLimits {
            sessions_per_node: 4,
            ..NodeLimits::default()
        },
        ..SessionConfig::default()
    };
    let bench = bench(config);
    for polls in 0..20 {
        let mut opening = Box::pin(bench.sessions.open(initialize("alice", "2025-03-26")));
        for _ in 0..polls % 2 {
            if futures::poll!(&mut opening).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    let status = bench.sessions.status();
    assert_eq!(status.reserved, status.live + status.passive);
    bench.open("alice", "2025-03-26").await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_taken_over_for_nobody_goes_on() {
    for polls in 0..12 {
        let bench = bench(SessionConfig::default());
        for node in ["test", "next"] {
            let node = NodeId::new(node);
            let renewed = bench.store.directory.renew_lease(&node, LONG);
            renewed.await.unwrap();
        }
        let next = bench.another_node("next");
        let to = bench.open("alice", "2025-11-25").await;
        let stream = bench.stream(&to, 1, "stream").await;
        let lost = NodeId::new("test");
        bench.store.directory.end_lease(&lost).await.unwrap();
        let mut asking = Box::pin(next.deliver(&to, post(&call(2, "echo"))));
        let mut asked = false;
        for _ in 0..polls {
            asked |= futures::poll!(&mut asking).is_ready();
            if asked {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(asking);
        if polls > 1 {
            until(|| next.status().journaled == 1, || next.status()).await;
        }
        bench.script.call("stream").await.finish("{}").await;
        let mut rest = next.listen(&to, Some(stream.cursor)).await.unwrap();
        assert_eq!(
            read_all(&mut rest).await.events.len(),
            1,
            "after {polls} polls"
        );
        next.close(&to).await.unwrap();
        assert_eq!((next.status().reserved, next.status().journaled), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_end_nobody_waits_for_ends() {
    for polls in 0..12 {
        let bench = bench(SessionConfig::default());
        let to = bench.open("alice", "2025-11-25").await;
        let _stream = bench.stream(&to, 1, "stream").await;
        let mut closing = Box::pin(bench.sessions.close(&to));
        for _ in 0..polls {
            if futures::poll!(&mut closing).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(closing);
        if polls == 0 {
            bench.sessions.close(&to).await.unwrap();
        }
        let ended = || {
            let status = bench.sessions.status();
            (status.live, status.reserved, status.journaled) == (0, 0, 0)
        };
        until(ended, || bench.sessions.status()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_hangs_up_takes_no_news_along() {
    for polls in 0..12 {
        let bench = bench(SessionConfig::default());
        let to = bench.open("alice", "2025-11-25").await;
        let _busy = bench.stream(&to, 1, "stream-busy").await;
        let subscribe =
            r#"{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"r://a"}}"#;
        bench.json(&to, subscribe).await;
        let update = ResourceUpdated {
            uri: "r://a".into(),
            params: RawJson::from_static(r#"{"uri":"r://a"}"#),
        };
        bench.script.updates.send(update).unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
        let mut listening = Box::pin(bench.sessions.listen(&to, None));
        for _ in 0..polls {
            if futures::poll!(&mut listening).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(listening);
        tokio::time::sleep(Duration::from_millis(10)).await;
        let start = bench
            .store
            .log
            .last(&to.session, StreamId::STANDALONE)
            .await
            .unwrap();
        let start = EventId {
            sequence: 0,
            ..start
        };
        let mut stream = bench.sessions.listen(&to, Some(start)).await.unwrap();
        let news = read(&mut stream, 1).await;
        assert!(
            news.texts[0].contains("r://a"),
            "after {polls} polls: {news:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn who_asks_again_is_answered_when_no_call_may_take_longer() {
    let config = SessionConfig {
        streams: StreamSettings {
            grace: Duration::from_secs(1_000).into(),
            ..StreamSettings::default()
        },
        ..SessionConfig::default()
    };
    let limit = config.calls.timeout.get();
    let bench = bench(config);
    let to = bench.open("alice", "2025-11-25").await;
    let first = post(&call(1, "slow"));
    let again = Post {
        repeated: true,
        ..first.clone()
    };
    let mut stuck = Box::pin(bench.sessions.deliver(&to, first));
    assert!(futures::poll!(&mut stuck).is_pending());
    let began = tokio::time::Instant::now();
    let answer = bench.sessions.deliver(&to, again).await;
    let Ok(Delivered::Json(answer)) = answer else {
        panic!("{answer:?}");
    };
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(
        answer.contains("50400") && answer.contains(r#""id":1"#),
        "{answer}"
    );
    assert!(
        began.elapsed() < limit + Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
}

async fn until<T: std::fmt::Debug>(condition: impl Fn() -> bool, shown: impl Fn() -> T) {
    for _ in 0..10_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("{:?}", shown());
}
