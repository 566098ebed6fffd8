mod arguments;
mod churn;
mod listener;
mod probe;
mod slow;
mod summary;

use anyhow::Context;

pub(crate) use arguments::Load;
use churn::Churn;
use listener::Listener;
use slow::SlowReader;

use crate::engine::mix::Kind;
use crate::engine::{Engine, Shared};
use crate::outcome::Outcome;

impl Load {
    pub(crate) async fn run(&self) -> anyhow::Result<Outcome> {
        self.check()?;
        let outcome = Outcome::begin("load", summary::title(self));
        let shared = Shared::new(self.plan().await?)?;
        probe::check(&shared, &self.more_kinds()).await?;
        let callers = shared.open_all().await?;
        let most = shared.plan.sessions.most().round() as usize;
        let mut listeners = Vec::with_capacity(self.listeners);
        for number in 0..self.listeners {
            let opened = Listener::open(&shared, most + number).await;
            listeners.push(opened.with_context(|| format!("could not open listener {number}"))?);
        }

        let mut engine = Engine::begin(&shared, callers);
        let mut next = most + self.listeners;
        for _ in 0..self.slow_readers {
            let reader = SlowReader::new(next, &engine);
            engine.running.spawn(reader.run());
            next += 1;
        }
        let calls = self.churn_calls;
        let churn = self
            .churn
            .map(|rate| Churn::start(&mut engine, rate.most(), calls, next));

        let seen = engine.watch().await?;
        engine.finish().await;
        if !listeners.is_empty() && shared.has(Kind::Update) {
            listener::expect_updates(&listeners, &shared, next).await;
        }
        let updates = listener::updates(&listeners);
        let run = summary::Run {
            options: self,
            engine: &engine,
            seen,
            churn: churn.as_deref(),
            updates,
        };
        Ok(run.into_outcome(outcome))
    }
}
