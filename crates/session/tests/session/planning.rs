use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use async_trait::async_trait;
use shoal_ports::memory::MemoryStore;
use shoal_ports::{
    Append, Appended, Delivered, Epoch, EventLog, EventStream, GatewayError, LogError, OpenSession,
    Post, SessionGateway as _, SessionId, SessionRef, SessionTransport, StreamSettings, WorkerId,
};
use shoal_protocol::{EventId, StreamId};
use shoal_session::SessionConfig;
use tokio::sync::watch;
use tokio::task::yield_now;

use crate::support::over::{EventLogOver, Over};
use crate::support::{Bench, call, post, read, read_all, within};

async fn journaled(bench: &Bench, to: &SessionRef) -> Vec<Option<WorkerId>> {
    let running = bench.store.journal.running(&to.session, Epoch(1));
    let running = running.await.unwrap();
    let calls = running.iter().flat_map(|stream| &stream.calls);
    calls.map(|call| call.entry.worker.clone()).collect()
}

async fn has_stream(bench: &Bench, to: &SessionRef) -> bool {
    let first = EventId {
        stream: StreamId(1),
        sequence: 0,
        ..bench
            .store
            .log
            .last(&to.session, StreamId::STANDALONE)
            .await
            .unwrap()
    };
    bench.store.log.read(&to.session, first, 1).await.is_ok()
}

#[tokio::test]
async fn what_is_refused_is_told_at_once_and_written_nowhere() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let unknown = bench.json(&alice, &call(1, "stream-unknown")).await;
    assert!(unknown.contains("-32602"), "{unknown}");
    let full = bench
        .sessions
        .deliver(&alice, post(&call(2, "stream-full")));
    let full = full.await;
    assert!(
        matches!(full, Err(GatewayError::Overloaded { .. })),
        "{full:?}"
    );
    assert!(!has_stream(&bench, &alice).await);
    assert_eq!(bench.script.planned.load(SeqCst), 2);
    for id in [1, 2] {
        assert!(
            bench
                .json(&alice, &call(id, "echo"))
                .await
                .contains("result")
        );
    }
    let mut stream = bench.stream(&alice, 3, "stream").await;
    assert!(has_stream(&bench, &alice).await, "the check sees streams");
    assert_eq!(journaled(&bench, &alice).await, [Some(WorkerId::new("w"))]);
    bench.script.call("stream").await.finish("{}").await;
    read_all(&mut stream).await;
    assert_eq!(bench.script.planned.load(SeqCst), 5, "once for each");
}

#[tokio::test]
async fn what_is_refused_in_a_batch_is_answered_beside_what_runs() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-03-26").await;
    let refused = format!("[{},{}]", call(1, "stream-unknown"), call(2, "stream-full"));
    let answer = bench.json(&alice, &refused).await;
    assert!(
        answer.contains("-32602") && answer.contains("50300"),
        "{answer}"
    );
    assert!(!has_stream(&bench, &alice).await);
    let mixed = format!("[{},{}]", call(3, "stream-unknown"), call(4, "stream"));
    let Delivered::Stream(mut stream) = bench.post(&alice, &mixed).await else {
        panic!("a stream");
    };
    assert_eq!(journaled(&bench, &alice).await, [Some(WorkerId::new("w"))]);
    let told = read(&mut stream, 1).await;
    assert!(told.texts[0].contains(r#""id":3"#), "{told:?}");
    bench.script.call("stream").await.finish("{}").await;
    let told = read_all(&mut stream).await;
    assert!(told.texts[0].contains(r#""id":4"#), "{told:?}");
}

async fn waiting(
    bench: &Bench,
    to: &SessionRef,
    id: u64,
) -> tokio::task::JoinHandle<Result<Delivered, GatewayError>> {
    let before = bench.script.planned.load(SeqCst);
    let (sessions, to) = (bench.sessions.clone(), to.clone());
    let delivery =
        tokio::spawn(async move { sessions.deliver(&to, post(&call(id, "stream-late"))).await });
    within(async {
        while bench.script.planned.load(SeqCst) == before {
            yield_now().await;
        }
    })
    .await;
    delivery
}

#[tokio::test]
async fn a_call_without_a_worker_waits_before_it_is_journaled_and_then_names_it() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let delivery = waiting(&bench, &alice, 1).await;
    assert_eq!(journaled(&bench, &alice).await, []);
    assert!(!has_stream(&bench, &alice).await);
    bench.script.workers.send_replace(true);
    let Ok(Delivered::Stream(mut stream)) = within(delivery).await.unwrap() else {
        panic!("a stream");
    };
    assert_eq!(journaled(&bench, &alice).await, [Some(WorkerId::new("w"))]);
    bench.script.call("stream-late").await.finish("{}").await;
    assert_eq!(read_all(&mut stream).await.texts.len(), 1);
}

#[tokio::test]
async fn whoever_gives_up_while_it_waits_leaves_nothing_behind() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    for _ in 0..3 {
        let delivery = waiting(&bench, &alice, 1).await;
        delivery.abort();
        assert!(within(delivery).await.unwrap_err().is_cancelled());
        assert_eq!(bench.sessions.status().in_flight, 0);
    }
    bench.script.workers.send_replace(true);
    assert!(
        bench
            .json(&alice, &call(1, "echo"))
            .await
            .contains("result")
    );
    assert!(!has_stream(&bench, &alice).await);
    assert_eq!(bench.script.started.load(SeqCst), 0);
}

#[tokio::test]
async fn a_call_that_waits_can_be_cancelled() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let delivery = waiting(&bench, &alice, 7).await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    bench.post(&alice, cancel).await;
    let Ok(Delivered::Json(answer)) = within(delivery).await.unwrap() else {
        panic!("JSON");
    };
    assert!(String::from_utf8_lossy(&answer).contains("-32800"));
    assert_eq!(bench.script.started.load(SeqCst), 0);
    assert!(!has_stream(&bench, &alice).await);
}

#[tokio::test]
async fn a_call_that_waits_is_answered_when_its_session_ends() {
    let bench = Bench::new(SessionConfig::default());
    let alice = bench.open("alice", "2025-11-25").await;
    let delivery = waiting(&bench, &alice, 7).await;
    within(bench.sessions.close(&alice)).await.unwrap();
    let Ok(Delivered::Json(answer)) = within(delivery).await.unwrap() else {
        panic!("JSON");
    };
    let answer = String::from_utf8_lossy(&answer);
    assert!(
        answer.contains("50410") || answer.contains("-32800"),
        "{answer}"
    );
    assert_eq!(bench.script.started.load(SeqCst), 0);
}

#[tokio::test]
async fn a_worker_that_left_between_plan_and_start_is_replaced_in_the_journal_first() {
    let bench = Bench::new(SessionConfig::default());
    bench.script.replans.store(true, SeqCst);
    *bench.script.left.lock() = Some(WorkerId::new("w"));
    let alice = bench.open("alice", "2025-11-25").await;
    let mut stream = bench.stream(&alice, 1, "stream").await;
    let tool = bench.script.call("stream").await;
    let (first, second) = (WorkerId::new("w"), WorkerId::new("w2"));
    assert_eq!(
        *bench.script.offered.lock(),
        [Some(first), Some(second.clone())]
    );
    assert_eq!(journaled(&bench, &alice).await, [Some(second)]);
    assert_eq!(
        bench.script.planned.load(SeqCst),
        1,
        "nothing is checked twice"
    );
    tool.finish("{}").await;
    assert_eq!(read_all(&mut stream).await.texts.len(), 1);
}

#[tokio::test]
async fn a_worker_that_left_and_has_no_other_leaves_the_call_not_executed() {
    let bench = Bench::new(SessionConfig::default());
    *bench.script.left.lock() = Some(WorkerId::new("w"));
    let alice = bench.open("alice", "2025-11-25").await;
    let mut stream = bench.stream(&alice, 1, "stream").await;
    let told = read_all(&mut stream).await;
    assert!(told.texts[0].contains("50301"), "{told:?}");
    assert_eq!(journaled(&bench, &alice).await, []);
}

async fn single_stream(bench: &Bench) -> (SessionRef, EventStream) {
    let open = OpenSession {
        transport: SessionTransport::SingleStream,
        ..crate::support::initialize("alice", "2024-11-05")
    };
    let principal = open.principal.clone();
    let session = bench.sessions.open(open).await.unwrap().session;
    let to = SessionRef::new(session, principal);
    let stream = bench.sessions.listen(&to, None).await.unwrap();
    (to, stream)
}

#[tokio::test]
async fn a_repetition_over_one_stream_is_begun_and_answered_once() {
    let bench = Bench::new(SessionConfig::default());
    let (to, mut stream) = single_stream(&bench).await;
    let again = |json: &str| Post {
        repeated: true,
        ..post(json)
    };
    for (id, tool, answer) in [
        (1, "stream-once", "result"),
        (2, "stream-unknown", "-32602"),
        (3, "echo", "result"),
    ] {
        let repeated = again(&call(id, tool));
        for _ in 0..2 {
            let delivered = bench.sessions.deliver(&to, repeated.clone()).await;
            let accepted = matches!(delivered, Ok(Delivered::Accepted));
            assert!(accepted, "{delivered:?}");
        }
        if tool == "stream-once" {
            bench.script.call(tool).await.finish("{}").await;
        }
        let told = within(read(&mut stream, 1)).await;
        assert!(told.texts[0].contains(answer), "{tool}: {told:?}");
        let delivered = bench.sessions.deliver(&to, repeated).await;
        let accepted = matches!(delivered, Ok(Delivered::Accepted));
        assert!(accepted, "{delivered:?}");
    }
    let ping = r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#;
    bench.post(&to, ping).await;
    let told = within(read(&mut stream, 1)).await;
    assert!(told.texts[0].contains(r#""id":4"#), "{told:?}");
    assert_eq!(bench.script.started.load(SeqCst), 1);
}

#[tokio::test]
async fn what_one_stream_does_not_know_any_more_is_not_begun_again() {
    let limits = StreamSettings {
        events_per_stream: 4,
        ..StreamSettings::default()
    };
    let bench = Bench::on(
        MemoryStore::new(limits).into_store(),
        SessionConfig::default(),
    );
    let (to, mut stream) = single_stream(&bench).await;
    for id in 10..18 {
        let ping = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        bench.post(&to, &ping).await;
        within(read(&mut stream, 1)).await;
    }
    let mut repeated = post(&call(1, "stream-once"));
    repeated.repeated = true;
    let delivered = bench.sessions.deliver(&to, repeated).await;
    assert!(
        matches!(delivered, Ok(Delivered::Accepted)),
        "{delivered:?}"
    );
    let told = within(read(&mut stream, 1)).await;
    assert!(told.texts[0].contains("50002"), "{told:?}");
    assert_eq!(bench.script.started.load(SeqCst), 0);
}

struct SlowLog {
    inner: Arc<dyn EventLog>,
    holds: watch::Sender<bool>,
    waiting: watch::Sender<usize>,
}

#[async_trait]
impl EventLogOver for SlowLog {
    fn log(&self) -> &dyn EventLog {
        &*self.inner
    }

    async fn append(
        &self,
        session: &SessionId,
        epoch: Epoch,
        append: Append,
    ) -> Result<Appended, LogError> {
        self.waiting.send_modify(|waiting| *waiting += 1);
        let mut holds = self.holds.subscribe();
        holds.wait_for(|holds| !*holds).await.unwrap();
        self.inner.append(session, epoch, append).await
    }
}

#[tokio::test]
async fn a_call_whose_answer_is_on_its_way_to_the_one_stream_is_not_begun_again() {
    let mut store = MemoryStore::new(StreamSettings::default()).into_store();
    let log = Arc::new(SlowLog {
        inner: store.log.clone(),
        holds: watch::Sender::new(false),
        waiting: watch::Sender::new(0),
    });
    store.log = Arc::new(Over(log.clone()));
    let bench = Bench::on(store, SessionConfig::default());
    let (to, mut stream) = single_stream(&bench).await;
    let first = post(&call(1, "stream-once"));
    let again = crate::support::again(&first);
    bench.sessions.deliver(&to, first).await.unwrap();
    let tool = bench.script.call("stream-once").await;
    let mut waiting = log.waiting.subscribe();
    waiting.mark_unchanged();
    log.holds.send_replace(true);
    tool.finish("{}").await;
    within(waiting.changed()).await.unwrap();
    let delivered = bench.sessions.deliver(&to, again).await;
    assert!(
        matches!(delivered, Ok(Delivered::Accepted)),
        "{delivered:?}"
    );
    log.holds.send_replace(false);
    let told = within(read(&mut stream, 1)).await;
    assert!(told.texts[0].contains("result"), "{told:?}");
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    bench.post(&to, ping).await;
    let told = within(read(&mut stream, 1)).await;
    assert!(told.texts[0].contains(r#""id":2"#), "{told:?}");
    assert_eq!(bench.script.started.load(SeqCst), 1);
}
