use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::time::{sleep, sleep_until, timeout};

use super::call::{Caller, Echo};
use super::mix::{Kind, Mix};
use super::pacer::Pacer;
use super::stage::Stages;
use super::tally::{Tally, Times};
use crate::connection::Goodbye;
use crate::failure::Failure;
use crate::mcp::Mode;
use crate::mcp::client::Client;
use crate::target::Target;

const PAUSE: Duration = Duration::from_millis(50);

const FORMS: &str = r#"{"elicitation":{"form":{}}}"#;

pub(super) struct Common {
    pub(super) targets: Vec<Target>,
    pub(super) mode: Mode,
    pub(super) mix: Mix,
    pub(super) echo: Echo,
    pub(super) timeout: Duration,
    pub(super) seed: u64,
    pub(super) tally: Tally,
}

impl Common {
    pub(super) async fn open(&self, number: usize) -> Result<Caller, Failure> {
        let target = &self.targets[number % self.targets.len()];
        let asks = self.mix.kinds().any(|kind| kind == Kind::Elicitation);
        let able = if asks { FORMS } else { "{}" };
        let opening = Client::open_with(None, target, self.mode, Goodbye::Finish, able);
        let client = self.in_time(opening).await?;
        Ok(Caller::new(client, number))
    }

    pub(super) async fn in_time<T>(
        &self,
        step: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        timeout(self.timeout, step).await.unwrap_or_else(|_| {
            let limit = self.timeout.as_secs_f64();
            Err(Failure::Transport(format!("nothing within {limit} s")))
        })
    }
}

pub(super) struct Session {
    pub(super) number: usize,
    pub(super) common: Arc<Common>,
    /// `None` before the session joins, and after a failure until the next call.
    pub(super) caller: Option<Caller>,
    pub(super) stages: Arc<Stages>,
    /// `None` in a closed loop.
    pub(super) pacer: Option<Arc<Pacer>>,
}

impl Session {
    pub(super) async fn run(mut self) {
        let seed = self.common.seed.wrapping_add(self.number as u64);
        let mut chance = StdRng::seed_from_u64(seed);
        while let Some(due) = self.turn().await {
            let Some(stage) = self.stages.at(due) else {
                return;
            };
            let (place, kind) = self.common.mix.pick(chance.random());
            let sent = Instant::now();
            let waited = match stage {
                0 => Duration::ZERO,
                _ => sent.saturating_duration_since(due),
            };
            let sessions = self.stages.all[stage].sessions;
            self.common.tally.sent(waited, sessions);
            let made = self.call(kind).await;
            let times = Times {
                due: if self.pacer.is_some() { due } else { sent },
                sent,
                answered: Instant::now(),
            };
            self.common.tally.ended(place, stage, times, made.is_err());
            if let Err(failure) = made {
                self.common.tally.failed(&kind.to_string(), &failure);
                self.caller = None;
                sleep(PAUSE).await;
            }
        }
    }

    /// Returns the call's due time. `None` at the end of the run.
    async fn turn(&self) -> Option<Instant> {
        let now = Instant::now();
        let joins = self.stages.joins(self.number, now)?;
        if joins > now {
            sleep_until(joins.into()).await;
        }
        match &self.pacer {
            Some(pacer) => pacer.next().await,
            None => Some(Instant::now()),
        }
    }

    async fn call(&mut self, kind: Kind) -> Result<(), Failure> {
        if self.caller.is_none() {
            self.caller = Some(self.common.open(self.number).await?);
        }
        let caller = self.caller.as_mut().expect("opened above");
        let call = caller.call(kind, &self.common.echo);
        self.common.in_time(call).await
    }
}
