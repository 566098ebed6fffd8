use std::fmt::Write as _;
use std::time::Duration;

use rand::Rng;

use super::seconds;

#[derive(Debug, Clone, Copy)]
pub(super) struct Storm {
    pub(super) streams: usize,
    /// The balancer draws one remaining edge for each connection.
    pub(super) edges: usize,
    /// When the first clients return, and the time over which the others follow.
    pub(super) retry: Duration,
    pub(super) spread: Duration,
    pub(super) cost: Duration,
    pub(super) cores: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Survived {
    pub(super) peak: usize,
    /// The longest wait at an edge, which delays other clients' calls too.
    pub(super) longest_wait: Duration,
    pub(super) all_back: Duration,
}

pub(super) fn weather(storm: Storm, rng: &mut impl Rng) -> Survived {
    let mut arrivals: Vec<Duration> = (0..storm.streams)
        .map(|_| storm.retry + storm.spread.mul_f64(rng.random()))
        .collect();
    arrivals.sort_unstable();
    let mut tenths = vec![0; 1];
    let mut free = vec![Duration::ZERO; storm.edges];
    let mut longest_wait = Duration::ZERO;
    for arrival in arrivals {
        let tenth = usize::try_from(arrival.as_millis() / 100).expect("a storm ends within years");
        tenths.resize(tenths.len().max(tenth + 1), 0);
        tenths[tenth] += 1;
        let edge = &mut free[rng.random_range(0..storm.edges)];
        let begins = arrival.max(*edge);
        longest_wait = longest_wait.max(begins - arrival);
        *edge = begins + storm.cost / storm.cores;
    }
    Survived {
        peak: tenths.into_iter().max().unwrap_or_default(),
        longest_wait,
        all_back: free.into_iter().max().unwrap_or_default(),
    }
}

pub(super) fn table(rng: &mut impl Rng) -> String {
    let mut out = String::from(
        "An edge of two cores dies; a reconnection takes 200 µs of an edge's core\n\
         streams  edges left  clients come back after   in 0.1 s at most  longest wait  all back\n",
    );
    let second = Duration::from_secs(1);
    for (streams, edges) in [(5_000, 1), (20_000, 2), (20_000, 9), (100_000, 9)] {
        for (said, spread) in [
            ("1 s: all alike", Duration::ZERO),
            ("1 to 2 s: with a call", second),
            ("1 to 5 s: listening", 4 * second),
        ] {
            let storm = Storm {
                streams,
                edges,
                retry: second,
                spread,
                cost: Duration::from_micros(200),
                cores: 2,
            };
            let survived = weather(storm, rng);
            let _ = writeln!(
                out,
                "{streams:7}  {edges:10}  {said:24}  {:17}  {:>12}  {:>8}",
                survived.peak,
                seconds(survived.longest_wait),
                seconds(survived.all_back)
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    use super::{Storm, weather};

    const SECOND: Duration = Duration::from_secs(1);
    const ALIKE: Storm = Storm {
        streams: 5000,
        edges: 1,
        retry: SECOND,
        spread: Duration::ZERO,
        cost: Duration::from_micros(200),
        cores: 2,
    };

    #[test]
    fn a_crowd_that_comes_at_once_waits_for_itself() {
        let survived = weather(ALIKE, &mut StdRng::seed_from_u64(7));
        assert_eq!(survived.peak, 5000);
        // The last client waits for 4999 others, 100 µs each.
        assert_eq!(survived.longest_wait, Duration::from_micros(499_900));
        assert_eq!(survived.all_back, Duration::from_millis(1500));
    }

    #[test]
    fn a_crowd_that_is_spread_thinner_than_it_is_served_hardly_waits() {
        let spread = Storm {
            spread: SECOND,
            ..ALIKE
        };
        let survived = weather(spread, &mut StdRng::seed_from_u64(7));
        assert!(survived.longest_wait < SECOND / 50, "{survived:?}");
        assert!(survived.peak < 620, "{survived:?}");
        assert_eq!(survived, weather(spread, &mut StdRng::seed_from_u64(7)));
    }
}
