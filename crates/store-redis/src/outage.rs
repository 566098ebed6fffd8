use std::time::Duration;

use tokio::time::Instant;

const REMINDER: Duration = Duration::from_secs(30);
/// How long Redis must answer before an outage counts as over.
const LASTING: Duration = Duration::from_secs(1);

/// Logs the outages of one store.
#[derive(Debug)]
pub struct Outage {
    place: String,
    present: Option<Present>,
}

/// The current outage, or one that ended a short time ago.
#[derive(Debug)]
struct Present {
    since: Instant,
    told: Instant,
    failures: u64,
    over: Option<Instant>,
}

#[derive(Debug, PartialEq, Eq)]
enum OutageNews {
    Begins,
    Lasts { failures: u64 },
    Nothing,
}

impl Outage {
    /// Makes the log for the store at `place`.
    pub fn new(place: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            present: None,
        }
    }

    /// Notes that an operation failed.
    pub fn failed(&mut self, why: &str) {
        let now = Instant::now();
        match self.failed_at(now) {
            OutageNews::Begins => {
                tracing::warn!(place = %self.place, %why, "Redis is away; retrying")
            }
            OutageNews::Lasts { failures } => {
                let lasts = self.lasted(now);
                tracing::warn!(place = %self.place, %why, failures, ?lasts, "Redis is still away; retrying");
            }
            OutageNews::Nothing => {}
        }
    }

    /// Notes that the store answers again.
    pub fn over(&mut self) {
        let now = Instant::now();
        let lasted = self.lasted(now);
        let Some(present) = &mut self.present else {
            return;
        };
        present.over = Some(now);
        tracing::info!(place = %self.place, ?lasted, "Redis is back");
    }

    fn failed_at(&mut self, now: Instant) -> OutageNews {
        match &mut self.present {
            Some(present) if present.over.is_none_or(|over| now < over + LASTING) => {
                present.over = None;
                present.failures += 1;
                if now < present.told + REMINDER {
                    return OutageNews::Nothing;
                }
                present.told = now;
                OutageNews::Lasts {
                    failures: std::mem::take(&mut present.failures),
                }
            }
            _ => {
                self.present = Some(Present {
                    since: now,
                    told: now,
                    failures: 0,
                    over: None,
                });
                OutageNews::Begins
            }
        }
    }

    fn lasted(&self, now: Instant) -> Duration {
        let since = self.present.as_ref().map_or(now, |present| present.since);
        Duration::from_secs(now.saturating_duration_since(since).as_secs())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, advance};

    use super::{Outage, OutageNews};

    #[tokio::test(start_paused = true)]
    async fn a_long_outage_is_told_of_rarely() {
        let mut outage = Outage::new("there");
        let mut told = Vec::new();
        for _ in 0..=240 {
            told.push(outage.failed_at(Instant::now()));
            advance(Duration::from_millis(500)).await;
        }
        told.retain(|told| *told != OutageNews::Nothing);
        let lasts = || OutageNews::Lasts { failures: 60 };
        assert_eq!(
            told,
            [OutageNews::Begins, lasts(), lasts(), lasts(), lasts()]
        );
        outage.over();
        assert_eq!(
            outage.failed_at(Instant::now()),
            OutageNews::Nothing,
            "it was not back for long"
        );
        outage.over();
        advance(Duration::from_secs(2)).await;
        assert_eq!(
            outage.failed_at(Instant::now()),
            OutageNews::Begins,
            "another one"
        );
    }
}
