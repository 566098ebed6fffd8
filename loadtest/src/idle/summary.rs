use std::io::Write as _;
use std::time::Duration;

use anyhow::Context;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::times;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Said {
    Open { open: usize, failed: u64 },
    End(Summary),
}

impl Said {
    pub(super) fn print(&self) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(self).context("could not write a line")?;
        line.push(b'\n');
        let mut out = std::io::stdout().lock();
        out.write_all(&line)
            .and_then(|()| out.flush())
            .context("nobody reads what this process says")
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Summary {
    pub(super) refused: u64,
    /// Streams that ended before this tool released them.
    pub(super) dropped: u64,
    /// Keep-alives and other data.
    pub(super) signs: u64,
    /// Silences longer than the keep-alive interval plus the tolerance.
    pub(super) late: u64,
    /// Keep-alives that had not come when the next one was due.
    pub(super) missed: u64,
    pub(super) example: Option<String>,
    pub(super) opening_ms: Vec<(u64, u64)>,
    /// Times between signs of life, with their counts.
    pub(super) between_ms: Vec<(u64, u64)>,
}

impl Summary {
    pub(super) fn failed(&self) -> u64 {
        self.refused + self.dropped
    }

    pub(super) fn not_opened(&mut self, failure: &Failure) {
        self.refused += 1;
        self.example.get_or_insert_with(|| failure.to_string());
    }

    pub(super) fn opened(&mut self, after: Duration) {
        count(&mut self.opening_ms, milliseconds(after), 1);
    }

    pub(super) fn dropped(&mut self, why: &str) {
        self.dropped += 1;
        self.example.get_or_insert_with(|| why.to_owned());
    }

    pub(super) fn sign_of_life(&mut self, after: Duration) {
        self.signs += 1;
        count(&mut self.between_ms, milliseconds(after), 1);
    }

    pub(super) fn silence(&mut self, silence: Duration, keep_alive: Duration, patience: Duration) {
        if silence <= keep_alive + patience {
            return;
        }
        self.late += 1;
        let due = silence.saturating_sub(patience).as_secs_f64() / keep_alive.as_secs_f64();
        self.missed += (due as u64).saturating_sub(1);
    }

    pub(super) fn add(&mut self, other: Self) {
        self.refused += other.refused;
        self.dropped += other.dropped;
        self.signs += other.signs;
        self.late += other.late;
        self.missed += other.missed;
        self.example = self.example.take().or(other.example);
        for (value, times) in other.opening_ms {
            count(&mut self.opening_ms, value, times);
        }
        for (value, times) in other.between_ms {
            count(&mut self.between_ms, value, times);
        }
    }
}

pub(super) fn histogram(counted: &[(u64, u64)]) -> Histogram<u64> {
    let mut histogram = times::histogram();
    for &(value, times) in counted {
        histogram.saturating_record_n(value * 1_000_000, times);
    }
    histogram
}

fn count(counted: &mut Vec<(u64, u64)>, value: u64, times: u64) {
    match counted.binary_search_by_key(&value, |&(known, _)| known) {
        Ok(at) => counted[at].1 += times,
        Err(at) => counted.insert(at, (value, times)),
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Summary, histogram};

    #[test]
    fn silences_are_late_before_they_are_missed() {
        let judged = |seconds: f64| {
            let mut summary = Summary::default();
            let silence = Duration::from_secs_f64(seconds);
            summary.silence(silence, Duration::from_secs(15), Duration::from_secs(1));
            (summary.late, summary.missed)
        };
        assert_eq!(judged(15.9), (0, 0));
        assert_eq!(judged(16.1), (1, 0));
        assert_eq!(judged(31.1), (1, 1));
        assert_eq!(judged(61.1), (1, 3));
    }

    #[test]
    fn shares_add_up() {
        let mut all = Summary::default();
        for milliseconds in [3, 1, 3] {
            let mut share = Summary::default();
            share.opened(Duration::from_millis(milliseconds));
            share.dropped("gone");
            all.add(share);
        }
        assert_eq!(all.opening_ms, [(1, 1), (3, 2)]);
        assert_eq!((all.failed(), all.example.as_deref()), (3, Some("gone")));
        let opening = histogram(&all.opening_ms);
        assert_eq!(opening.len(), 3);
        assert!((2_990_000..=3_010_000).contains(&opening.max()));
    }
}
