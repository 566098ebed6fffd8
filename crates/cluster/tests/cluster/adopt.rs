use std::time::Duration;

use shoal_ports::{
    AdoptCall, Binding, CallId, GatewayError, Principal, Repeat, Route, SessionGateway as _,
    SessionRef, TaskClient, TaskMark, TaskRequest, WorkerId,
};
use shoal_protocol::task::Task;
use shoal_protocol::{Method, RawJson, Request, RequestId};
use tokio::time::Instant;

use crate::open::full;
use crate::test_cluster::{Reply, TestCluster, TestNode};

fn call() -> AdoptCall {
    AdoptCall {
        call: CallId::generate(),
        request: Request {
            id: RequestId::from_number(1),
            method: Method::ToolsCall,
            params: None,
        },
        repeat: Repeat::Never,
        route: Route {
            pool: "p".into(),
            tool: None,
            params: None,
            hold: None,
            rule: None,
        },
        binding: Binding {
            worker: WorkerId::new("w"),
            ledger: None,
        },
        client: TaskClient {
            client_info: None,
            capabilities: RawJson::from_static("{}"),
        },
        repeated: false,
    }
}

fn new_task(edge: &TestNode) -> SessionRef {
    let task = edge.routed.new_task().unwrap();
    SessionRef::new(task, Principal::anonymous())
}

async fn adopt(edge: &TestNode, to: &SessionRef) -> Result<Task, GatewayError> {
    edge.routed.adopt(to, call()).await
}

#[tokio::test(start_paused = true)]
async fn a_task_begins_on_the_node_that_its_id_names_in_one_step() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    for _ in 0..10 {
        let to = new_task(&edge);
        let made = adopt(&edge, &to).await.unwrap();
        let owner = cluster.owner(&to).await.unwrap();
        assert_eq!(made.id, owner.as_str());
        assert_eq!(to.session.hint(), Some(owner.tag()));
    }
    assert_eq!((a.adopts().len(), b.adopts().len()), (5, 5));
    assert_eq!(edge.access.lookups(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_no_node() {
    let cluster = TestCluster::new();
    let edge = cluster.edge("e").await;
    let begun = Instant::now();
    edge.routed.new_task().unwrap_err();
    assert_eq!(begun.elapsed(), Duration::ZERO);
    let a = cluster.node("a").await;
    edge.sees(2).await;
    let to = new_task(&edge);
    a.then(Reply::Error(GatewayError::Moved { owner: None }));
    let begun = Instant::now();
    let refused = adopt(&edge, &to).await.unwrap_err();
    assert!(
        !matches!(refused, GatewayError::Unreachable { .. }),
        "{refused}"
    );
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(cluster.owner(&to).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_full_node_is_passed_over() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    for node in [&a, &b] {
        node.then(Reply::Error(full()));
    }
    assert_eq!(adopt(&edge, &new_task(&edge)).await.unwrap_err(), full());
    let to = new_task(&edge);
    adopt(&edge, &to).await.unwrap();
    assert!(cluster.owner(&to).await.is_some());
}

/// Loses the answer of the node that is asked to make the task. If `made`, the node makes the task and dies. Otherwise,
/// it is unreachable and makes none.
async fn loses(made: bool) {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    let to = new_task(&edge);
    let is_a = to.session.hint() == Some(a.id.tag());
    let (first, other) = if is_a { (a, b) } else { (b, a) };
    match made {
        true => first.then(Reply::Hang),
        false => {
            let reason = "broken".to_owned();
            first.then(Reply::Error(GatewayError::Unreachable { reason }));
        }
    }
    let adopting = tokio::spawn({
        let (edge, to) = (edge.clone(), to.clone());
        async move { adopt(&edge, &to).await }
    });
    first.has_adopt().await;
    if made {
        tokio::time::sleep(Duration::from_millis(1)).await;
        first.die();
    }
    let task = adopting.await.unwrap().unwrap();
    assert_eq!(task.id, other.id.as_str());
    assert_eq!(first.adopts(), [(to.session.clone(), false)]);
    let again = other.adopts();
    assert_eq!(again.last(), Some(&(to.session.clone(), true)));
    assert_eq!(cluster.owner(&to).await, Some(other.id.clone()));
}

/// The edge would otherwise repeat the request until the call's deadline.
#[tokio::test(start_paused = true)]
async fn a_refusal_is_final_only_for_an_edge_that_repeats_its_request() {
    for repeated in [false, true] {
        let cluster = TestCluster::new();
        let (a, b) = (cluster.node("a").await, cluster.node("b").await);
        let edge = cluster.edge("e").await;
        let to = new_task(&edge);
        let is_a = to.session.hint() == Some(a.id.tag());
        let (first, other) = if is_a { (&a, &b) } else { (&b, &a) };
        let reason = "broken".to_owned();
        first.then(Reply::Error(GatewayError::Unreachable { reason }));
        let refusal = GatewayError::Internal("refused".to_owned());
        other.then(Reply::Error(refusal.clone()));
        let call = AdoptCall { repeated, ..call() };
        let error = edge.routed.adopt(&to, call).await.unwrap_err();
        assert_eq!(error == refusal, repeated, "{error}");
        let is_unknown = matches!(error, GatewayError::Unreachable { .. });
        assert_eq!(is_unknown, !repeated, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_asked_for_again_at_the_next_owner_of_the_same_task() {
    loses(true).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_was_not_made_is_made_under_the_same_id_elsewhere() {
    loses(false).await;
}

#[tokio::test(start_paused = true)]
async fn an_attempt_whose_fate_stays_unknown_is_no_refusal() {
    let cluster = TestCluster::new();
    let a = cluster.node("a").await;
    let edge = cluster.edge("e").await;
    let to = new_task(&edge);
    a.then(Reply::Hang);
    let adopting = tokio::spawn({
        let (edge, to) = (edge.clone(), to.clone());
        async move { adopt(&edge, &to).await }
    });
    a.has_adopt().await;
    a.die();
    let unknown = adopting.await.unwrap().unwrap_err();
    assert!(
        matches!(unknown, GatewayError::Unreachable { .. }),
        "{unknown}"
    );
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_news_waits_at_the_next_owner() {
    let cluster = TestCluster::new();
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let edge = cluster.edge("e").await;
    let to = new_task(&edge);
    adopt(&edge, &to).await.unwrap();
    let is_a = cluster.owner(&to).await.as_ref() == Some(&a.id);
    let (first, other) = if is_a { (a, b) } else { (b, a) };
    first.then(Reply::Hang);
    let watching = tokio::spawn({
        let (edge, to) = (edge.clone(), to.clone());
        let watch = TaskRequest::Watch { seen: TaskMark(7) };
        async move { edge.routed.ask_task(&to, watch).await }
    });
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(!watching.is_finished());
    first.die();
    assert_eq!(watching.await.unwrap().unwrap().id, other.id.as_str());
}
