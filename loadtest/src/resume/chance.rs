//! The seed determines the decisions, but the network determines where in the stream they apply.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::connection::Goodbye;
use crate::mcp::job::Job;

/// Maximum resumes of a call. Afterwards, the client stays until the end.
const MOST_RESUMES: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    Never,
    AfterEvents(usize),
    AfterTime(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    For(Duration),
    PastTheEnd,
}

#[derive(Debug)]
pub(crate) struct Chance {
    dice: StdRng,
    longest: Job,
}

impl Chance {
    /// `longest` limits the client's jobs.
    pub(crate) fn new(seed: u64, client: usize, longest: Job) -> Self {
        // `seed_from_u64` mixes neighbouring seeds into unrelated sequences.
        let dice = StdRng::seed_from_u64(seed.wrapping_mul(1 << 20).wrapping_add(client as u64));
        Self { dice, longest }
    }

    pub(crate) fn split(&mut self) -> Self {
        Self {
            dice: StdRng::seed_from_u64(self.dice.random()),
            longest: self.longest,
        }
    }

    pub(crate) fn job(&mut self) -> Job {
        let longest = self.longest;
        Job {
            steps: self.dice.random_range(1..=longest.steps.max(1)),
            interval: self.up_to(longest.interval),
        }
    }

    /// Some sessions last for the whole run.
    pub(crate) fn session_calls(&mut self) -> usize {
        if self.dice.random_bool(0.5) {
            usize::MAX
        } else {
            self.dice.random_range(5..=40)
        }
    }

    pub(crate) fn holds_standalone_stream(&mut self) -> bool {
        self.dice.random_bool(1.0 / 3.0)
    }

    pub(crate) fn cut(&mut self, job: &Job, resumes: usize) -> Cut {
        if resumes >= MOST_RESUMES {
            return Cut::Never;
        }
        match self.dice.random_range(0..10) {
            0..3 => Cut::Never,
            3..7 => Cut::AfterEvents(self.dice.random_range(1..=job.steps)),
            _ => Cut::AfterTime(self.up_to(job.length())),
        }
    }

    pub(crate) fn pause(&mut self) -> Pause {
        match self.dice.random_range(0..10) {
            0..2 => Pause::For(Duration::ZERO),
            2..8 => Pause::For(self.up_to(Duration::from_millis(200))),
            8 => Pause::For(self.up_to(Duration::from_secs(1))),
            _ => Pause::PastTheEnd,
        }
    }

    /// A dropped connection stays open and unread, like a path that failed silently. `None` closes
    /// it at once.
    pub(crate) fn half_open(&mut self) -> Option<Duration> {
        let half_open = self.dice.random_bool(0.2);
        half_open.then(|| self.up_to(Duration::from_millis(1500)))
    }

    pub(crate) fn goodbye(&mut self) -> Goodbye {
        if self.dice.random_bool(0.5) {
            Goodbye::Reset
        } else {
            Goodbye::Finish
        }
    }

    pub(crate) fn replays(&mut self) -> bool {
        self.dice.random_bool(0.1)
    }

    pub(crate) fn listening_time(&mut self) -> Duration {
        self.up_to(Duration::from_secs(3))
    }

    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.dice.random_range(0..choices.len())]
    }

    pub(crate) fn index(&mut self, length: usize) -> usize {
        self.dice.random_range(0..length)
    }

    fn up_to(&mut self, longest: Duration) -> Duration {
        longest.mul_f64(self.dice.random())
    }
}
