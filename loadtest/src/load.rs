mod arguments;
mod churn;
mod probe;
mod slow;
mod summary;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::time::Instant;

pub(crate) use arguments::Load;
use churn::Churn;
use slow::SlowReader;

use crate::engine::mix::Kind;
use crate::engine::{Engine, Shared};
use crate::failure::Failure;
use crate::mcp::listener::{Listener, untold};
use crate::mcp::tools::{COUNTER, increment};
use crate::outcome::Outcome;

const TOLD_WITHIN: Duration = Duration::from_secs(10);

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
            let opening = listen(&shared, most + number);
            let opened = shared.in_time(opening).await;
            listeners.push(opened.with_context(|| format!("could not open listener {number}"))?);
        }
        let mut engine = Engine::begin(&shared, callers);
        let mut next = most + self.listeners;
        for _ in 0..self.slow_readers {
            let reader = SlowReader::new(next, &engine);
            engine.running.spawn(reader.run());
            next += 1;
        }
        let churn = self.churn.map(|rate| {
            let churn = Churn::new(&engine, self.churn_calls, next);
            engine.running.spawn(Arc::clone(&churn).run(rate.most()));
            churn
        });
        let seen = engine.watch().await?;
        engine.finish().await;
        if !listeners.is_empty() && shared.has(Kind::Update) {
            expect_updates(&listeners, &shared, next).await;
        }
        let updates = listeners.iter().map(Listener::updates).sum();
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

async fn listen(shared: &Arc<Shared>, number: usize) -> Result<Listener, Failure> {
    let client = shared.open(number).await?.client;
    let told = Arc::clone(shared);
    let ended = move |failure| told.tally.failed("a listener's stream", &failure);
    Listener::open(client, shared.has(Kind::Update), ended).await
}

/// Makes a last change, of which all listeners must be told. The mix may have made none.
async fn expect_updates(listeners: &[Listener], shared: &Shared, number: usize) {
    let began = Instant::now();
    let change = async {
        let mut client = shared.open(number).await?.client;
        shared.in_time(increment(&mut client)).await
    };
    if let Err(failure) = change.await {
        return shared.tally.failed("the last change", &failure);
    }
    for _ in 0..untold(listeners, began, TOLD_WITHIN).await {
        let example = format_args!("{COUNTER} changed, and nothing came");
        shared
            .tally
            .findings
            .add("listener not told of a change", example);
    }
}
