//! Chooses the node that takes a session without an owner, by rendezvous hashing: the node with the greatest weight
//! wins. Equal views give the same node. If a node comes or goes, only the sessions that it wins change their node.

use shoal_ports::{NodeId, SessionId, stable_hash};

/// This function must stay the same, because nodes of different releases must agree.
pub(crate) fn weight(session: &SessionId, node: &NodeId) -> u64 {
    let node = node.as_str().bytes();
    let session = session.as_str().bytes();
    // The byte separates the two IDs: UTF-8 text does not contain 0xff.
    stable_hash(node.chain([0xff]).chain(session))
}

#[cfg(test)]
mod tests {
    use shoal_ports::{NodeId, SessionId};

    use super::weight;

    fn heaviest<'a>(session: &SessionId, nodes: &'a [NodeId]) -> &'a NodeId {
        nodes
            .iter()
            .max_by_key(|node| weight(session, node))
            .unwrap()
    }

    fn nodes(count: usize) -> Vec<NodeId> {
        (0..count)
            .map(|n| NodeId::new(format!("node-{n}-x")))
            .collect()
    }

    #[test]
    fn the_weight_is_fixed_for_all_releases() {
        let weight = weight(&SessionId::new("s"), &NodeId::new("n"));
        assert_eq!(weight, 3_546_933_088_936_792_460);
    }

    #[test]
    fn sessions_spread_evenly() {
        let nodes = nodes(5);
        let mut counts = [0_u32; 5];
        for _ in 0..5000 {
            let node = heaviest(&SessionId::random(), &nodes);
            counts[nodes.iter().position(|other| other == node).unwrap()] += 1;
        }
        assert!(
            counts.iter().all(|count| (800..=1200).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn a_node_that_leaves_moves_only_its_own() {
        let before = nodes(5);
        for _ in 0..500 {
            let session = SessionId::random();
            let taken = heaviest(&session, &before);
            let after = heaviest(&session, &before[1..]);
            assert!(taken == after || *taken == before[0]);
        }
    }
}
