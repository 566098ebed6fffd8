use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::Plan;

/// A part of a run. The first is the warm-up.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    pub(crate) name: String,
    pub(crate) start: Duration,
    pub(crate) length: Duration,
    /// Calls per second; `None` in a closed loop.
    pub(crate) rate: Option<f64>,
    pub(crate) sessions: usize,
}

#[derive(Debug)]
pub(crate) struct Stages {
    pub(crate) began: Instant,
    pub(crate) all: Vec<Stage>,
    /// The number of the current stage; the number of stages after the end. A slow server prolongs a stage.
    pub(crate) current: watch::Sender<usize>,
}

impl Stages {
    pub(crate) fn new(plan: &Plan, began: Instant) -> Self {
        let steps = u32::try_from(plan.steps).unwrap_or(u32::MAX);
        let length = plan.duration / steps;
        let stage = |step: u32, start, length| {
            let rate = plan.rate.map(|rate| rate.at(step as usize, plan.steps));
            let sessions = plan.sessions.at(step as usize, plan.steps).round() as usize;
            let name = match (plan.has_slow_readers, rate) {
                (true, _) if step == 0 => "without slow readers".to_owned(),
                (true, _) => "with slow readers".to_owned(),
                (false, Some(rate)) => format!("{rate:.0}/s by {sessions} sessions"),
                (false, None) => format!("{sessions} sessions"),
            };
            Stage {
                name,
                start,
                length,
                rate,
                sessions,
            }
        };
        let measured = (0..steps).map(|step| stage(step, plan.warmup + length * step, length));
        let warmup = stage(0, Duration::ZERO, plan.warmup);
        Self {
            began,
            all: std::iter::once(warmup).chain(measured).collect(),
            current: watch::Sender::new(0),
        }
    }

    /// Returns the stage in which a call of an open loop is due.
    pub(crate) fn at(&self, due: Instant) -> Option<usize> {
        (0..self.all.len()).find(|&index| due < self.end_of(index))
    }

    pub(crate) fn end_of(&self, index: usize) -> Instant {
        self.began + self.all[index].start + self.all[index].length
    }

    pub(crate) fn end(&self) -> Instant {
        self.end_of(self.all.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Stages;
    use crate::engine::Plan;
    use crate::mcp::Mode;

    #[tokio::test]
    async fn stages_follow_each_other_and_change_with_the_ramp() {
        let plan = Plan::at("http://127.0.0.1:1/mcp", Mode::Legacy, 1).await;
        let plan = Plan {
            sessions: "1..3".parse().expect("is a ramp"),
            warmup: Duration::from_secs(1),
            duration: Duration::from_secs(9),
            steps: 3,
            ..plan.expect("is a URL")
        };
        let began = Instant::now();
        let stages = Stages::new(&plan, began);
        let at = |seconds| stages.at(began + Duration::from_secs(seconds));
        assert_eq!((at(0), at(4), at(10)), (Some(0), Some(2), None));
        let sessions: Vec<usize> = stages.all.iter().map(|stage| stage.sessions).collect();
        assert_eq!(sessions, [1, 1, 2, 3]);
        assert_eq!(stages.end(), began + Duration::from_secs(10));
    }
}
