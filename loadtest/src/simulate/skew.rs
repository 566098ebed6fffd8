//! A new session goes to one of two random nodes, chosen by their announced loads. A session
//! without an owner goes by rendezvous hashing.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use rand::Rng;
use shoal_cluster::rehearsal::{Placer, look_every, node, taker};
use shoal_ports::{NodeId, SessionId};

use super::skew_of;

/// How often nodes announce their loads: `node.lease` / 3.
const ANNOUNCE: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(20);

#[derive(Debug, Clone, Copy)]
pub(super) struct Arrivals {
    pub(super) edges: usize,
    pub(super) nodes: usize,
    /// Nodes that start empty, while all others hold `held` sessions.
    pub(super) fresh: usize,
    pub(super) held: u64,
    pub(super) sessions: u64,
    pub(super) per_second: u64,
}

pub(super) fn place(arrivals: Arrivals, rng: &mut impl Rng) -> Vec<u64> {
    let Arrivals { edges, nodes, .. } = arrivals;
    let names: Vec<String> = (0..nodes).map(|n| format!("session-{n}")).collect();
    let at: HashMap<NodeId, usize> = (names.iter().enumerate())
        .map(|(n, name)| (NodeId::new(name.as_str()), n))
        .collect();
    let refresh = look_every(edges + nodes);
    let held = |n: usize| if n < arrivals.fresh { 0 } else { arrivals.held };
    let mut got = vec![0; nodes];
    let mut said: Vec<u64> = (0..nodes).map(held).collect();
    let mut placers: Vec<Placer> = (0..edges)
        .map(|e| Placer::new(&format!("edge-{e}")))
        .collect();
    let mut speak: Vec<Duration> = (0..nodes).map(|_| ANNOUNCE.mul_f64(rng.random())).collect();
    let mut hear: Vec<Duration> = (0..edges).map(|_| refresh.mul_f64(rng.random())).collect();
    let list = |said: &[u64]| {
        let each = names.iter().zip(said);
        each.map(|(name, said)| node(name, true, *said)).collect()
    };
    for placer in &mut placers {
        placer.hear(list(&said), Duration::ZERO);
    }
    let (mut now, mut placed) = (Duration::ZERO, 0);
    while placed < arrivals.sessions {
        now += STEP;
        for n in (0..nodes).filter(|n| speak[*n] <= now).collect::<Vec<_>>() {
            said[n] = held(n) + got[n];
            speak[n] += ANNOUNCE;
        }
        for e in (0..edges).filter(|e| hear[*e] <= now).collect::<Vec<_>>() {
            placers[e].hear(list(&said), now);
            hear[e] += refresh;
        }
        let due = (arrivals.per_second as f64 * now.as_secs_f64()) as u64;
        while placed < due.min(arrivals.sessions) {
            let edge = rng.random_range(0..edges);
            if let Some(node) = placers[edge].place(rng) {
                got[at[&node]] += 1;
            }
            placed += 1;
        }
    }
    got
}

pub(super) fn orphans(nodes: usize, sessions: u64, rng: &mut impl Rng) -> Vec<u64> {
    let nodes: Vec<NodeId> = (0..nodes)
        .map(|n| NodeId::new(format!("session-{n}")))
        .collect();
    let mut got = vec![0; nodes.len()];
    for _ in 0..sessions {
        let session = SessionId::new(format!("{:032x}", rng.random::<u128>()));
        if let Some(at) = taker(&session, &nodes) {
            got[at] += 1;
        }
    }
    got
}

pub(super) fn table(rng: &mut impl Rng) -> String {
    let mut out = String::from(
        "New sessions: two choices on loads that are up to 3 s old, and what the edge has placed itself\n\
         edges  nodes  sessions  a second  most/mean\n",
    );
    for (edges, nodes, sessions, per_second) in [
        (2, 3, 100_000, 1_000),
        (10, 10, 500_000, 10_000),
        (20, 100, 1_000_000, 10_000),
        (100, 100, 1_000_000, 100_000),
    ] {
        let arrivals = Arrivals {
            edges,
            nodes,
            fresh: 0,
            held: 0,
            sessions,
            per_second,
        };
        let skew = skew_of(&place(arrivals, rng));
        let _ = writeln!(
            out,
            "{edges:5}  {nodes:5}  {sessions:8}  {per_second:8}  {skew:9.3}"
        );
    }
    out.push_str("\nA node that comes empty to others with 50 000 each: its share of the new sessions\n edges  nodes  a second  share  even share\n");
    for (edges, nodes, per_second) in [(10, 10, 1_000), (20, 100, 10_000)] {
        let arrivals = Arrivals {
            edges,
            nodes,
            fresh: 1,
            held: 50_000,
            sessions: 10 * per_second,
            per_second,
        };
        let got = place(arrivals, rng);
        let share = got[0] as f64 * 100.0 / arrivals.sessions as f64;
        let even = 100.0 / nodes as f64;
        let _ = writeln!(
            out,
            "{edges:6}  {nodes:5}  {per_second:8}  {share:4.1}%  {even:9.1}%"
        );
    }
    out.push_str(
        "\nSessions of a lost node, taken by rendezvous hashing\nothers  sessions  most/mean\n",
    );
    for (nodes, sessions) in [(2, 20_000), (9, 100_000), (99, 100_000), (99, 1_000_000)] {
        let skew = skew_of(&orphans(nodes, sessions, rng));
        let _ = writeln!(out, "{nodes:6}  {sessions:8}  {skew:9.3}");
    }
    out
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    use super::{Arrivals, orphans, place};
    use crate::simulate::skew_of;

    const ARRIVALS: Arrivals = Arrivals {
        edges: 8,
        nodes: 20,
        fresh: 0,
        held: 0,
        sessions: 100_000,
        per_second: 10_000,
    };

    #[test]
    fn new_sessions_spread_within_a_tenth_and_a_seed_decides() {
        let once = place(ARRIVALS, &mut StdRng::seed_from_u64(7));
        assert_eq!(once.iter().sum::<u64>(), ARRIVALS.sessions);
        assert!(skew_of(&once) < 1.1, "{once:?}");
        assert_eq!(once, place(ARRIVALS, &mut StdRng::seed_from_u64(7)));
        assert_ne!(once, place(ARRIVALS, &mut StdRng::seed_from_u64(8)));
    }

    #[test]
    fn a_node_that_comes_empty_gets_no_more_than_two_choices_give() {
        let fresh = Arrivals {
            fresh: 1,
            held: 50_000,
            sessions: 20_000,
            ..ARRIVALS
        };
        let got = place(fresh, &mut StdRng::seed_from_u64(7));
        let share = got[0] as f64 / fresh.sessions as f64;
        assert!((0.08..0.12).contains(&share), "2 of 20 draws: {share}");
    }

    #[test]
    fn orphans_spread_over_a_million_sessions() {
        let got = orphans(9, 1_000_000, &mut StdRng::seed_from_u64(7));
        assert!(skew_of(&got) < 1.01, "{got:?}");
    }
}
