use std::time::Duration;

use shoal_ports::{CallFailure, CallId, LedgerNumber, Period};
use tokio::time::Instant;

use super::Tombstones;
use crate::PoolConfig;

fn tombstones(most: usize) -> Tombstones {
    Tombstones::new(&PoolConfig {
        remembered_calls: most,
        ..PoolConfig::new("p")
    })
}

fn full() -> CallFailure {
    CallFailure::Overloaded {
        reason: "full".into(),
        retry_after: Duration::from_secs(1),
    }
}

fn is_unknown(checked: Result<(), CallFailure>) -> bool {
    matches!(checked, Err(CallFailure::OutcomeUnknown { .. }))
}

#[test]
fn a_refusal_holds_for_its_number_and_a_later_binding_is_asked_anew() {
    let (mut ledger, id, now) = (tombstones(100), CallId::generate(), Instant::now());
    let bound = Some(ledger.number());
    assert!(ledger.check(id, bound).is_ok());
    ledger.refused(id, full(), now);
    assert_eq!(ledger.check(id, bound), Err(full()));
    ledger.pass(now + Duration::from_secs(1));
    let anew = Some(ledger.number());
    assert_eq!(ledger.check(id, bound), Err(full()));
    assert!(ledger.check(id, anew).is_ok());
    ledger.refused(id, full(), now + Duration::from_secs(1));
    assert_eq!(ledger.check(id, anew), Err(full()));
}

/// With a plain refusal, the caller would bind the cancelled call to another worker and run it.
#[test]
fn a_call_that_was_to_be_cancelled_is_refused_so_under_any_number() {
    let (mut ledger, id, now) = (tombstones(100), CallId::generate(), Instant::now());
    let bound = Some(ledger.number());
    ledger.refused(id, CallFailure::Cancelled, now);
    ledger.pass(now + Duration::from_secs(1));
    for bound in [bound, Some(ledger.number()), None] {
        assert_eq!(ledger.check(id, bound), Err(CallFailure::Cancelled));
    }
}

#[test]
fn what_was_taken_is_not_run_again_under_any_number() {
    let (mut ledger, now) = (tombstones(2), Instant::now());
    let ids: [CallId; 4] = std::array::from_fn(|_| CallId::generate());
    let bound = Some(ledger.number());
    for id in [ids[2], ids[0], ids[1]] {
        ledger.taken(id, now);
        assert!(is_unknown(ledger.check(id, bound)));
    }
    // The oldest number is forgotten with its id, so calls bound under it are unknown.
    assert!(is_unknown(ledger.check(ids[2], bound)));
    assert!(is_unknown(ledger.check(ids[3], bound)));
    assert!(ledger.check(ids[3], Some(ledger.number())).is_ok());
    assert!(ledger.entries <= 2 && ledger.tombstones.len() <= 2);
}

#[test]
fn another_incarnation_and_numbers_to_come_are_not_known() {
    let ledger = tombstones(10);
    let LedgerNumber {
        incarnation,
        number,
    } = ledger.number();
    let check = |incarnation, number| {
        let bound = LedgerNumber {
            incarnation,
            number,
        };
        ledger.check(CallId::generate(), Some(bound))
    };
    assert!(check(incarnation, number).is_ok());
    assert!(is_unknown(check(incarnation, number + 1)));
    assert!(is_unknown(check(incarnation ^ 1, number)));
}

#[test]
fn a_number_in_which_nothing_happens_does_not_pass() {
    let (mut ledger, now) = (tombstones(10), Instant::now());
    let bound = ledger.number();
    ledger.pass(now + Duration::from_secs(24 * 3600));
    assert_eq!(ledger.number(), bound);
    assert!(ledger.check(CallId::generate(), Some(bound)).is_ok());
}

#[test]
fn time_is_at_least_ten_times_that_of_results() {
    let config = PoolConfig {
        call_memory: Period::ZERO,
        ..PoolConfig::new("p")
    };
    let mut ledger = Tombstones::new(&config);
    let (id, now, bound) = (CallId::generate(), Instant::now(), ledger.number());
    ledger.taken(id, now);
    ledger.pass(now + config.result_retention.get() * 9);
    assert_eq!(ledger.tombstones.len(), 1);
    ledger.pass(now + config.result_retention.get() * 10);
    assert!(ledger.tombstones.is_empty() && is_unknown(ledger.check(id, Some(bound))));
}

#[test]
fn calls_without_a_number_never_run_twice_either() {
    let (mut ledger, now) = (tombstones(1), Instant::now());
    let ids: [CallId; 3] = std::array::from_fn(|_| CallId::generate());
    ledger.taken(ids[1], now);
    ledger.taken(ids[0], now);
    let run = ids.map(|id| ledger.check(id, None).is_ok());
    assert_eq!(run, [false, false, true]);
    ledger.refused(ids[2], full(), now);
    assert!(ledger.check(ids[2], None).is_ok());
}
