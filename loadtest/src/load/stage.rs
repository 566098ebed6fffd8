use std::time::{Duration, Instant};

use super::ramp::Ramp;

#[derive(Debug, Clone)]
pub(super) struct Stage {
    pub(super) name: String,
    pub(super) start: Duration,
    pub(super) length: Duration,
    /// Calls per second; `None` in a closed loop.
    pub(super) rate: Option<f64>,
    pub(super) sessions: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Stages {
    pub(super) began: Instant,
    pub(super) all: Vec<Stage>,
}

#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) warmup: Duration,
    pub(super) duration: Duration,
    pub(super) steps: usize,
    pub(super) rate: Option<Ramp>,
    pub(super) sessions: Ramp,
    pub(super) slow_readers: bool,
}

impl Shape {
    pub(super) fn stages(&self, began: Instant) -> Stages {
        let ramps = self.sessions.changes() || self.rate.is_some_and(Ramp::changes);
        let steps = match (ramps, self.slow_readers) {
            (true, _) => self.steps,
            (false, true) => 2,
            (false, false) => 1,
        };
        let length = self.duration / u32::try_from(steps).unwrap_or(u32::MAX);
        let mut all = Vec::with_capacity(steps + 1);
        all.push(self.stage("warm-up".to_owned(), Duration::ZERO, self.warmup, 0, steps));
        for step in 0..steps {
            let start = self.warmup + length * u32::try_from(step).unwrap_or(u32::MAX);
            let stage = self.stage(String::new(), start, length, step, steps);
            let name = match (ramps, self.slow_readers) {
                (true, _) => match stage.rate {
                    Some(rate) => format!("{rate:.0}/s by {} sessions", stage.sessions),
                    None => format!("{} sessions", stage.sessions),
                },
                (false, true) if step == 0 => "without slow readers".to_owned(),
                (false, true) => "with slow readers".to_owned(),
                (false, false) => "measure".to_owned(),
            };
            all.push(Stage { name, ..stage });
        }
        Stages { began, all }
    }

    fn stage(
        &self,
        name: String,
        start: Duration,
        length: Duration,
        step: usize,
        steps: usize,
    ) -> Stage {
        Stage {
            name,
            start,
            length,
            rate: self.rate.map(|rate| rate.at(step, steps)),
            sessions: self.sessions.at(step, steps).round() as usize,
        }
    }
}

impl Stages {
    pub(super) fn at(&self, at: Instant) -> Option<usize> {
        let since = at.saturating_duration_since(self.began);
        self.all
            .iter()
            .position(|stage| since < stage.start + stage.length)
    }

    pub(super) fn starts(&self, index: usize) -> Instant {
        self.began + self.all[index].start
    }

    pub(super) fn end(&self) -> Instant {
        let last = self.all.last().expect("there is a warm-up");
        self.began + last.start + last.length
    }

    /// `None` if the session makes no more calls.
    pub(super) fn joins(&self, number: usize, now: Instant) -> Option<Instant> {
        let from = self.at(now)?;
        let index = (from..self.all.len()).find(|&index| self.all[index].sessions > number)?;
        Some(self.starts(index).max(now))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Shape;

    #[test]
    fn sessions_join_and_leave_with_the_ramp() {
        let shape = Shape {
            warmup: Duration::from_secs(1),
            duration: Duration::from_secs(9),
            steps: 3,
            rate: None,
            sessions: "1..3".parse().expect("is a ramp"),
            slow_readers: false,
        };
        let began = Instant::now();
        let stages = shape.stages(began);
        let after = |seconds| began + Duration::from_secs(seconds);
        assert_eq!(stages.all.len(), 4);
        assert_eq!(
            (
                stages.at(after(0)),
                stages.at(after(4)),
                stages.at(after(10))
            ),
            (Some(0), Some(2), None)
        );
        assert_eq!(stages.joins(0, after(2)), Some(after(2)));
        assert_eq!(stages.joins(2, after(2)), Some(after(7)));
        assert_eq!(stages.joins(3, after(2)), None);
        assert_eq!(stages.end(), after(10));
        let falling = Shape {
            sessions: "3..1".parse().expect("is a ramp"),
            ..shape
        };
        assert_eq!(falling.stages(began).joins(2, after(5)), None);
    }

    #[test]
    fn slow_readers_join_in_the_middle() {
        let shape = Shape {
            warmup: Duration::ZERO,
            duration: Duration::from_secs(4),
            steps: 5,
            rate: None,
            sessions: "2".parse().expect("is a number"),
            slow_readers: true,
        };
        let stages = shape.stages(Instant::now());
        let names: Vec<&str> = stages.all.iter().map(|stage| stage.name.as_str()).collect();
        assert_eq!(
            names,
            ["warm-up", "without slow readers", "with slow readers"]
        );
        assert_eq!(stages.all[2].start, Duration::from_secs(2));
    }
}
