//! Explores a model and reports on it.
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

/// Explores everything within the bounds: every property must hold, and all that must be possible is.
pub(crate) fn holds(setup: Setup) {
    let begun = Instant::now();
    let checker = Cluster(setup).checker().spawn_bfs().join();
    report(&checker, begun);
    checker.assert_properties();
}

/// Explores until the property is broken, and prints a shortest way there.
pub(crate) fn breaks(setup: Setup, property: &'static str) {
    let mut shortest = None;
    // The checker reports the last way of those that it finds in one go, so it is asked for shorter ones
    // until there is none. It counts states, of which there is one more than steps.
    let mut below = usize::MAX;
    loop {
        let begun = Instant::now();
        let checker = Cluster(setup.clone())
            .checker()
            .finish_when(HasDiscoveries::AnyOf([property].into()))
            .target_max_depth(below)
            .spawn_bfs()
            .join();
        let Some(path) = checker.discovery(property) else {
            break;
        };
        if shortest.is_none() {
            report(&checker, begun);
        }
        let actions = path.into_actions();
        below = actions.len() + 1;
        shortest = Some(actions);
    }
    let actions: Vec<Action> = shortest.expect("the planted fault shows");
    eprintln!("  \"{property}\" is broken after {} steps:", actions.len());
    for action in &actions {
        eprintln!("    {action:?}");
    }
}

fn report(checker: &impl Checker<Cluster>, begun: Instant) {
    let Cluster(setup) = checker.model();
    eprintln!(
        "{}, {} mishaps at most: {} states, {} unique, depth {}, {:.1} s",
        setup.name,
        setup.disturbances,
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

/// Follows a trace and returns whether it breaks the property at its end, and not before.
pub(crate) fn ends_in(setup: Setup, trace: &[Action], property: &'static str) -> bool {
    let cluster = Cluster(setup);
    let holds = cluster.property(property).condition;
    let mut state = cluster.init_states().remove(0);
    for action in trace {
        let mut possible = Vec::new();
        cluster.actions(&state, &mut possible);
        assert!(possible.contains(action), "{action:?} is not possible here");
        assert!(holds(&cluster, &state), "broken before {action:?}");
        state = cluster.next_state(&state, action.clone()).expect("a state");
    }
    !holds(&cluster, &state)
}

/// Whether no run comes back to a state that it has been in. States are told apart by 64 bits of hash, as
/// stateright does.
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
