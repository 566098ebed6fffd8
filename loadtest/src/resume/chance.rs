//! What a client leaves to chance: its jobs, when it drops, how, and when it returns.
//!
//! The seed fixes every decision; the network still decides where in the stream it falls.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::connection::Goodbye;

/// After so many resumes of one call a client stays until the end.
const MOST_RESUMES: usize = 8;

/// One call of the long tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    /// Progress notifications.
    pub(crate) steps: usize,
    /// The time before each.
    pub(crate) interval: Duration,
}

impl Job {
    /// How long the tool runs.
    pub(crate) fn length(&self) -> Duration {
        self.interval * u32::try_from(self.steps).unwrap_or(u32::MAX)
    }
}

/// When a connection is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Not at all.
    Never,
    /// After so many events on it, at least one.
    AfterEvents(usize),
    /// After some time on it.
    AfterTime(Duration),
}

/// How long a client stays away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    /// This long.
    For(Duration),
    /// Until the call has certainly ended.
    PastTheEnd,
}

/// One client's dice.
#[derive(Debug)]
pub(crate) struct Chance {
    dice: StdRng,
    longest: Job,
}

impl Chance {
    /// The dice of client number `client`; no job is longer than `longest`, in either respect.
    pub(crate) fn new(seed: u64, client: usize, longest: Job) -> Self {
        // Neighbouring seeds give unrelated sequences: `seed_from_u64` mixes them.
        let dice = StdRng::seed_from_u64(seed.wrapping_mul(1 << 20).wrapping_add(client as u64));
        Self { dice, longest }
    }

    /// Dice for something that goes on at the same time.
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

    /// How many calls a session makes: some live for the whole run.
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

    /// When to drop a connection of `job` that has been resumed `resumes` times.
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

    /// How long a dropped connection stays open, unread, as when a network path dies silently;
    /// `None` where it is closed at once.
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

    /// How long a standalone stream is held before it is dropped.
    pub(crate) fn listening_time(&mut self) -> Duration {
        self.up_to(Duration::from_secs(3))
    }

    /// One of `choices`, which must not be empty.
    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.dice.random_range(0..choices.len())]
    }

    /// An index below `length`, which must not be 0.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        self.dice.random_range(0..length)
    }

    fn up_to(&mut self, longest: Duration) -> Duration {
        longest.mul_f64(self.dice.random())
    }
}
