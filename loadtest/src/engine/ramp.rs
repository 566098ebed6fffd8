use std::fmt;
use std::str::FromStr;

/// A number (`64`), or a range of numbers (`10..100`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ramp {
    from: f64,
    to: f64,
}

impl Ramp {
    pub(crate) fn flat(number: f64) -> Self {
        Self {
            from: number,
            to: number,
        }
    }

    pub(crate) fn changes(self) -> bool {
        self.from != self.to
    }

    pub(crate) fn most(self) -> f64 {
        self.from.max(self.to)
    }

    /// The first step has the start value, the last step the end value.
    pub(crate) fn at(self, step: usize, steps: usize) -> f64 {
        if steps < 2 {
            return self.from;
        }
        self.from + (self.to - self.from) * step as f64 / (steps - 1) as f64
    }
}

impl FromStr for Ramp {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str| match part.trim().parse::<f64>() {
            Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
            _ => Err(format!(
                "{part:?} is no number above 0; write 64, or 10..100 to go from 10 to 100"
            )),
        };
        match text.split_once("..") {
            Some((from, to)) => Ok(Self {
                from: number(from)?,
                to: number(to)?,
            }),
            None => number(text).map(Self::flat),
        }
    }
}

impl fmt::Display for Ramp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.from)?;
        if self.changes() {
            write!(out, "..{}", self.to)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Ramp;

    #[test]
    fn a_ramp_begins_and_ends_where_it_says() {
        let ramp: Ramp = "10..50".parse().expect("is a ramp");
        let steps: Vec<f64> = (0..5).map(|step| ramp.at(step, 5)).collect();
        assert_eq!(steps, [10.0, 20.0, 30.0, 40.0, 50.0]);
        assert_eq!((ramp.most(), ramp.changes()), (50.0, true));
        assert_eq!(ramp.to_string(), "10..50");
    }

    #[test]
    fn what_is_no_ramp_is_refused() {
        for wrong in ["", "0", "-1", "1..", "..3", "a..b", "inf", "1..2..3"] {
            assert!(wrong.parse::<Ramp>().is_err(), "{wrong}");
        }
    }
}
