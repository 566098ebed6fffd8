use std::fmt;

use serde::Serialize;

use crate::report::median;

#[derive(Debug, Default)]
pub(crate) struct Samples {
    /// Pairs of seconds since the start and KiB.
    points: Vec<(f64, f64)>,
}

/// The settled slope omits the first third, in which servers warm up.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Memory {
    pub(crate) samples: usize,
    pub(crate) first_third_kib: f64,
    pub(crate) middle_third_kib: f64,
    pub(crate) last_third_kib: f64,
    pub(crate) peak_kib: f64,
    pub(crate) slope_kib_per_min: f64,
    pub(crate) settled_slope_kib_per_min: f64,
}

impl Samples {
    pub(crate) fn add(&mut self, seconds: f64, kib: u64) {
        self.points.push((seconds, kib as f64));
    }

    pub(crate) fn latest_kib(&self) -> Option<f64> {
        self.points.last().map(|&(_, kib)| kib)
    }

    pub(crate) fn summary(&self) -> Option<Memory> {
        let length = self.points.len();
        if length == 0 {
            return None;
        }
        let third = |from: usize, to: usize| {
            let points = &self.points[from * length / 3..(to * length).div_ceil(3)];
            median(points.iter().map(|&(_, kib)| kib))
        };
        Some(Memory {
            samples: length,
            first_third_kib: third(0, 1),
            middle_third_kib: third(1, 2),
            last_third_kib: third(2, 3),
            peak_kib: self.points.iter().map(|&(_, kib)| kib).fold(0.0, f64::max),
            slope_kib_per_min: slope(&self.points) * 60.0,
            settled_slope_kib_per_min: slope(&self.points[length / 3..]) * 60.0,
        })
    }
}

/// 0 if the points do not determine the slope.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let (covariance, variance) =
        points
            .iter()
            .fold((0.0, 0.0), |(covariance, variance), (x, y)| {
                (
                    covariance + (x - mean_x) * (y - mean_y),
                    variance + (x - mean_x) * (x - mean_x),
                )
            });
    if variance > 0.0 {
        covariance / variance
    } else {
        0.0
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "server memory, KiB: median of the thirds {:.0} / {:.0} / {:.0}, peak {:.0}; slope {:+.1} KiB/min, {:+.1} without the first third",
            self.first_third_kib,
            self.middle_third_kib,
            self.last_third_kib,
            self.peak_kib,
            self.slope_kib_per_min,
            self.settled_slope_kib_per_min
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Samples;

    fn summary(kib: impl Fn(u64) -> u64) -> super::Memory {
        let mut samples = Samples::default();
        for second in 0..60 {
            samples.add(second as f64, kib(second));
        }
        samples.summary().unwrap()
    }

    #[test]
    fn steady_growth_shows_as_its_slope() {
        let memory = summary(|second| 1000 + 2 * second);
        assert!((memory.slope_kib_per_min - 120.0).abs() < 1e-6);
        assert!((memory.settled_slope_kib_per_min - 120.0).abs() < 1e-6);
        assert!(memory.last_third_kib > memory.first_third_kib);
    }

    #[test]
    fn growth_that_ends_with_the_warm_up_settles_flat() {
        let memory = summary(|second| 1000 + second.min(20));
        assert!(memory.slope_kib_per_min > 0.0);
        assert!(memory.settled_slope_kib_per_min.abs() < 1e-6);
        assert_eq!(memory.middle_third_kib, memory.last_third_kib);
    }

    #[test]
    fn no_sample_and_one_sample_have_no_slope() {
        assert!(Samples::default().summary().is_none());
        let mut samples = Samples::default();
        samples.add(0.0, 7);
        assert_eq!(samples.summary().unwrap().slope_kib_per_min, 0.0);
    }
}
