//! Where a new session goes: to the less loaded of two session nodes drawn at random.
//!
//! Two random choices spread sessions nearly as well as always taking the least loaded, and do not send
//! everybody to the same node when the numbers are a little old.

use std::cmp::Ordering;

use rand::Rng;
use rand::seq::IteratorRandom as _;
use shoal_ports::NodeId;

use crate::view::{Node, View};

/// The node for a new session, of those that `may` take it. This node wins only against a node that is
/// just as loaded.
pub(crate) fn choose<'a>(
    view: &'a View,
    may: impl Fn(&Node) -> bool,
    rng: &mut impl Rng,
) -> Option<&'a Node> {
    let takers = view
        .nodes()
        .filter(|node| node.takes_sessions() && may(node));
    let drawn = takers.choose_multiple(rng, 2);
    match drawn[..] {
        [one, other] => Some(lighter(view.me(), one, other, rng)),
        [only] => Some(only),
        _ => None,
    }
}

fn lighter<'a>(me: &NodeId, one: &'a Node, other: &'a Node, rng: &mut impl Rng) -> &'a Node {
    let rank = |node: &Node| (node.load(), node.info().id != *me);
    match rank(other).cmp(&rank(one)) {
        Ordering::Less => other,
        Ordering::Greater => one,
        // Two are drawn in the order in which they stand, which is the same at every edge.
        Ordering::Equal => [one, other][rng.random_range(0..2)],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::atomic::Ordering;

    use shoal_ports::NodeId;

    use super::choose;
    use crate::view::View;
    use crate::view::tests::{info, loaded, view};

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
    fn a_node_prefers_itself_only_when_equal() {
        let equal = view("a", [info("a"), info("b")]);
        assert_eq!(counts(&equal).keys().collect::<Vec<_>>(), ["a"]);
        let busier = view("a", [loaded("a", 1), info("b")]);
        assert_eq!(counts(&busier).keys().collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn equals_get_the_same() {
        let equal = view("e", [info("a"), info("b")]);
        let counts = counts(&equal);
        assert!(counts["a"] > 1300 && counts["b"] > 1300, "{counts:?}");
    }

    #[test]
    fn what_was_just_placed_counts() {
        let view = view("e", [loaded("a", 1), loaded("b", 2)]);
        let placed = &view.node(&NodeId::new("a")).unwrap().peer.placed;
        placed.store(2, Ordering::Relaxed);
        assert_eq!(counts(&view).keys().collect::<Vec<_>>(), ["b"]);
    }
}
