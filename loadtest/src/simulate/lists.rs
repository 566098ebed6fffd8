//! Conflation limits what repeated changes of tool lists cost with many listeners.

use std::fmt::Write as _;
use std::time::Duration;

use super::seconds;

#[derive(Debug, Clone, Copy)]
pub(super) struct Changes {
    pub(super) listening: u64,
    pub(super) changes: u64,
    pub(super) every: Duration,
    /// Time to notify one session.
    pub(super) tell: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) rounds: u64,
    pub(super) notifications: u64,
    /// When the last session had learned of the last change.
    pub(super) over: Duration,
}

/// All changes during a round count as one for the next round, because `announce.rs` of `shoal-session` waits for the
/// catalog's newest version.
pub(super) fn tell(changes: Changes) -> Told {
    let when = |change: u64| changes.every * u32::try_from(change).unwrap_or(u32::MAX);
    let round = changes.tell * u32::try_from(changes.listening).unwrap_or(u32::MAX);
    let (mut now, mut known, mut rounds) = (Duration::ZERO, 0, 0);
    while known < changes.changes {
        now = now.max(when(known));
        // A round includes all changes before its start.
        known += (known..changes.changes)
            .take_while(|change| when(*change) <= now)
            .count() as u64;
        rounds += 1;
        now += round;
    }
    Told {
        rounds,
        notifications: rounds * changes.listening,
        over: now,
    }
}

pub(super) fn table() -> String {
    let mut out = String::from(
        "Lists change while sessions of one node listen; telling one takes 10 µs\n\
         listening  changes  apart      rounds  notifications  without conflation      over\n",
    );
    for listening in [1_000, 20_000, 100_000] {
        for (count, apart) in [(1, 1000), (100, 10), (100, 100), (60, 1000)] {
            let changes = Changes {
                listening,
                changes: count,
                every: Duration::from_millis(apart),
                tell: Duration::from_micros(10),
            };
            let told = tell(changes);
            let _ = writeln!(
                out,
                "{listening:9}  {count:7}  {apart:4} ms  {:9}  {:13}  {:18}  {:>8}",
                told.rounds,
                told.notifications,
                listening * count,
                seconds(told.over)
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Changes, Told, tell};

    #[test]
    fn changes_during_a_round_are_told_together_in_the_next() {
        let changes = Changes {
            listening: 100,
            changes: 11,
            every: Duration::from_millis(100),
            tell: Duration::from_millis(5),
        };
        // Rounds of 500 ms begin at 0, 500 and 1000 ms; the second reports five changes, the third
        // the last five.
        let told = Told {
            rounds: 3,
            notifications: 300,
            over: Duration::from_millis(1500),
        };
        assert_eq!(tell(changes), told);
    }

    #[test]
    fn changes_further_apart_than_a_round_are_all_told() {
        let changes = Changes {
            listening: 10,
            changes: 4,
            every: Duration::from_secs(1),
            tell: Duration::from_millis(1),
        };
        assert_eq!(tell(changes).notifications, 40);
    }
}
