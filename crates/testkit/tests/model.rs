//! Explores a model of the protocol that carries sessions and calls from node to node: claims, leases, the
//! journal, attaching to workers, redelivery and resumption.
//!
//! The model is small enough to be explored in full: every order of steps, with a bounded number of things
//! that go wrong. It stands for the design and not for the code; what it cannot see is a step that the code
//! takes to be atomic and is not. It leaves out what the rest follows from: releases (a lease that ends at
//! once), appends of several events, batches, and limits.
//!
//! Start reading at `model/action.rs`, which lists the steps, and `model/properties.rs`.

mod model {
    pub(crate) mod action;
    pub(crate) mod check;
    pub(crate) mod claim;
    pub(crate) mod client;
    pub(crate) mod cluster;
    pub(crate) mod moves;
    pub(crate) mod owner;
    pub(crate) mod properties;
    pub(crate) mod setup;
    pub(crate) mod state;
    pub(crate) mod store;
    pub(crate) mod traces;
    pub(crate) mod trouble;
    pub(crate) mod worker;
}

use model::check::{breaks, ends_in, has_no_cycle, holds};
use model::properties::{
    ANSWERED, AT_MOST_ONCE, EPOCHS, NOT_EXECUTED, ONE_ANSWER, ONE_CALL, ONE_OWNER, PREFIX,
    WORKER_EVENTS,
};
use model::setup::{Fault, Setup};
use model::traces;

#[test]
fn one_request_survives_three_mishaps() {
    holds(one_request(3));
}

#[test]
fn two_requests_survive_a_mishap() {
    holds(two_requests(1));
}

#[test]
fn three_nodes_survive_two_mishaps() {
    holds(three_nodes(2));
}

#[test]
#[ignore = "takes a minute"]
fn one_request_survives_four_mishaps() {
    holds(one_request(4));
}

#[test]
#[ignore = "takes a minute"]
fn two_requests_survive_two_mishaps() {
    holds(two_requests(2));
}

#[test]
#[ignore = "takes a minute"]
fn three_nodes_survive_three_mishaps() {
    holds(three_nodes(3));
}

/// What makes "answered in the end" sound: see `model/properties.rs`.
#[test]
fn every_run_ends() {
    for setup in [one_request(3), two_requests(1), three_nodes(2)] {
        assert!(has_no_cycle(setup));
    }
}

fn one_request(disturbances: u8) -> Setup {
    Setup {
        disturbances,
        ..Setup::small("one request")
    }
}

fn two_requests(disturbances: u8) -> Setup {
    Setup {
        requests: 2,
        disturbances,
        ..Setup::small("two requests")
    }
}

fn three_nodes(disturbances: u8) -> Setup {
    Setup {
        nodes: 3,
        disturbances,
        ..Setup::small("three nodes")
    }
}

#[test]
fn sending_before_appending_shows() {
    let setup = Setup::broken("send before append", Fault::SendBeforeAppend);
    breaks(setup, PREFIX);
}

#[test]
fn a_missing_epoch_check_shows() {
    let setup = Setup::broken("no epoch check", Fault::NoEpochCheck);
    breaks(setup.clone(), EPOCHS);
    breaks(setup, PREFIX);
}

#[test]
fn a_blind_retry_shows() {
    breaks(
        Setup::broken("blind retry", Fault::BlindRetry),
        AT_MOST_ONCE,
    );
}

#[test]
fn a_missing_horizon_shows() {
    breaks(Setup::broken("no horizon", Fault::NoHorizon), AT_MOST_ONCE);
}

#[test]
fn a_missing_position_check_shows() {
    let setup = Setup::broken("no position check", Fault::NoPositionCheck);
    breaks(setup, WORKER_EVENTS);
}

#[test]
fn a_missing_delivery_check_shows() {
    let setup = Setup::broken("no delivery check", Fault::NoDeliveryCheck);
    breaks(setup.clone(), ONE_CALL);
    breaks(setup, ONE_ANSWER);
}

#[test]
fn a_delivery_check_apart_from_begin_shows() {
    let setup = Setup::broken(
        "delivery check apart from begin",
        Fault::CheckApartFromBegin,
    );
    let trace = traces::two_deliveries_at_one_owner();
    assert!(ends_in(setup.clone(), &trace, ONE_CALL));
    let trace = traces::first_delivery_after_the_repeated_one();
    assert!(ends_in(setup.clone(), &trace, ONE_CALL));
    breaks(setup, ONE_CALL);
}

#[test]
fn an_append_in_place_of_another_shows() {
    let setup = Setup::broken("abandoned append", Fault::AbandonedAppend);
    let trace = traces::another_append_at_the_same_position();
    assert!(ends_in(setup.clone(), &trace, PREFIX));
    breaks(setup, PREFIX);
}

#[test]
fn keeping_sessions_after_a_lapse_shows() {
    let setup = Setup::broken("sessions kept after a lapse", Fault::KeepAfterLapse);
    breaks(setup, ANSWERED);
}

#[test]
fn asking_once_after_a_lapse_shows() {
    let setup = Setup::broken("one question after a lapse", Fault::AskAfterLapse);
    let trace = traces::believer_without_a_call();
    assert!(ends_in(setup.clone(), &trace, ANSWERED));
    breaks(setup, ANSWERED);
}

#[test]
fn a_found_call_that_nobody_drives_shows() {
    breaks(
        Setup::broken("found call not taken up", Fault::FindOnly),
        ANSWERED,
    );
}

#[test]
fn a_resumption_that_claims_nothing_shows() {
    let setup = Setup::broken("claim for deliveries only", Fault::ClaimForDeliveriesOnly);
    breaks(setup, ANSWERED);
}

#[test]
fn saying_not_executed_before_withdrawing_shows() {
    let setup = Setup::broken("reject before withdrawal", Fault::RejectBeforeWithdrawal);
    let trace = traces::rejected_and_then_resumed();
    assert!(ends_in(setup.clone(), &trace, NOT_EXECUTED));
    breaks(setup, NOT_EXECUTED);
}

#[test]
fn a_journal_without_a_fence_shows() {
    let setup = Setup {
        disturbances: 4,
        ..Setup::broken("unfenced journal", Fault::UnfencedJournal)
    };
    let trace = traces::journal_read_by_a_former_owner();
    assert!(ends_in(setup, &trace, NOT_EXECUTED));
}

#[test]
fn a_blind_claim_shows() {
    breaks(Setup::broken("blind claim", Fault::BlindClaim), ONE_OWNER);
}
