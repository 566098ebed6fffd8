use std::time::Duration;

use shoal_ports::{FailureKey, Principal, SessionId};
use shoal_protocol::Method;
use tokio::time::advance;

use super::{Plan, ProcessPlacement, SlotId, TooManyAsk, WaiterId};
use crate::stdio::demand::Want;
use crate::upstream::Quarantine;
use crate::upstream::harness::Client;

const A: SlotId = SlotId(1);
const B: SlotId = SlotId(2);
const C: SlotId = SlotId(3);

fn shared() -> Want {
    Want {
        alone: false,
        apart: None,
        may_share: false,
        principal: Principal::anonymous(),
        session: None,
        owner: None,
    }
}

fn alone(session: &str) -> Want {
    Want {
        alone: true,
        apart: None,
        may_share: false,
        principal: Principal::new(session),
        session: Some(SessionId::new(session)),
        owner: None,
    }
}

fn plan(placement: &mut ProcessPlacement) -> Plan {
    placement.plan(|_| Quarantine::None)
}

fn granted(placement: &mut ProcessPlacement) -> Vec<(u64, SlotId)> {
    let plan = plan(placement);
    plan.granted.iter().map(|(w, s, _)| (w.0, *s)).collect()
}

fn with_lead(limit: usize) -> ProcessPlacement {
    let mut placement = ProcessPlacement::new(limit);
    placement.join(A, true, false);
    placement
}

#[test]
fn those_who_share_never_make_processes_start() {
    let mut placement = with_lead(4);
    for waiter in 0..10 {
        placement.wait(WaiterId(waiter), shared());
    }
    let plan = plan(&mut placement);
    assert_eq!(plan.granted.len(), 10);
    assert!(plan.granted.iter().all(|grant| grant.1 == A && !grant.2));
    assert_eq!(plan.start, 0);
}

#[test]
fn one_who_must_be_alone_gets_another_process_if_there_may_be_one() {
    let mut placement = with_lead(2);
    placement.wait(WaiterId(1), shared());
    placement.wait(WaiterId(2), alone("x"));
    placement.wait(WaiterId(3), alone("y"));
    let first = plan(&mut placement);
    assert_eq!((first.granted.len(), first.start), (1, 1));
    assert_eq!(plan(&mut placement).start, 0, "it is starting already");
    placement.started();
    placement.join(B, false, false);
    assert_eq!(granted(&mut placement), [(2, B)]);
    placement.release(B, true);
    assert_eq!(granted(&mut placement), [(3, B)]);
}

#[test]
fn a_retired_lead_counts_until_its_last_call_ends() {
    let mut placement = with_lead(2);
    placement.wait(WaiterId(1), shared());
    assert_eq!(granted(&mut placement), [(1, A)]);
    placement.retire(A);
    placement.join(B, true, false);
    placement.wait(WaiterId(2), alone("x"));
    placement.wait(WaiterId(3), alone("y"));
    let beside = plan(&mut placement);
    assert_eq!((beside.granted.len(), beside.start), (1, 0));
    placement.release(A, false);
    assert_eq!(plan(&mut placement).retired, [A]);
    placement.leave(A);
    assert_eq!(plan(&mut placement).start, 1);
}

#[test]
fn one_who_must_be_alone_is_not_starved_by_those_who_share() {
    let mut placement = with_lead(1);
    placement.wait(WaiterId(1), shared());
    placement.wait(WaiterId(2), alone("x"));
    placement.wait(WaiterId(3), shared());
    assert_eq!(granted(&mut placement), [(1, A)]);
    placement.release(A, false);
    assert_eq!(granted(&mut placement), [(2, A)]);
    placement.release(A, true);
    assert_eq!(granted(&mut placement), [(3, A)]);
}

#[test]
fn those_who_share_go_on_beside_a_process_that_empties_itself() {
    let mut placement = with_lead(2);
    placement.join(B, false, false);
    for waiter in [1, 2] {
        placement.wait(WaiterId(waiter), shared());
    }
    placement.wait(WaiterId(3), alone("x"));
    assert_eq!(granted(&mut placement), [(1, A), (2, A), (3, B)]);
    placement.wait(WaiterId(4), alone("y"));
    placement.wait(WaiterId(5), shared());
    assert_eq!(
        granted(&mut placement),
        [],
        "the only shared process is to be emptied"
    );
    placement.release(B, true);
    assert_eq!(granted(&mut placement), [(4, B), (5, A)]);
}

#[test]
fn a_process_that_owes_the_end_of_a_call_is_kept_for_its_session_and_replaced_for_others() {
    let owing = |_| Quarantine::AllBut(SessionId::new("x"));
    let mut placement = with_lead(1);
    placement.wait(WaiterId(1), alone("x"));
    assert_eq!(placement.plan(owing).granted.len(), 1);
    placement.release(A, true);
    placement.wait(WaiterId(2), shared());
    placement.wait(WaiterId(3), alone("y"));
    let busy = placement.plan(owing);
    assert_eq!((busy.granted.len(), busy.retired), (1, vec![]));
    placement.release(A, false);
    assert_eq!(placement.plan(owing).retired, [A]);
    placement.leave(A);
    assert_eq!(
        plan(&mut placement).start,
        0,
        "the lead comes back by itself"
    );
    placement.join(B, true, false);
    assert_eq!(granted(&mut placement), [(3, B)]);
}

#[test]
fn everybody_shares_a_modern_process() {
    let mut placement = ProcessPlacement::new(4);
    placement.join(A, true, true);
    placement.wait(WaiterId(1), alone("x"));
    placement.wait(WaiterId(2), alone("y"));
    let plan = plan(&mut placement);
    assert_eq!(
        plan.granted,
        [(WaiterId(1), A, false), (WaiterId(2), A, false)]
    );
    assert_eq!(plan.start, 0);
}

#[test]
fn a_call_that_asks_makes_room_for_another_process_and_one_that_goes_on_takes_it_away() {
    let mut placement = with_lead(1);
    placement.wait(WaiterId(1), alone("x"));
    placement.wait(WaiterId(2), alone("y"));
    assert_eq!(granted(&mut placement), [(1, A)]);
    assert_eq!(plan(&mut placement).start, 0);
    placement.ask(A).unwrap();
    placement.ask(A).unwrap();
    assert_eq!(plan(&mut placement).start, 1);
    placement.started();
    placement.join(B, false, false);
    assert_eq!(granted(&mut placement), [(2, B)]);
    placement.answered(A);
    assert_eq!(plan(&mut placement).start, 0, "another question is open");
    placement.answered(A);
    assert_eq!(plan(&mut placement), Plan::default(), "both are in use");
    placement.release(B, true);
    assert_eq!(plan(&mut placement).retired, [B]);
}

#[test]
fn questions_are_bounded_for_each_principal_and_for_all() {
    let mut placement = with_lead(1);
    let mut ask = |at: u64, principal: &str| {
        if at > 1 {
            placement.join(SlotId(at), false, false);
        }
        placement.wait(WaiterId(at), alone(principal));
        assert_eq!(granted(&mut placement), [(at, SlotId(at))]);
        let asked = placement.ask(SlotId(at));
        if asked.is_err() {
            placement.release(SlotId(at), true);
            placement.leave(SlotId(at));
        }
        asked
    };
    ask(1, "x").unwrap();
    assert_eq!(ask(2, "x"), Err(TooManyAsk::OfPrincipal(1)));
    ask(3, "y").unwrap();
    assert_eq!(ask(4, "z"), Err(TooManyAsk::Of(2)));
}

#[test]
fn principals_that_must_be_alone_have_their_turns() {
    let mut placement = with_lead(1);
    for waiter in 1..=3 {
        placement.wait(WaiterId(waiter), alone("x"));
    }
    assert_eq!(granted(&mut placement), [(1, A)]);
    placement.wait(WaiterId(4), alone("y"));
    placement.wait(WaiterId(5), alone("y"));
    assert_eq!(granted(&mut placement), []);
    for next in [4, 2, 5, 3] {
        placement.release(A, true);
        assert_eq!(granted(&mut placement), [(next, A)]);
    }
}

fn apart(principal: &str) -> Want {
    let client = Client::modern(principal, "{}");
    let caller = client.call(serde_json::json!({})).caller;
    Want {
        apart: Some(FailureKey::of(&caller, &Method::ToolsCall, Some("t"))),
        principal: Principal::new(principal),
        ..shared()
    }
}

#[test]
fn who_runs_apart_shares_with_its_own_calls_in_a_process_that_others_do_not_wait_for() {
    for modern in [false, true] {
        let mut placement = ProcessPlacement::new(1);
        placement.join(A, true, modern);
        placement.wait(WaiterId(1), shared());
        placement.wait(WaiterId(2), apart("mallory"));
        placement.wait(WaiterId(3), apart("mallory"));
        placement.wait(WaiterId(4), shared());
        let first = plan(&mut placement);
        let shared_ones = [(WaiterId(1), A, false), (WaiterId(4), A, false)];
        assert_eq!((first.granted, first.start), (shared_ones.to_vec(), 1));
        placement.started();
        placement.join(B, false, modern);
        assert_eq!(granted(&mut placement), [(2, B), (3, B)]);
        placement.wait(WaiterId(5), shared());
        placement.wait(WaiterId(6), apart("alice"));
        assert_eq!(granted(&mut placement), [(5, A)], "one is left to others");
        placement.leave(B);
        let next = plan(&mut placement);
        assert_eq!((next.granted.len(), next.start), (0, 1));
        placement.started();
        placement.join(C, false, modern);
        assert_eq!(granted(&mut placement), [(6, C)]);
        placement.release(C, false);
        assert_eq!(plan(&mut placement).retired, [C]);
    }
}

#[test]
fn a_suspect_without_a_process_apart_shares() {
    let mut placement = ProcessPlacement::new(1);
    placement.join(A, true, true);
    placement.join(B, false, true);
    placement.wait(WaiterId(1), apart("mallory"));
    assert_eq!(granted(&mut placement), [(1, B)]);
    for (waiter, may_share) in [(2, false), (3, true)] {
        let want = Want {
            may_share,
            ..apart("alice")
        };
        placement.wait(WaiterId(waiter), want);
    }
    assert_eq!(granted(&mut placement), [(3, A)]);
}

fn owned(name: &str, alone: bool) -> Want {
    let mut want = self::alone(name);
    want.alone = alone;
    let client = Client::named(name);
    want.owner = Some(FailureKey::of(
        &client.caller,
        &Method::ToolsCall,
        Some("t"),
    ));
    want
}

#[test]
fn an_owner_keeps_its_process_and_takes_no_others() {
    let mut placement = ProcessPlacement::owned(3, 2);
    placement.join(A, true, false);
    placement.wait(WaiterId(1), owned("x", false));
    placement.wait(WaiterId(2), owned("x", false));
    placement.wait(WaiterId(3), owned("y", false));
    // Each owner gets its own process, although the lead is free.
    assert_eq!(plan(&mut placement).start, 2);
    for slot in [B, C] {
        placement.started();
        placement.join(slot, false, false);
    }
    assert_eq!(granted(&mut placement), [(1, B), (2, B), (3, C)]);
    for slot in [B, B, C] {
        placement.release(slot, false);
    }
    placement.wait(WaiterId(4), owned("y", false));
    assert_eq!(granted(&mut placement), [(4, C)]);
}

#[test]
fn an_owner_has_few_processes_and_others_get_theirs() {
    let mut placement = ProcessPlacement::owned(4, 2);
    placement.join(A, true, false);
    for waiter in 1..=5 {
        placement.wait(WaiterId(waiter), owned("x", true));
    }
    assert_eq!(plan(&mut placement).start, 2);
    for slot in [B, C] {
        placement.started();
        placement.join(slot, false, false);
    }
    assert_eq!(granted(&mut placement), [(1, B), (2, C)]);
    placement.wait(WaiterId(6), owned("y", false));
    assert_eq!(plan(&mut placement).start, 1);
    placement.started();
    placement.join(SlotId(4), false, false);
    assert_eq!(granted(&mut placement), [(6, SlotId(4))]);
}

#[test]
fn an_idle_process_is_given_up_for_an_owner_that_has_none() {
    let mut placement = ProcessPlacement::owned(3, 2);
    placement.join(A, true, false);
    placement.wait(WaiterId(1), owned("x", true));
    placement.wait(WaiterId(2), owned("x", true));
    assert_eq!(plan(&mut placement).start, 2);
    for slot in [B, C] {
        placement.started();
        placement.join(slot, false, false);
    }
    assert_eq!(granted(&mut placement), [(1, B), (2, C)]);
    placement.wait(WaiterId(3), owned("y", false));
    let full = plan(&mut placement);
    assert_eq!((full.start, full.retired), (0, vec![]), "none is idle");
    placement.release(C, true);
    assert_eq!(plan(&mut placement).retired, [C]);
    placement.leave(C);
    assert_eq!(plan(&mut placement).start, 1);
}

#[tokio::test(start_paused = true)]
async fn an_owners_process_is_given_up_when_it_is_idle() {
    let idle = Duration::from_secs(10);
    let mut placement = ProcessPlacement::owned(3, 2);
    placement.join(A, true, false);
    placement.join(B, false, false);
    placement.wait(WaiterId(1), owned("x", false));
    assert_eq!(granted(&mut placement), [(1, B)]);
    advance(idle).await;
    assert_eq!(placement.give_up_idle(B, idle), Some(idle), "it is used");
    placement.release(B, false);
    advance(idle / 2).await;
    assert_eq!(placement.give_up_idle(B, idle), Some(idle / 2));
    assert_eq!(plan(&mut placement).retired, []);
    advance(idle).await;
    placement.give_up_idle(B, idle);
    assert_eq!(placement.give_up_idle(A, idle), None, "nobody has the lead");
    assert_eq!(plan(&mut placement).retired, [B]);
}
