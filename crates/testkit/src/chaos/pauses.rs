use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::{Injected, Options};
use crate::history::{Channel, Ended, Entry, History, Message, Step, Tool, Work};

const UNNOTICED: Duration = Duration::from_millis(250);

const LONGEST_MS: u64 = 600_000;

/// The delays, as the clients saw them, of calls that were open when a fault began.
#[derive(Clone, Debug)]
pub struct Pauses {
    all: Row,
    rows: BTreeMap<(ClientKind, String), Row>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ClientKind {
    Session,
    Modern,
    Task,
}

#[derive(Clone, Debug)]
struct Row {
    milliseconds: Histogram<u64>,
    longest: Pause,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pause {
    all: Duration,
    away: Duration,
}

impl Pauses {
    #[must_use]
    pub(super) fn after(injected: &[Injected], histories: &[History], options: &Options) -> Self {
        let (mut all, mut rows) = (Row::new(), BTreeMap::new());
        for history in histories {
            let kind = ClientKind::of(history.client, options);
            for signs in signs_of_life(&history.entries) {
                for fault in injected {
                    let pause = signs.pause_after(fault.from);
                    if let Some(pause) = pause.filter(|pause| pause.all > UNNOTICED) {
                        all.add(pause);
                        let row = rows.entry((kind, fault.to_string()));
                        row.or_insert_with(Row::new).add(pause);
                    }
                }
            }
        }
        Self { all, rows }
    }

    /// Counts the pauses.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.all.milliseconds.len()
    }

    /// Returns the duration that this share of all pauses does not exceed.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Duration {
        self.all.quantile(share)
    }
}

impl fmt::Display for Pauses {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((kind, fault), row) in &self.rows {
            let Pause { all, away } = row.longest;
            writeln!(
                out,
                "    {kind}, {fault}: {} calls, p50 {} ms, p99 {} ms, longest {} ms (of it {} ms without a connection)",
                row.milliseconds.len(),
                row.quantile(0.5).as_millis(),
                row.quantile(0.99).as_millis(),
                all.as_millis(),
                away.as_millis(),
            )?;
        }
        Ok(())
    }
}

impl ClientKind {
    fn of(client: usize, options: &Options) -> Self {
        match client.checked_sub(options.sessions) {
            None => Self::Session,
            Some(modern) if modern < options.modern => Self::Modern,
            Some(_) => Self::Task,
        }
    }
}

impl fmt::Display for ClientKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Session => "clients with sessions",
            Self::Modern => "clients of 2026-07-28",
            Self::Task => "clients with tasks",
        })
    }
}

impl Row {
    fn new() -> Self {
        let milliseconds = Histogram::new_with_max(LONGEST_MS, 3).expect("the bounds make sense");
        Self {
            milliseconds,
            longest: Pause::default(),
        }
    }

    fn add(&mut self, pause: Pause) {
        let millis = u64::try_from(pause.all.as_millis()).unwrap_or(LONGEST_MS);
        self.milliseconds.saturating_record(millis);
        if pause.all > self.longest.all {
            self.longest = pause;
        }
    }

    fn quantile(&self, share: f64) -> Duration {
        Duration::from_millis(self.milliseconds.value_at_quantile(share))
    }
}

/// Returns how late the next message of each call came that was open at a fault. It is due at its time in the call,
/// or at the fault, if this is later.
#[must_use]
pub fn delays(histories: &[History], fault: Duration) -> Vec<Duration> {
    let signs = histories
        .iter()
        .flat_map(|history| signs_of_life(&history.entries));
    let pauses = signs.filter_map(|signs| signs.pause_after(fault));
    pauses.map(|pause| pause.all).collect()
}

struct Signs {
    work: Work,
    at: Vec<Duration>,
    away: Vec<(Duration, Option<Duration>)>,
    left: Vec<Duration>,
}

impl Signs {
    fn new(work: Work) -> Self {
        Self {
            work,
            at: Vec::new(),
            away: Vec::new(),
            left: Vec::new(),
        }
    }

    fn connected(&mut self, at: Duration) {
        if let Some((_, until @ None)) = self.away.last_mut() {
            *until = Some(at);
        }
    }

    fn disconnected(&mut self, at: Duration) {
        if !matches!(self.away.last(), Some((_, None))) {
            self.away.push((at, None));
        }
    }

    fn pause_after(&self, fault: Duration) -> Option<Pause> {
        // A call that asks waits for an answer, which another fault may delay.
        if self.work.tool == Tool::Ask {
            return None;
        }
        let next = self.at.partition_point(|at| *at <= fault);
        let (before, after) = (*self.at.get(next.checked_sub(1)?)?, *self.at.get(next)?);
        if self.left.iter().any(|left| (before..after).contains(left)) {
            return None;
        }
        let due = fault.max(before + Duration::from_millis(self.work.ms));
        let all = after.saturating_sub(due);
        let overlap = |(from, until): &(Duration, Option<Duration>)| {
            let until = until.unwrap_or(after).min(after);
            until.saturating_sub((*from).max(due))
        };
        let away = self.away.iter().map(overlap).sum();
        Some(Pause { all, away })
    }
}

fn signs_of_life(entries: &[Entry]) -> impl Iterator<Item = Signs> {
    let mut calls: BTreeMap<u64, Signs> = BTreeMap::new();
    let mut call_of: BTreeMap<u64, u64> = BTreeMap::new();
    for Entry { at, step } in entries {
        if let Step::Sent { request, work, .. } = step {
            call_of.insert(*request, work.call);
            // A repeated request continues the wait of the first.
            let signs = calls.entry(work.call);
            let signs = signs.or_insert_with(|| Signs::new(work.clone()));
            if signs.at.is_empty() {
                signs.at.push(*at);
            }
            signs.connected(*at);
            continue;
        }
        let (Step::Received { channel, .. }
        | Step::Listening { channel, .. }
        | Step::Refused { channel, .. }
        | Step::Ended { channel, .. }) = step
        else {
            continue;
        };
        let Channel::Request(request) = channel else {
            continue;
        };
        let call = call_of.get(request).and_then(|call| calls.get_mut(call));
        let Some(signs) = call else { continue };
        match step {
            Step::Received { message, .. } if *message != Message::Prime => signs.at.push(*at),
            Step::Listening { .. } => signs.connected(*at),
            Step::Refused { .. } => signs.disconnected(*at),
            Step::Ended { how, .. } => {
                if *how == Ended::Willingly {
                    signs.left.push(*at);
                }
                signs.disconnected(*at);
            }
            _ => {}
        }
    }
    calls.into_values()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Pause, Signs};
    use crate::history::{Tool, Work};

    fn signs(at: &[u64]) -> Signs {
        let mut signs = Signs::new(Work {
            call: 1,
            tool: Tool::Steps,
            nonce: String::new(),
            steps: 3,
            ms: 100,
        });
        signs.at = at.iter().copied().map(Duration::from_millis).collect();
        signs
    }

    fn pause(at: &[u64], fault: u64) -> Option<u64> {
        let pause = signs(at).pause_after(Duration::from_millis(fault));
        pause.map(|pause| u64::try_from(pause.all.as_millis()).unwrap())
    }

    #[test]
    fn only_what_is_held_up_pauses() {
        assert_eq!(pause(&[0, 100, 200, 300], 150), Some(0));
        assert_eq!(pause(&[0, 100, 2300, 2400], 150), Some(2100));
        assert_eq!(pause(&[0, 100, 2300, 2400], 1000), Some(1300));
        assert_eq!(pause(&[1000, 1100], 150), None);
        assert_eq!(pause(&[0, 100], 150), None);
    }

    #[test]
    fn the_time_without_a_connection_is_told_apart() {
        let ms = Duration::from_millis;
        let mut held_up = signs(&[0, 2300]);
        held_up.disconnected(ms(150));
        held_up.disconnected(ms(160));
        held_up.connected(ms(1200));
        let pause = held_up.pause_after(ms(150));
        let (all, away) = (ms(2150), ms(1050));
        assert_eq!(pause, Some(Pause { all, away }));

        held_up.left.push(ms(150));
        assert_eq!(held_up.pause_after(ms(150)), None, "it left on purpose");
    }
}
