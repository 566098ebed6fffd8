use std::time::Duration;

use shoal_ports::{NodeId, NodeInfo};
use tokio::time::Instant;

use super::{Joined, Roll};
use crate::view::tests::info;
use crate::workers::JoinConfig;
use crate::workers::tests::joining;

const SEED: &str = "seed:7000";

fn roll() -> Roll {
    let config = joining(&[SEED]);
    Roll::new(config, None)
}

fn linked(address: &str, node: &str, nodes: &[&str]) -> Joined {
    Joined {
        address: address.to_owned(),
        node: Some(NodeId::new(node)),
        connected: true,
        nodes: nodes.iter().map(|node| info(node)).collect(),
    }
}

fn broken(join: &Joined) -> Joined {
    Joined {
        connected: false,
        ..join.clone()
    }
}

#[test]
fn a_seed_tells_of_the_others_and_stays_the_link_to_its_node() {
    let (mut roll, now) = (roll(), Instant::now());
    assert_eq!(roll.revise(now, &[], None).start, [SEED]);
    let seed = linked(SEED, "a", &["a", "b"]);
    let plan = roll.revise(now, std::slice::from_ref(&seed), None);
    assert_eq!(
        (plan.keep, plan.start),
        (vec![true], vec!["b:7000".to_owned()])
    );
    let b = linked("b:7000", "b", &["a", "b"]);
    let plan = roll.revise(now, &[seed.clone(), b.clone()], None);
    assert_eq!((plan.keep, plan.start.len()), (vec![true, true], 0));
    let plan = roll.revise(now, &[broken(&seed), b.clone()], None);
    assert_eq!(plan.start, ["a:7000"]);
    let a = linked("a:7000", "a", &["a", "b"]);
    let plan = roll.revise(now, &[seed, b.clone(), a.clone()], None);
    assert_eq!(plan.keep, [false, true, true]);
    let elsewhere = linked(SEED, "b", &["a", "b"]);
    let plan = roll.revise(now, &[elsewhere, b, a], None);
    assert_eq!(plan.keep, [false, true, true]);
}

#[test]
fn a_node_that_nobody_tells_of_is_dropped_after_a_while() {
    let (mut roll, now) = (roll(), Instant::now());
    let a = linked("a:7000", "a", &["a", "b"]);
    let b = linked("b:7000", "b", &["a", "b"]);
    roll.revise(now, &[a, b.clone()], None);
    let alone = linked("a:7000", "a", &["a"]);
    let later = now + Duration::from_secs(60);
    let still_linked = [
        alone.clone(),
        Joined {
            nodes: vec![],
            ..b.clone()
        },
    ];
    assert_eq!(roll.revise(later, &still_linked, None).keep, [true, true]);
    let gone = [alone, broken(&b)];
    assert_eq!(roll.revise(later, &gone, None).keep, [true, true]);
    let later = later + JoinConfig::default().forget_after;
    assert_eq!(roll.revise(later, &gone, None).keep, [true, false]);
}

#[test]
fn while_nobody_tells_anything_nobody_is_dropped() {
    let (mut roll, now) = (roll(), Instant::now());
    let (a, b) = (
        linked("a:7000", "a", &["a", "b"]),
        linked("b:7000", "b", &["a", "b"]),
    );
    roll.revise(now, &[a.clone(), b.clone()], None);
    let cut = [broken(&a), broken(&b)];
    let plan = roll.revise(now, &cut, None);
    assert_eq!((plan.keep, plan.start.len()), (vec![true, true], 0));
    let plan = roll.revise(now + Duration::from_secs(60), &cut, None);
    assert_eq!(plan.keep, [true, true]);
    assert_eq!(plan.start, [SEED], "alone for long enough");
    let back = [linked("a:7000", "a", &["a"]), broken(&b)];
    let plan = roll.revise(now + Duration::from_secs(61), &back, None);
    assert_eq!(plan.keep, [true, true], "b has its time to be told of");
}

#[test]
fn a_node_does_not_join_itself_and_only_those_that_dispatch() {
    let config = joining(&[SEED]);
    let (mut roll, now) = (Roll::new(config, Some(NodeId::new("a"))), Instant::now());
    let neither = NodeInfo {
        session: false,
        ..info("w")
    };
    let told = vec![info("a"), info("b"), neither];
    let plan = roll.revise(now, &[], Some(told.clone()));
    assert_eq!(plan.start, ["b:7000", SEED]);
    let to_itself = linked(SEED, "a", &["a", "b"]);
    let plan = roll.revise(now, &[to_itself], Some(told));
    assert_eq!(plan.keep, [false]);
}

#[test]
fn a_node_that_is_reached_by_two_addresses_has_one_link() {
    let other = "alias:7000";
    let config = joining(&[SEED, other]);
    let (mut roll, now) = (Roll::new(config, None), Instant::now());
    assert_eq!(roll.revise(now, &[], None).start, [other, SEED]);
    let (first, second) = (linked(SEED, "a", &["a"]), linked(other, "a", &["a"]));
    let plan = roll.revise(now, &[broken(&first), second.clone()], None);
    assert_eq!((plan.keep, plan.start.len()), (vec![false, true], 0));
    let plan = roll.revise(now, &[second.clone(), broken(&first)], None);
    assert_eq!(plan.keep, [true, false]);
    let own = linked("a:7000", "a", &["a"]);
    let plan = roll.revise(now, &[broken(&own), second], None);
    assert_eq!((plan.keep, plan.start.len()), (vec![false, true], 0));
}
