use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use shoal_ports::{
    Delivered, Evidence, GatewayError, Liveness, NodeId, Post, Principal, Renewal, SessionGateway,
    SessionRef, TaskRequest,
};
use shoal_session::{SessionConfig, Sessions};

use crate::support::counted::Counted;
use crate::support::{Bench, adopted, call, post, read, read_all};

const LONG: Duration = Duration::from_secs(60);

struct Told {
    certain: AtomicBool,
    gone: Mutex<Option<NodeId>>,
    looks: AtomicUsize,
}

#[async_trait]
impl Liveness for Told {
    fn is_certain(&self) -> bool {
        self.certain.load(Ordering::SeqCst)
    }

    async fn evidence_against(&self, node: &NodeId) -> Option<Evidence> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        let gone = self.gone.lock().clone()?;
        (gone == *node).then_some(Evidence {
            against: gone,
            lease: LONG,
        })
    }
}

impl Told {
    fn to(sessions: &Sessions) -> Arc<Self> {
        let told = Arc::new(Self {
            certain: AtomicBool::new(true),
            gone: Mutex::default(),
            looks: AtomicUsize::new(0),
        });
        sessions.rely_on(told.clone());
        told
    }

    fn doubt(&self) {
        self.certain.store(false, Ordering::SeqCst);
    }
}

struct Two {
    bench: Bench,
    told: Arc<Told>,
    second: Sessions,
    second_told: Arc<Told>,
    alice: SessionRef,
}

async fn two() -> Two {
    two_on(Bench::new(SessionConfig::default())).await
}

async fn two_on(bench: Bench) -> Two {
    for node in ["test", "b"].map(NodeId::new) {
        bench
            .store
            .directory
            .renew_lease(&node, LONG)
            .await
            .unwrap();
    }
    let second = bench.another_node("b");
    Two {
        told: Told::to(&bench.sessions),
        second_told: Told::to(&second),
        alice: bench.open("alice", "2025-11-25").await,
        second,
        bench,
    }
}

impl Two {
    fn blame(&self) {
        *self.second_told.gone.lock() = Some(NodeId::new("test"));
    }

    async fn echo(&self, sessions: &Sessions, id: u64) -> Result<Delivered, GatewayError> {
        sessions.deliver(&self.alice, post(&call(id, "echo"))).await
    }
}

#[tokio::test]
async fn an_owner_that_is_gone_is_replaced_while_its_lease_lives() {
    let two = two().await;
    let mut before = two.bench.stream(&two.alice, 1, "stream-long").await;
    let tool = two.bench.script.call("stream-long").await;
    tool.progress(1).await;
    let seen = read(&mut before, 1).await;
    two.blame();

    let listening = two.second.listen(&two.alice, Some(seen.cursor()));
    let mut after = listening.await.unwrap();
    tool.progress(2).await;
    tool.finish(r#"{"content":[]}"#).await;
    let rest = read_all(&mut after).await;
    assert_eq!(rest.events.len(), 2, "{rest:?}");
    assert_eq!(two.second.status().taken_over, 1);
    assert_eq!(two.bench.script.started.load(Ordering::SeqCst), 1, "once");
    assert!(tool.cancelled.borrow().is_none());

    let directory = &two.bench.store.directory;
    let renewed = directory.renew_lease(&NodeId::new("test"), LONG).await;
    assert_eq!(renewed, Ok(Renewal::Contested));
    two.bench.sessions.revalidate().await.unwrap();
    assert_eq!(two.bench.sessions.status().lost, 1);
    let owner = Some(NodeId::new("b"));
    let refused = two.echo(&two.bench.sessions, 2).await;
    assert_eq!(refused.unwrap_err(), GatewayError::Moved { owner });
}

#[tokio::test]
async fn an_owner_is_looked_for_only_by_who_would_take_its_session() {
    let two = two().await;
    two.echo(&two.bench.sessions, 1).await.unwrap();
    assert_eq!(two.told.looks.load(Ordering::SeqCst), 0);
    let owner = Some(NodeId::new("test"));
    let refused = two.echo(&two.second, 2).await;
    assert_eq!(refused.unwrap_err(), GatewayError::Moved { owner });
    assert_eq!(two.second_told.looks.load(Ordering::SeqCst), 1);
    let mallory = SessionRef {
        principal: Principal::new("mallory"),
        ..two.alice.clone()
    };
    two.blame();
    let refused = two.second.deliver(&mallory, post(&call(1, "echo"))).await;
    assert_eq!(refused.unwrap_err(), GatewayError::NotFound);
    assert_eq!(two.second_told.looks.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_node_whose_lease_is_not_certain_asks_before_it_admits() {
    let two = two().await;
    let mut before = two.bench.stream(&two.alice, 1, "stream-long").await;
    let tool = two.bench.script.call("stream-long").await;
    two.told.doubt();
    let served = two.echo(&two.bench.sessions, 2).await;
    assert!(matches!(served, Ok(Delivered::Json(_))), "{served:?}");

    two.blame();
    two.echo(&two.second, 3).await.unwrap();
    let refused = two.echo(&two.bench.sessions, 4).await;
    assert!(
        matches!(refused, Err(GatewayError::Moved { .. })),
        "{refused:?}"
    );
    assert!(read_all(&mut before).await.moved, "and lets go");
    assert!(tool.cancelled.borrow().is_none(), "of nothing that runs");
    let refused = two.bench.sessions.listen(&two.alice, None).await;
    let owner = Some(NodeId::new("b"));
    assert_eq!(refused.unwrap_err(), GatewayError::Moved { owner });
}

#[tokio::test]
async fn a_session_that_its_next_owner_has_ended_is_not_served_by_the_former() {
    let two = two().await;
    two.blame();
    two.second.close(&two.alice).await.unwrap();
    two.told.doubt();
    two.echo(&two.bench.sessions, 1).await.unwrap_err();
    let refused = two.echo(&two.bench.sessions, 2).await;
    assert_eq!(refused.unwrap_err(), GatewayError::NotFound);
}

#[tokio::test]
async fn while_the_store_cannot_say_what_needs_no_store_is_served() {
    let counted = Counted::new();
    let two = two_on(Bench::on(counted.store(), SessionConfig::default())).await;
    two.told.doubt();
    counted.mute(true);
    let served = two.echo(&two.bench.sessions, 1).await;
    assert!(matches!(served, Ok(Delivered::Json(_))), "{served:?}");
    counted.mute(false);
    two.blame();
    two.echo(&two.second, 2).await.unwrap();
    let refused = two.echo(&two.bench.sessions, 3).await;
    assert_eq!(refused.unwrap_err(), GatewayError::Moved { owner: None });
}

#[tokio::test]
async fn of_a_task_nothing_is_said_while_the_store_cannot_say_whose_it_is() {
    let counted = Counted::new();
    let bench = Bench::on(counted.store(), SessionConfig::default());
    let told = Told::to(&bench.sessions);
    let task = bench.sessions.new_task().unwrap();
    let task = SessionRef::new(task, Principal::new("alice"));
    let adopted = bench.sessions.adopt(&task, adopted("stream-long")).await;
    adopted.unwrap();
    let get = || bench.sessions.ask_task(&task, TaskRequest::Get);
    told.doubt();
    get().await.unwrap();
    counted.mute(true);
    let refused = get().await;
    assert!(
        matches!(refused, Err(GatewayError::Unavailable { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn repeated_deliveries_that_come_together_are_all_answered() {
    for tool in ["echo", "stream-once"] {
        let counted = Counted::new();
        let two = two_on(Bench::on(counted.store(), SessionConfig::default())).await;
        two.told.doubt();
        let again = Post {
            repeated: true,
            ..post(&call(1, tool))
        };
        let deliver = || two.bench.sessions.deliver(&two.alice, again.clone());
        let both = tokio::time::timeout(LONG, futures::future::join(deliver(), deliver()));
        let finished = async {
            if tool != "echo" {
                let tool = two.bench.script.call(tool).await;
                tool.finish(r#"{"content":[]}"#).await;
            }
        };
        let (both, ()) = futures::future::join(both, finished).await;
        let (first, second) = both.unwrap();
        let mut answers = Vec::new();
        for delivered in [first.unwrap(), second.unwrap()] {
            answers.push(match delivered {
                Delivered::Json(text) => String::from_utf8(text.to_vec()).unwrap(),
                Delivered::Stream(mut stream) => read_all(&mut stream).await.texts.concat(),
                other => panic!("a request is answered: {other:?}"),
            });
        }
        let taken_over = |answer: &String| tool != "echo" && answer.is_empty();
        let answered = |answer: &String| answer.contains(r#""result""#);
        assert!(answers.iter().any(answered), "{tool}: {answers:?}");
        let fine = |answer: &String| answered(answer) || taken_over(answer);
        assert!(answers.iter().all(fine), "{tool}: {answers:?}");
    }
}
