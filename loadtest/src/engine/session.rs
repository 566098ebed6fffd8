use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::watch;
use tokio::time::sleep;

use super::Shared;
use super::call::Caller;
use super::mix::Kind;
use super::pacer::Pacer;
use super::stage::Stages;
use super::tally::Times;
use crate::failure::Failure;

const PAUSE: Duration = Duration::from_millis(50);

pub(super) struct Session {
    pub(super) number: usize,
    pub(super) shared: Arc<Shared>,
    /// `None` before the session joins, and after a failure until the next call.
    pub(super) caller: Option<Caller>,
    pub(super) stages: Arc<Stages>,
    /// `None` in a closed loop.
    pub(super) pacer: Option<Arc<Pacer>>,
}

impl Session {
    pub(super) async fn run(mut self) {
        let seed = self.shared.plan.seed.wrapping_add(self.number as u64);
        let mut chance = StdRng::seed_from_u64(seed);
        let mut current = self.stages.current.subscribe();
        while let Some((due, stage)) = self.turn(&mut current).await {
            let (place, kind) = self.shared.plan.mix.pick(chance.random());
            let sent = Instant::now();
            let due = due.unwrap_or(sent);
            let shared = Arc::clone(&self.shared);
            let tally = &shared.tally;
            tally.sent(
                sent.saturating_duration_since(due),
                stage,
                self.stages.all[stage].sessions,
            );
            let made = self.call(kind).await;
            tally.back();
            match made {
                Ok(()) => {
                    let answered = Instant::now();
                    let times = Times {
                        due,
                        sent,
                        answered,
                    };
                    tally.ended(place, stage, times);
                }
                Err(failure) => {
                    tally.failed(&kind.to_string(), &failure);
                    self.caller = None;
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Returns when the call was due in an open loop, and its stage. `None` at the end of the run.
    async fn turn(&self, current: &mut watch::Receiver<usize>) -> Option<(Option<Instant>, usize)> {
        let stages = &self.stages.all;
        let joins = |at: &usize| stages.get(*at).is_none_or(|it| it.sessions > self.number);
        let stage = *current.wait_for(joins).await.ok()?;
        match &self.pacer {
            Some(pacer) => {
                let due = pacer.next().await?;
                Some((Some(due), self.stages.at(due)?))
            }
            None => (stage < stages.len()).then_some((None, stage)),
        }
    }

    async fn call(&mut self, kind: Kind) -> Result<(), Failure> {
        if self.caller.is_none() {
            self.caller = Some(self.shared.open(self.number).await?);
        }
        let caller = self.caller.as_mut().expect("opened above");
        let call = caller.call(kind, &self.shared.plan.echo);
        self.shared.in_time(call).await
    }
}
