use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::{Injected, Options};
use crate::history::{Ended, Entry, History, Message, Step, Tool, Work};

const UNNOTICED: Duration = Duration::from_millis(250);

/// The delays, as the clients saw them, of calls that were open when a fault began.
#[derive(Clone, Debug)]
pub struct Pauses {
    all: Vec<Pause>,
    rows: BTreeMap<(&'static str, String), Vec<Pause>>,
}

/// A delay, and the part of it in which the client had no connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Pause {
    all: Duration,
    away: Duration,
}

impl Pauses {
    pub(super) fn after(injected: &[Injected], histories: &[History], options: &Options) -> Self {
        let mut rows = BTreeMap::<_, Vec<_>>::new();
        for history in histories {
            let client = kind_of(history.client, options);
            for signs in signs(&history.entries) {
                for fault in injected {
                    let pause = signs.pause_after(fault.from);
                    if let Some(pause) = pause.filter(|pause| pause.all > UNNOTICED) {
                        rows.entry((client, fault.to_string()))
                            .or_default()
                            .push(pause);
                    }
                }
            }
        }
        rows.values_mut().for_each(|row| row.sort_unstable());
        let mut all = rows.values().flatten().copied().collect::<Vec<_>>();
        all.sort_unstable();
        Self { all, rows }
    }
}

fn kind_of(client: usize, options: &Options) -> &'static str {
    match client.checked_sub(options.sessions) {
        None => "clients with sessions",
        Some(modern) if modern < options.modern => "clients of 2026-07-28",
        Some(_) => "clients with tasks",
    }
}

impl fmt::Display for Pauses {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", Row(&self.all))?;
        for ((client, fault), row) in &self.rows {
            let away = row.last().map_or(0, |longest| longest.away.as_millis());
            write!(
                out,
                "\n    {client}, {fault}: {} (of it {away} ms without a connection)",
                Row(row)
            )?;
        }
        Ok(())
    }
}

/// Pauses in order.
struct Row<'a>(&'a [Pause]);

impl fmt::Display for Row<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        let at = |share: f64| {
            let index = (count as f64 * share) as usize;
            let pause = self.0.get(index.min(count.saturating_sub(1)));
            pause.map_or(0, |pause| pause.all.as_millis())
        };
        let (p50, p99, longest) = (at(0.5), at(0.99), at(1.0));
        write!(
            out,
            "{count} calls held up, p50 {p50} ms, p99 {p99} ms, longest {longest} ms"
        )
    }
}

/// Returns how late the next message of each call came that was open at a fault. It is due at its time in the call,
/// or at the fault, if this is later.
#[must_use]
pub fn delays(histories: &[History], fault: Duration) -> Vec<Duration> {
    let signs = histories.iter().flat_map(|history| signs(&history.entries));
    let pauses = signs.filter_map(|signs| signs.pause_after(fault));
    pauses.map(|pause| pause.all).collect()
}

/// The times at which a client heard of a call, had no connection for it, and left it on purpose.
struct Signs {
    work: Work,
    at: Vec<Duration>,
    away: Vec<(Duration, Option<Duration>)>,
    left: Vec<Duration>,
}

impl Signs {
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
        let overlap = |(from, until): &(Duration, Option<Duration>)| {
            let until = until.unwrap_or(after).min(after);
            until.saturating_sub((*from).max(due))
        };
        Some(Pause {
            all: after.saturating_sub(due),
            away: self.away.iter().map(overlap).sum(),
        })
    }
}

fn signs(entries: &[Entry]) -> impl Iterator<Item = Signs> {
    let mut calls: BTreeMap<u64, Signs> = BTreeMap::new();
    let mut call_of: BTreeMap<u64, u64> = BTreeMap::new();
    for Entry { at, step } in entries {
        if let Step::Sent { request, work, .. } = step {
            call_of.insert(*request, work.call);
            // A repeated request continues the wait of the first.
            let signs = calls.entry(work.call).or_insert_with(|| Signs {
                work: work.clone(),
                at: vec![*at],
                away: Vec::new(),
                left: Vec::new(),
            });
            signs.connected(*at);
            continue;
        }
        let call = step.request().and_then(|request| call_of.get(&request));
        let Some(signs) = call.and_then(|call| calls.get_mut(call)) else {
            continue;
        };
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
        Signs {
            work: Work {
                call: 1,
                tool: Tool::Steps,
                nonce: String::new(),
                steps: 3,
                ms: 100,
            },
            at: at.iter().copied().map(Duration::from_millis).collect(),
            away: Vec::new(),
            left: vec![Duration::from_millis(5000)],
        }
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
        assert_eq!(pause(&[0, 7000], 150), None, "it left on purpose");
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
