//! How long calls stood still when something failed, as their clients saw it.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::Injected;
use crate::history::{Channel, Entry, History, Message, Step, Tool, Work};

/// A call that goes on within this time after it should have was not held up.
const UNNOTICED: Duration = Duration::from_millis(250);

/// The longest pause that is told apart, in milliseconds.
const LONGEST_MS: u64 = 600_000;

/// Pauses of calls that were open when something failed, and were held up.
#[derive(Clone, Debug)]
pub struct Pauses {
    milliseconds: Histogram<u64>,
}

impl Pauses {
    /// The pauses after each of these faults.
    #[must_use]
    pub fn after(injected: &[Injected], histories: &[History]) -> Self {
        let mut milliseconds =
            Histogram::new_with_max(LONGEST_MS, 3).expect("the bounds make sense");
        for history in histories {
            for signs in signs_of_life(&history.entries) {
                for fault in injected {
                    if let Some(pause) = signs.pause_after(fault.from) {
                        let pause = u64::try_from(pause.as_millis()).unwrap_or(LONGEST_MS);
                        milliseconds.saturating_record(pause);
                    }
                }
            }
        }
        Self { milliseconds }
    }

    /// How many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.milliseconds.len()
    }

    /// The pause that this share of them did not exceed.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Duration {
        Duration::from_millis(self.milliseconds.value_at_quantile(share))
    }
}

/// When a client heard of a call.
struct Signs {
    work: Work,
    at: Vec<Duration>,
}

impl Signs {
    /// How much later than it should have a call went on that was open at `fault`, if it was held up.
    fn pause_after(&self, fault: Duration) -> Option<Duration> {
        // A question waits for its answer, which may have a fault of its own.
        if self.work.tool == Tool::Ask {
            return None;
        }
        let next = self.at.partition_point(|at| *at <= fault);
        let (before, after) = (self.at.get(next.checked_sub(1)?)?, self.at.get(next)?);
        let due = fault.max(*before + Duration::from_millis(self.work.ms));
        after.checked_sub(due).filter(|pause| *pause > UNNOTICED)
    }
}

fn signs_of_life(entries: &[Entry]) -> impl Iterator<Item = Signs> {
    let mut calls: BTreeMap<u64, Signs> = BTreeMap::new();
    let mut call_of: BTreeMap<u64, u64> = BTreeMap::new();
    for Entry { at, step } in entries {
        match step {
            Step::Sent { request, work, .. } => {
                call_of.insert(*request, work.call);
                // Sent again, it is still the same wait.
                calls.entry(work.call).or_insert_with(|| Signs {
                    work: work.clone(),
                    at: vec![*at],
                });
            }
            Step::Received {
                channel: Channel::Request(request),
                message,
                ..
            } if *message != Message::Prime => {
                let call = call_of.get(request).and_then(|call| calls.get_mut(call));
                if let Some(signs) = call {
                    signs.at.push(*at);
                }
            }
            _ => {}
        }
    }
    calls.into_values()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Signs;
    use crate::history::{Tool, Work};

    fn pause(signs: &[u64], fault: u64) -> Option<u64> {
        let work = Work {
            call: 1,
            tool: Tool::Steps,
            nonce: String::new(),
            steps: 3,
            ms: 100,
        };
        let at = signs.iter().copied().map(Duration::from_millis).collect();
        let pause = Signs { work, at }.pause_after(Duration::from_millis(fault));
        pause.map(|pause| u64::try_from(pause.as_millis()).unwrap())
    }

    #[test]
    fn only_what_is_held_up_pauses() {
        assert_eq!(pause(&[0, 100, 200, 300], 150), None);
        assert_eq!(pause(&[0, 100, 2300, 2400], 150), Some(2100));
        assert_eq!(pause(&[0, 100, 2300, 2400], 1000), Some(1300));
        assert_eq!(pause(&[1000, 1100], 150), None);
        assert_eq!(pause(&[0, 100], 150), None);
    }
}
