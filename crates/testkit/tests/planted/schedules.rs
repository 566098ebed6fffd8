//! Orders of events in which a fault shows. A schedule waits for events instead of time, and breaks no promise without the
//! fault.

use std::sync::Arc;

use shoal_testkit::check::Verdict;
use shoal_testkit::client::End;
use shoal_testkit::history::{Ended, Message, Step, Tool};
use tokio::sync::watch;

use super::dispatcher::{How, Resuming};
use super::journal::Forgetful;
use super::late_log::LateLog;
use super::slow_log::SlowLog;
use super::test_cluster::{LONG, Parts, TestCluster, until, within};

pub(crate) async fn all_tools() -> Verdict {
    let cluster = TestCluster::start(|_| {}, |_| {}).await;
    within(cluster.call(Tool::Echo, 0)).await.unwrap();
    let calls =
        [Tool::StepsOnce, Tool::Steps, Tool::Record, Tool::Ask].map(|tool| cluster.call(tool, 3));
    cluster.stage.let_go(2);
    let asked = |did: &Step| {
        let Step::Received { message, .. } = did else {
            return false;
        };
        matches!(message, Message::Question { .. })
    };
    until("all tools are half done", || {
        cluster.stage.executions() == 3 && cluster.client_has(asked)
    })
    .await;
    cluster.client_sees_step(2, 2).await;
    cluster.fail_over().await;
    until("B has all calls", || cluster.b.status().resumed_calls == 4).await;
    cluster.stage.finish();
    for call in calls {
        assert_eq!(within(call).await.unwrap(), End::Answered);
    }
    within(cluster.call(Tool::Echo, 0)).await.unwrap();
    cluster.verdict()
}

/// Node A sends an event to the client before the event is stored, and the owner changes. The client resumes
/// before node B has caught up. Later B gives the same event the same number.
pub(crate) async fn sent_before_stored(planted: bool) -> Verdict {
    let mut late = None;
    let caught_up = watch::Sender::new(false);
    let cluster = TestCluster::start(
        |a| {
            if planted {
                let log = LateLog::before(a.store.log.clone());
                a.store.log = log.clone();
                late = Some(log);
            }
        },
        |b| resume(b, How::Later(caught_up.subscribe())),
    )
    .await;
    let call = cluster.call(Tool::StepsOnce, 3);
    cluster.stage.let_go(1);
    cluster.client_sees_step(1, 1).await;
    if let Some(log) = late {
        log.catch_up().await;
    }
    cluster.stage.let_go(2);
    cluster.client_sees_step(2, 1).await;
    cluster.fail_over().await;
    until("B lets the client read on, or refuses it", || {
        let refused = |did: &Step| matches!(did, Step::Refused { .. });
        cluster.b.status().resumed > 0 || cluster.client_has(refused)
    })
    .await;
    caught_up.send_replace(true);
    cluster.stage.finish();
    within(call).await.unwrap();
    cluster.verdict()
}

/// An append of node A arrives after node B has written the same event.
pub(crate) async fn late_write_of_a_former_owner(planted: bool) -> Verdict {
    let mut slow = None;
    let cluster = TestCluster::start(
        |a| {
            let log = SlowLog::before(a.store.clone(), !planted);
            a.store.log = log.clone();
            slow = Some(log);
        },
        |_| {},
    )
    .await;
    let slow = slow.expect("A was started");
    let call = cluster.call(Tool::StepsOnce, 3);
    cluster.stage.let_go(1);
    cluster.client_sees_step(1, 1).await;
    slow.hold();
    cluster.stage.let_go(2);
    until("A's append is on its way", || slow.under_way() == 1).await;
    cluster.fail_over().await;
    cluster.client_sees_step(2, 1).await;
    cluster.a.revalidate().await.unwrap();
    slow.let_go();
    until("A's append has arrived", || slow.under_way() == 0).await;
    cluster.stage.finish();
    within(call).await.unwrap();
    cluster.verdict()
}

pub(crate) async fn call_under_way(planted: bool) -> Verdict {
    let plant = |b: &mut _| {
        if planted {
            resume(b, How::Blindly);
        }
    };
    let cluster = TestCluster::start(|_| {}, plant).await;
    let call = cluster.call(Tool::Record, 0);
    until("the call runs", || cluster.stage.executions() == 1).await;
    cluster.fail_over().await;
    until("B has the call", || cluster.b.status().resumed_calls == 1).await;
    cluster.stage.finish();
    within(call).await.unwrap();
    cluster.verdict()
}

/// The link breaks after node A has accepted a request, and the edge delivers the request again, to node B.
/// The store does not have the call.
pub(crate) async fn request_delivered_again(planted: bool) -> Verdict {
    let plant = |b: &mut Parts| {
        b.hold = LONG;
        if planted {
            resume(b, How::Blindly);
        }
    };
    let cluster = TestCluster::start(|a| a.hold = LONG, plant).await;
    // Opens the session before answers are held back.
    within(cluster.call(Tool::Echo, 0)).await.unwrap();
    cluster.way_to_a.swallow_answers();
    let call = cluster.call(Tool::Record, 0);
    until("the call runs", || cluster.stage.executions() == 1).await;
    cluster.fail_over().await;
    until("B has the session", || cluster.b.status().taken_over == 1).await;
    cluster.stage.finish();
    within(call).await.unwrap();
    cluster.verdict()
}

/// Node A has the result of a held call, and the link breaks before the edge has the result.
pub(crate) async fn result_on_its_way(planted: bool) -> Verdict {
    let plant = |a: &mut Parts| {
        a.hold = LONG;
        if planted {
            resume(a, How::Hastily);
        }
    };
    let cluster = TestCluster::start(plant, |b| b.hold = LONG).await;
    within(cluster.call(Tool::Echo, 0)).await.unwrap();
    cluster.way_to_a.swallow_answers();
    let call = cluster.call(Tool::Record, 0);
    until("the call runs", || cluster.stage.executions() == 1).await;
    cluster.stage.finish();
    until("A has answered", || cluster.a.status().in_flight == 0).await;
    cluster.fail_over().await;
    within(call).await.unwrap();
    cluster.verdict()
}

pub(crate) async fn answer_after_the_failover(planted: bool) -> Verdict {
    let cluster = TestCluster::start(|_| {}, |b| forget(b, planted)).await;
    let call = cluster.call(Tool::Record, 0);
    until("the call runs", || cluster.stage.executions() == 1).await;
    cluster.fail_over().await;
    // Waits, because node A may still answer until node B has the session.
    until("B has the session", || cluster.b.status().taken_over == 1).await;
    cluster.stage.finish();
    let sent_away = |did: &Step| {
        let Step::Ended { how, .. } = did else {
            return false;
        };
        *how == Ended::Orderly
    };
    until("the client is answered, or sent away", || {
        call.is_finished() || cluster.client_has(sent_away)
    })
    .await;
    let verdict = cluster.verdict();
    call.abort();
    verdict
}

fn resume(parts: &mut Parts, how: How) {
    parts.dispatcher = Arc::new(Resuming {
        inner: parts.dispatcher.clone(),
        how,
    });
}

fn forget(parts: &mut Parts, planted: bool) {
    if planted {
        parts.store.journal = Arc::new(Forgetful(parts.store.journal.clone()));
    }
}
