use std::time::Duration;

use proptest::prelude::*;
use shoal_ports::{Delivered, EventStream, SessionGateway as _, StreamItem};

use crate::test_cluster::{Reply, TestCluster, post};

pub(crate) async fn read(stream: &mut EventStream, count: usize) -> Vec<u64> {
    let mut events = Vec::new();
    while events.len() < count {
        match stream.items.recv().await.expect("the stream goes on") {
            StreamItem::Event { id, data } => {
                assert_eq!(data, id.sequence.to_string());
                events.push(id.sequence);
            }
            StreamItem::Prime { .. } => {}
            other => panic!("not for a client's eyes: {other:?}"),
        }
    }
    events
}

pub(crate) async fn read_to_end(stream: &mut EventStream) -> Vec<u64> {
    let mut events = Vec::new();
    while let Some(item) = stream.items.recv().await {
        match item {
            StreamItem::Event { id, .. } => events.push(id.sequence),
            other => panic!("unexpected: {other:?}"),
        }
    }
    events
}

#[tokio::test(start_paused = true)]
async fn a_stream_goes_on_when_its_owner_dies() {
    let cluster = TestCluster::new();
    let (a, _b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    a.then(Reply::Stream);
    let Delivered::Stream(mut stream) = edge.routed.deliver(&to, post()).await.unwrap() else {
        panic!("a stream")
    };
    cluster.log.append(2);
    let primed = stream.items.recv().await;
    assert!(matches!(primed, Some(StreamItem::Prime { .. })));
    assert_eq!(read(&mut stream, 2).await, [1, 2]);
    a.die();
    cluster.log.append(2);
    cluster.log.finish();
    assert_eq!(
        read_to_end(&mut stream).await,
        [3, 4],
        "and no second prime"
    );
    let status = edge.routed.status().routing;
    assert_eq!((status.reattached, status.lost_streams), (1, 0));
    assert_eq!(status.takeovers.count, 1);
}

#[tokio::test(start_paused = true)]
async fn what_passes_does_not_move_where_a_stream_goes_on() {
    let cluster = TestCluster::new();
    let (a, _b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    let mut stream = edge.routed.listen(&to, None).await.unwrap();
    cluster.log.append(2);
    assert_eq!(read(&mut stream, 2).await, [1, 2]);
    cluster.log.pass();
    let passing = stream.items.recv().await;
    assert!(matches!(passing, Some(StreamItem::Passing { .. })));
    a.die();
    cluster.log.append(1);
    cluster.log.finish();
    assert_eq!(read_to_end(&mut stream).await, [3]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_moves_before_its_first_event_begins_where_it_began() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    let mut stream = edge.routed.listen(&to, None).await.unwrap();
    a.drain().await;
    cluster.log.append(1);
    assert_eq!(read(&mut stream, 1).await, [1]);
    assert_eq!(cluster.owner(&to).await, Some(b.id.clone()));
}

#[tokio::test(start_paused = true)]
async fn a_stream_whose_session_is_gone_ends() {
    let cluster = TestCluster::new();
    let (a, _b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    let mut stream = edge.routed.listen(&to, None).await.unwrap();
    cluster.log.append(1);
    read(&mut stream, 1).await;
    a.joined().routed.close(&to).await.unwrap();
    a.drop_readers();
    assert!(read_to_end(&mut stream).await.is_empty());
    assert_eq!(edge.routed.status().routing.lost_streams, 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_takes_its_reader_along() {
    let cluster = TestCluster::new();
    let a = cluster.node("a").await;
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    let stream = edge.routed.listen(&to, None).await.unwrap();
    assert_eq!(cluster.log.readers(), 1);
    drop(stream);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(cluster.log.readers(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stream_waits_for_a_store_that_is_away() {
    let cluster = TestCluster::new();
    let (a, _b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    let mut stream = edge.routed.listen(&to, None).await.unwrap();
    cluster.log.append(1);
    read(&mut stream, 1).await;
    edge.access.set_away(true);
    a.die();
    tokio::time::sleep(Duration::from_secs(10)).await;
    edge.access.set_away(false);
    cluster.log.append(1);
    assert_eq!(read(&mut stream, 1).await, [2]);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_lets_go_again_and_again_is_asked_less_and_less() {
    let cluster = TestCluster::new();
    let a = cluster.node("a").await;
    let edge = cluster.edge("e").await;
    let to = cluster.session(&a).await;
    a.let_go(8);
    let begun = tokio::time::Instant::now();
    let mut stream = edge.routed.listen(&to, None).await.unwrap();
    cluster.log.append(1);
    assert_eq!(read(&mut stream, 1).await, [1]);
    assert_eq!(a.listens(), 9);
    assert!(
        begun.elapsed() > Duration::from_secs(2),
        "it paused between"
    );
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Append(u64),
    Read(usize),
    Break,
    Release,
    Pause,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (1..6_u64).prop_map(Step::Append),
        (1..6_usize).prop_map(Step::Read),
        Just(Step::Break),
        Just(Step::Release),
        Just(Step::Pause),
    ];
    prop::collection::vec(step, 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_is_missing_and_nothing_is_told_twice(steps in steps()) {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap()
            .block_on(go_through(steps));
    }
}

async fn go_through(steps: Vec<Step>) {
    let cluster = TestCluster::new();
    let nodes = [
        cluster.node("a").await,
        cluster.node("b").await,
        cluster.node("c").await,
    ];
    let edge = cluster.edge("e").await;
    let to = cluster.session(&nodes[0]).await;
    nodes[0].then(Reply::Stream);
    let Delivered::Stream(mut stream) = edge.routed.deliver(&to, post()).await.unwrap() else {
        panic!("a stream")
    };
    let (mut appended, mut got) = (0, Vec::new());
    for step in steps {
        let owner = cluster
            .owner(&to)
            .await
            .and_then(|owner| cluster.find(&owner));
        match (step, owner) {
            (Step::Append(count), _) => {
                cluster.log.append(count);
                appended += count;
            }
            (Step::Read(count), _) => {
                let left = usize::try_from(appended).unwrap() - got.len();
                got.extend(read(&mut stream, count.min(left)).await);
            }
            (Step::Break, Some(owner)) => owner.drop_readers(),
            (Step::Release, Some(owner)) => owner.release().await,
            (Step::Pause | Step::Break | Step::Release, _) => {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
    cluster.log.finish();
    let left = usize::try_from(appended).unwrap() - got.len();
    got.extend(read(&mut stream, left).await);
    assert_eq!(got, (1..=appended).collect::<Vec<_>>());
    assert_eq!(edge.routed.status().routing.lost_streams, 0);
}
