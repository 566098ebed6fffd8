use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::tally::{Phase, Tally};
use super::{Call, Plan};
use crate::connection::Goodbye;
use crate::failure::Failure;
use crate::load::call::Caller;
use crate::load::mix::Kind;
use crate::mcp::client::Client;
use crate::mcp::{Mode, legacy, modern};
use crate::target::Target;

const CALL_TIMEOUT: Duration = Duration::from_secs(30);

const RECONNECT_PAUSE: Duration = Duration::from_millis(50);

pub(super) struct Session {
    number: usize,
    target: Target,
    mode: Mode,
    call: Call,
    caller: Option<Caller>,
    tally: Arc<Tally>,
}

/// Fails if a session cannot be opened: the load would be too small.
pub(super) async fn open_all(
    plan: &Plan,
    target: &Target,
    tally: &Arc<Tally>,
) -> anyhow::Result<Vec<Session>> {
    let mut opening = JoinSet::new();
    for number in 0..plan.sessions {
        let mut session = Session {
            number,
            target: target.clone(),
            mode: plan.mode,
            call: plan.call.clone(),
            caller: None,
            tally: Arc::clone(tally),
        };
        opening.spawn(async move {
            session.caller = Some(session.connect().await?);
            Ok::<_, Failure>(session)
        });
    }
    let mut sessions = Vec::with_capacity(plan.sessions);
    while let Some(opened) = opening.join_next().await {
        let session =
            opened?.with_context(|| format!("could not open a session at {}", plan.url))?;
        let client = session.caller.as_ref().map(|caller| &caller.client);
        let wire = client.and_then(Client::session);
        ensure!(
            !(plan.stateless && wire.is_some_and(legacy::Session::has_id)),
            "the server keeps sessions: {}",
            plan.url
        );
        sessions.push(session);
    }
    Ok(sessions)
}

impl Session {
    async fn connect(&self) -> Result<Caller, Failure> {
        let able = match self.call.kind {
            Kind::Task => modern::TASKS,
            _ => "{}",
        };
        let client =
            Client::open_with(None, &self.target, self.mode, Goodbye::Finish, able).await?;
        Ok(Caller::new(client, self.number))
    }

    pub(super) async fn run(mut self) {
        while !self.tally.is_in(Phase::Stop) {
            let measured = self.tally.is_in(Phase::Measure);
            let began = Instant::now();
            let outcome = match timeout(CALL_TIMEOUT, self.call()).await {
                Ok(outcome) => outcome,
                Err(_) => Err(Failure::Transport("the call took too long".to_owned())),
            };
            match outcome {
                Ok(()) => self.tally.answered(measured.then(|| began.elapsed())),
                Err(failure) => {
                    self.tally.refused(&failure);
                    self.caller = None;
                    sleep(RECONNECT_PAUSE).await;
                }
            }
        }
    }

    async fn call(&mut self) -> Result<(), Failure> {
        if self.caller.is_none() {
            self.caller = Some(self.connect().await?);
        }
        let caller = self.caller.as_mut().expect("connected above");
        caller.call(self.call.kind, &self.call.echo).await
    }
}
