#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scale {
    Linear(f64, f64),
    /// Both values must be above 0.
    Log(f64, f64),
    /// For quantiles from 0 to 1. Each nine has the same width.
    Tail,
}

/// The position of quantile 1, in nines.
const LAST_NINE: f64 = 4.6;

impl Scale {
    /// Returns a scale from 0 to a round number above all of `values`.
    pub(super) fn linear(values: impl Iterator<Item = f64>) -> Self {
        let most = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        if most <= 0.0 {
            return Self::Linear(0.0, 1.0);
        }
        let step = step(most);
        Self::Linear(0.0, (most / step).ceil() * step)
    }

    pub(super) fn log(values: impl Iterator<Item = f64>) -> Self {
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for value in values.filter(|value| value.is_finite() && *value > 0.0) {
            (least, most) = (least.min(value), most.max(value));
        }
        if most <= 0.0 {
            return Self::Log(1.0, 10.0);
        }
        let round = |value: f64, up: bool| {
            let decade = 10_f64.powf(value.log10().floor());
            let mut rounds = [1.0, 2.0, 5.0, 10.0]
                .map(|digit| digit * decade)
                .into_iter();
            if up {
                rounds
                    .find(|round| *round >= value * 0.999)
                    .unwrap_or(decade * 10.0)
            } else {
                rounds
                    .rfind(|round| *round <= value * 1.001)
                    .unwrap_or(decade)
            }
        };
        let (least, most) = (round(least, false), round(most, true));
        Self::Log(least, if most > least { most } else { least * 10.0 })
    }

    /// 0 is the beginning of the scale, 1 its end. Clamped.
    pub(super) fn place(self, value: f64) -> f64 {
        let place = match self {
            Self::Linear(from, to) => (value - from) / (to - from),
            Self::Log(from, to) => (value.max(from) / from).ln() / (to / from).ln(),
            Self::Tail if value >= 1.0 => 1.0,
            Self::Tail => -(1.0 - value).log10() / LAST_NINE,
        };
        place.clamp(0.0, 1.0)
    }

    pub(super) fn ticks(self) -> Vec<f64> {
        match self {
            Self::Linear(from, to) => {
                let step = step(to - from);
                let count = ((to - from) / step).round() as u32;
                (0..=count)
                    .map(|tick| from + step * f64::from(tick))
                    .collect()
            }
            Self::Log(from, to) => {
                // A few decades have room for more than one tick each.
                let digits: &[f64] = if to / from < 2e3 {
                    &[1.0, 2.0, 5.0]
                } else {
                    &[1.0]
                };
                let mut ticks = Vec::new();
                let mut decade = 10_f64.powf(from.log10().floor());
                while decade <= to * 1.001 {
                    let values = digits.iter().map(|digit| digit * decade);
                    ticks.extend(
                        values.filter(|value| *value >= from * 0.999 && *value <= to * 1.001),
                    );
                    decade *= 10.0;
                }
                ticks
            }
            Self::Tail => vec![0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0],
        }
    }
}

/// Divides `length` into four to eight round parts.
fn step(length: f64) -> f64 {
    let decade = 10_f64.powf((length / 4.0).log10().floor());
    let steps = [5.0, 2.0, 1.0].map(|digit| digit * decade);
    steps
        .into_iter()
        .find(|step| length / step >= 4.0)
        .unwrap_or(decade)
}

#[cfg(test)]
mod tests {
    use super::Scale;

    #[test]
    fn scales_end_at_round_numbers_and_name_them() {
        assert_eq!(
            Scale::linear([3.0, 87.0].into_iter()),
            Scale::Linear(0.0, 100.0)
        );
        assert_eq!(
            Scale::Linear(0.0, 100.0).ticks(),
            [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
        );
        let log = Scale::log([0.3, 70.0].into_iter());
        let Scale::Log(from, to) = log else {
            panic!("{log:?}")
        };
        assert!(
            (from - 0.2).abs() < 1e-9 && (to - 100.0).abs() < 1e-9,
            "{log:?}"
        );
        assert_eq!(log.ticks().len(), 9);
    }

    #[test]
    fn each_nine_is_as_wide_as_any_other() {
        let place = |value| Scale::Tail.place(value);
        let first = place(0.99) - place(0.9);
        let second = place(0.999) - place(0.99);
        assert!((first - second).abs() < 1e-9);
        assert_eq!((place(0.0), place(1.0)), (0.0, 1.0));
        assert!(place(0.9999) < 1.0);
    }

    #[test]
    fn what_cannot_be_placed_stays_on_the_axis() {
        assert_eq!(Scale::linear([].into_iter()), Scale::Linear(0.0, 1.0));
        assert_eq!(Scale::log([0.0].into_iter()).place(0.0), 0.0);
        assert_eq!(Scale::linear([0.0].into_iter()).place(5.0), 1.0);
    }
}
