//! Adjacent readings depend on one another, which would make the confidence interval too narrow, so
//! only the medians of blocks count. The slope is the median of the slopes of all pairs
//! (Theil-Sen), and its interval comes from their ranks (Kendall).

use crate::report::median;

const BLOCKS: usize = 20;

/// With fewer blocks, the interval would contain all slopes.
const FEWEST_BLOCKS: usize = 8;

const NORMAL_95: f64 = 1.96;

/// The growth per second, with its 95% confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slope {
    pub(super) median: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Slope {
    /// Omits the first third of `points`. `None` if there are too few points.
    pub(super) fn settled(points: &[(f64, f64)]) -> Option<Self> {
        let medians = blocks(&points[points.len() / 3..]);
        let count = medians.len();
        if count < FEWEST_BLOCKS {
            return None;
        }
        let mut slopes = Vec::with_capacity(count * (count - 1) / 2);
        for (index, earlier) in medians.iter().enumerate() {
            for later in &medians[index + 1..] {
                slopes.push((later.1 - earlier.1) / (later.0 - earlier.0));
            }
        }
        slopes.sort_by(f64::total_cmp);
        let blocks = count as f64;
        let spread = NORMAL_95 * (blocks * (blocks - 1.0) * (2.0 * blocks + 5.0) / 18.0).sqrt();
        let pairs = slopes.len();
        let below = ((pairs as f64 - spread) / 2.0).max(0.0) as usize;
        Some(Self {
            median: median(slopes.iter().copied()),
            low: slopes[below],
            high: slopes[pairs - 1 - below],
        })
    }

    pub(super) fn grows(&self) -> bool {
        self.low > 0.0
    }
}

/// Returns the medians of at most [`BLOCKS`] equally long runs of points.
fn blocks(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let length = points.len().div_ceil(BLOCKS).max(1);
    let middle = |block: &[(f64, f64)]| {
        let of = |pick: fn(&(f64, f64)) -> f64| median(block.iter().map(pick));
        (of(|point| point.0), of(|point| point.1))
    };
    points.chunks(length).map(middle).collect()
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::Slope;

    fn readings(value: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        let mut chance = SmallRng::seed_from_u64(7);
        let times = (0..360).map(|number| f64::from(number) * 5.0);
        times
            .map(|time| (time, value(time) + chance.random_range(-50.0..50.0)))
            .collect()
    }

    #[test]
    fn noise_about_a_level_does_not_grow() {
        let slope = Slope::settled(&readings(|_| 60_000.0)).unwrap();
        assert!(slope.low < 0.0 && slope.high > 0.0, "{slope:?}");
        assert!(!slope.grows());
    }

    #[test]
    fn a_leak_is_found_under_the_noise_and_measured() {
        let slope = Slope::settled(&readings(|time| 60_000.0 + time / 10.0)).unwrap();
        assert!(slope.grows(), "{slope:?}");
        assert!(slope.low <= 0.1 && slope.high >= 0.1, "{slope:?}");
    }

    #[test]
    fn growth_that_ends_with_the_warm_up_is_none() {
        let slope = Slope::settled(&readings(|time| 10.0 * time.min(500.0))).unwrap();
        assert!(!slope.grows(), "{slope:?}");
    }

    #[test]
    fn what_never_changes_does_not_grow_and_few_readings_say_nothing() {
        let flat: Vec<_> = (0..100).map(|time| (f64::from(time), 5.0)).collect();
        let slope = Slope::settled(&flat).unwrap();
        assert_eq!((slope.low, slope.high, slope.grows()), (0.0, 0.0, false));
        assert_eq!(Slope::settled(&flat[..8]), None);
    }
}
