//! Plants one fault at a time in a small cluster of product code: a store, a journal or a
//! dispatcher that breaks its contract. The checker of histories must find the fault.
#![allow(clippy::unwrap_used, reason = "a failed step is the report")]

mod planted {
    pub(crate) mod dispatcher;
    pub(crate) mod journal;
    pub(crate) mod late_log;
    pub(crate) mod link;
    pub(crate) mod schedules;
    pub(crate) mod slow_log;
    pub(crate) mod stage;
    pub(crate) mod test_cluster;
}

use planted::schedules;
use planted::test_cluster::kinds;
use shoal_testkit::check::{Verdict, Violation};

macro_rules! shows {
    ($schedule:path, $($violation:expr),+) => {{
        assert_clean(&$schedule(false).await);
        let verdict = $schedule(true).await;
        assert_eq!(kinds(&verdict), [$($violation),+], "{verdict:#?}");
    }};
}

fn assert_clean(verdict: &Verdict) {
    assert!(verdict.is_clean(), "{verdict:#?}");
}

#[tokio::test]
async fn without_a_fault_a_failover_breaks_no_promise() {
    let verdict = schedules::all_tools().await;
    assert_clean(&verdict);
    let counts = &verdict.counts;
    assert_eq!((counts.results, counts.executions), (6, 3), "{verdict:#?}");
    assert_eq!((counts.sessions, counts.breaks), (1, 0), "{verdict:#?}");
}

#[tokio::test]
async fn an_event_that_is_sent_before_it_is_stored() {
    shows!(schedules::sent_before_stored, Violation::Lost);
}

#[tokio::test]
async fn a_store_that_lets_a_former_owner_write() {
    shows!(
        schedules::late_write_of_a_former_owner,
        Violation::Duplicated
    );
}

#[tokio::test]
async fn a_call_that_is_started_again_instead_of_found() {
    shows!(schedules::call_under_way, Violation::ExecutedTwice);
}

#[tokio::test]
async fn a_request_that_is_delivered_again_and_not_recognised() {
    shows!(schedules::request_delivered_again, Violation::ExecutedTwice);
}

#[tokio::test]
async fn a_result_that_is_let_go_before_it_is_safe() {
    shows!(schedules::result_on_its_way, Violation::UnexpectedError);
}

#[tokio::test]
async fn a_new_owner_that_does_not_look_for_calls() {
    shows!(schedules::answer_after_the_failover, Violation::Lost);
}
