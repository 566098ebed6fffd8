//! A node keeps the sessions that it opens, which saves a hop for each request. An overloaded node, a node that accepts
//! no sessions, and an edge choose the less loaded of two random session nodes. That is nearly as good as the least
//! loaded node, and outdated numbers do not send all new sessions to one node.

use rand::Rng;
use rand::seq::IteratorRandom as _;

use crate::view::{Node, View};

/// A node is overloaded if its load exceeds this multiple of the other nodes' average by more than [`AND_MORE`].
const TIMES_THE_OTHERS: u64 = 2;
/// About this many sessions may arrive between two announcements.
const AND_MORE: u64 = 1_000;

pub(crate) fn choose<'a>(
    view: &'a View,
    may: impl Fn(&Node) -> bool,
    rng: &mut impl Rng,
) -> Option<&'a Node> {
    let may = |node: &Node| node.takes_sessions() && may(node);
    let me = view.node(view.me()).filter(|me| may(me));
    if let Some(me) = me.filter(|me| !is_overloaded(view, me)) {
        return Some(me);
    }
    let takers = view.nodes().filter(|node| may(node));
    let mut drawn = takers.choose_multiple(rng, 2);
    // Of two nodes with equal load, the first is chosen. The draw keeps the view's order, so without the random
    // reversal, all edges would choose the same node.
    if rng.random() {
        drawn.reverse();
    }
    drawn.into_iter().min_by_key(|node| node.load())
}

/// If so, placing new sessions elsewhere is worth a hop for each request. Placed sessions stay, so placement cannot
/// oscillate.
fn is_overloaded(view: &View, node: &Node) -> bool {
    let others = view
        .nodes()
        .filter(|other| other.takes_sessions() && other.info().id != node.info().id);
    let (count, load) = others.fold((0, 0_u64), |(count, load), other| {
        (count + 1, load.saturating_add(other.load()))
    });
    let Some(average) = load.checked_div(count) else {
        return false;
    };
    node.load()
        > average
            .saturating_mul(TIMES_THE_OTHERS)
            .saturating_add(AND_MORE)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use rand::rngs::StdRng;
    use rand::{Rng as _, SeedableRng as _};
    use shoal_ports::{NodeId, NodeInfo};
    use tokio::time::Instant;

    use super::choose;
    use crate::view::View;
    use crate::view::tests::{info, loaded, rules, view};

    fn counts(view: &View) -> HashMap<String, u32> {
        let mut counts = HashMap::new();
        for _ in 0..3000 {
            let node = choose(view, |_| true, &mut rand::rng()).unwrap();
            *counts.entry(node.info().id.to_string()).or_default() += 1;
        }
        counts
    }

    #[test]
    fn the_less_loaded_of_two_wins() {
        let view = view("e", [loaded("a", 10), loaded("b", 20), loaded("c", 30)]);
        let counts = counts(&view);
        assert!(!counts.contains_key("c"), "it loses against either");
        assert!(counts["a"] > 1800 && counts["b"] > 800, "{counts:?}");
    }

    #[test]
    fn nodes_that_drain_or_are_no_session_nodes_get_nothing() {
        let mut draining = info("a");
        draining.draining = true;
        let mut edge = info("b");
        edge.session = false;
        let only = view("e", [draining.clone(), edge.clone(), info("c")]);
        assert_eq!(counts(&only).keys().collect::<Vec<_>>(), ["c"]);
        let none = view("e", [draining, edge]);
        assert!(choose(&none, |_| true, &mut rand::rng()).is_none());
    }

    #[test]
    fn a_node_keeps_what_it_opens() {
        for me in [0, 1, 1_000, 10_000] {
            let view = view("a", [loaded("a", me), loaded("b", me / 2), info("c")]);
            let average = me / 4;
            let kept = counts(&view).get("a") == Some(&3000);
            assert_eq!(kept, me <= 2 * average + 1_000, "{me}");
        }
        let alone = view("a", [loaded("a", 10_000)]);
        assert_eq!(counts(&alone)["a"], 3000, "there is nobody else");
    }

    #[test]
    fn an_overloaded_node_sends_away_until_it_is_none_any_more() {
        let mut loads = [10_000_u64, 0, 4_000];
        let mut kept = Vec::new();
        for _ in 0..20_000 {
            let nodes = [("a", loads[0]), ("b", loads[1]), ("c", loads[2])];
            let view = view("a", nodes.map(|(id, load)| loaded(id, load)));
            let node = choose(&view, |_| true, &mut rand::rng()).unwrap();
            let is_it = |(id, _): &(&str, u64)| node.info().id.as_str() == *id;
            let at = nodes.iter().position(is_it).unwrap();
            loads[at] += 1;
            kept.push(at == 0);
        }
        let first = kept.iter().position(|kept| *kept).unwrap();
        assert!(
            first > 4_000,
            "it keeps nothing while it is far above: {first}"
        );
        let (some, rest) = (
            kept[first..].iter().filter(|kept| **kept).count(),
            20_000 - first,
        );
        assert!(
            (rest * 4 / 10..=rest * 6 / 10).contains(&some),
            "{some} of {rest}"
        );
        assert!(loads[1] > 3_000, "it was far from even: {loads:?}");
        assert!(loads[0] <= loads[1] + loads[2] + 1_001, "{loads:?}");
    }

    #[test]
    fn of_several_nodes_not_all_are_overloaded() {
        for loads in [
            [0, 0, 0],
            [1_000, 1_000, 1_000],
            [50_000, 100, 0],
            [0, 9_000, 9_000],
        ] {
            let of = |at: usize| loaded(["a", "b", "c"][at], loads[at]);
            let overloaded = ["a", "b", "c"].iter().filter(|me| {
                let view = view(me, [of(0), of(1), of(2)]);
                super::is_overloaded(&view, view.node(view.me()).unwrap())
            });
            assert!(overloaded.count() < 3, "{loads:?}");
        }
    }

    #[test]
    fn a_node_that_drains_or_has_failed_keeps_nothing() {
        let mut me = info("a");
        me.draining = true;
        let view_of = view("a", [me, info("b")]);
        assert_eq!(counts(&view_of).keys().collect::<Vec<_>>(), ["b"]);
        let equal = view("a", [info("a"), info("b")]);
        let tried = |node: &crate::view::Node| node.info().id.as_str() != "a";
        let node = choose(&equal, tried, &mut rand::rng()).unwrap();
        assert_eq!(node.info().id.as_str(), "b");
    }

    #[test]
    fn equals_get_the_same() {
        let equal = view("e", [info("a"), info("b")]);
        let counts = counts(&equal);
        assert!(counts["a"] > 1300 && counts["b"] > 1300, "{counts:?}");
    }

    #[test]
    fn edges_with_outdated_loads_spread_sessions_within_a_tenth() {
        let mut rng = StdRng::seed_from_u64(7);
        let edge = NodeInfo {
            session: false,
            ..info("edge")
        };
        let begun = Instant::now();
        let (mut held, mut announced) = ([0; 20], [0; 20]);
        let mut edges: Vec<_> = (0..10).map(|_| View::alone(edge.clone())).collect();
        // Each tenth of a second, one node announces its load, one edge reads the loads, and 1,000 sessions come.
        for tenth in 0..100_usize {
            announced[tenth % 20] = held[tenth % 20];
            let listed = |(n, load): (usize, &u64)| loaded(&n.to_string(), *load);
            let listed: Vec<_> = announced.iter().enumerate().map(listed).collect();
            let now = begun + Duration::from_millis(100) * tenth as u32;
            for (at, view) in edges.iter_mut().enumerate() {
                if tenth == 0 || tenth % 10 == at {
                    *view = view.refreshed(listed.clone(), edge.clone(), &rules(now));
                }
            }
            for _ in 0..1_000 {
                let view = &edges[rng.random_range(0..10)];
                let node = choose(view, |_| true, &mut rng).unwrap();
                node.peer.placed.fetch_add(1, Ordering::Relaxed);
                held[node.info().id.as_str().parse::<usize>().unwrap()] += 1;
            }
        }
        assert!(held.iter().all(|held| *held < 5_500), "{held:?}");
    }

    #[test]
    fn what_was_just_placed_counts() {
        let view = view("e", [loaded("a", 1), loaded("b", 2)]);
        let placed = &view.node(&NodeId::new("a")).unwrap().peer.placed;
        placed.store(2, Ordering::Relaxed);
        assert_eq!(counts(&view).keys().collect::<Vec<_>>(), ["b"]);
    }
}
