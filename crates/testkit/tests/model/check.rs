#![expect(
    clippy::print_stderr,
    reason = "the counts are what a reader wants to know"
)]

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};
use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model};

use super::action::Action;
use super::cluster::Cluster;
use super::setup::Setup;
use super::state::State;

pub(crate) fn holds(setup: Setup) {
    let begun = Instant::now();
    let checker = Cluster(setup).checker().spawn_bfs().join();
    report(&checker, begun);
    checker.assert_properties();
}

pub(crate) fn breaks(setup: Setup, property: &'static str) {
    let begun = Instant::now();
    let fault = setup.fault.expect("a fault is planted");
    let checker = Cluster(setup)
        .checker()
        .finish_when(HasDiscoveries::AnyOf([property].into()))
        .spawn_bfs()
        .join();
    let path = checker.discovery(property);
    let actions: Vec<Action> = path.expect("the planted fault shows").into_actions();
    eprintln!(
        "{fault:?} against \"{}\": \"{property}\" is broken after {} steps ({} states, {:.1} s):",
        fault.rule(),
        actions.len(),
        checker.state_count(),
        begun.elapsed().as_secs_f32(),
    );
    for action in &actions {
        eprintln!("    {action:?}");
    }
}

fn report(checker: &impl Checker<Cluster>, begun: Instant) {
    let Cluster(setup) = checker.model();
    eprintln!(
        "{}, {} mishaps at most: {} states, {} unique, depth {}, {:.1} s",
        setup.name,
        setup.mishaps,
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth(),
        begun.elapsed().as_secs_f32(),
    );
    eprintln!("  {setup:?}");
    let discoveries = checker.discoveries();
    for property in checker.model().properties() {
        let found = discoveries
            .get(property.name)
            .map(|path| path.clone().into_actions().len());
        let found = found.map_or("none".to_owned(), |steps| format!("after {steps} steps"));
        let what = match property.expectation.discovery_is_failure() {
            true => "counterexample",
            false => "example",
        };
        eprintln!(
            "  {:?} \"{}\": {what}: {found}",
            property.expectation, property.name
        );
    }
}

/// Compares states by a 64-bit hash, as stateright does.
pub(crate) fn has_no_cycle(setup: Setup) -> bool {
    let cluster = Cluster(setup);
    let hasher = RandomState::new();
    let mut is_open: HashMap<u64, bool> = HashMap::new();
    let mut path: Vec<(u64, Vec<State>)> = Vec::new();
    let mut next = cluster.init_states().pop();
    loop {
        if let Some(state) = next.take() {
            let id = hasher.hash_one(&state);
            match is_open.entry(id) {
                Entry::Occupied(entry) if *entry.get() => return false,
                Entry::Occupied(_) => {}
                Entry::Vacant(entry) => {
                    entry.insert(true);
                    path.push((id, cluster.next_states(&state)));
                }
            }
        }
        let Some((id, successors)) = path.last_mut() else {
            eprintln!("{}: {} states, no cycle", cluster.0.name, is_open.len());
            return true;
        };
        next = successors.pop();
        if next.is_none() {
            is_open.insert(*id, false);
            path.pop();
        }
    }
}
