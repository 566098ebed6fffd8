use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::call::{Call, unfinished};
use super::chance::Chance;
use super::session::Session;
use super::standalone;
use super::tally::Tally;
use crate::failure::Failure;
use crate::mcp::Mode;
use crate::mcp::client::Client;
use crate::target::Target;

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

const BROKEN_PAUSE: Duration = Duration::from_millis(500);

pub(super) struct Life {
    pub(super) number: usize,
    pub(super) targets: Arc<[Target]>,
    pub(super) tally: Arc<Tally>,
    pub(super) chance: Chance,
    pub(super) until: Instant,
    pub(super) has_counter: bool,
}

/// Reports the client as unfinished if it is dropped at the end of the run.
pub(super) struct Unfinished {
    number: usize,
    tally: Arc<Tally>,
    finished: bool,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.finished {
            self.tally.found(self.number, [unfinished()]);
        }
    }
}

impl Life {
    pub(super) async fn run(mut self) {
        let mut unfinished = Unfinished {
            number: self.number,
            tally: Arc::clone(&self.tally),
            finished: false,
        };
        while Instant::now() < self.until {
            if let Err(failure) = self.session().await {
                self.tally.broken(self.number, &failure);
                tokio::time::sleep(BROKEN_PAUSE).await;
            }
        }
        unfinished.finished = true;
    }

    async fn session(&mut self) -> Result<(), Failure> {
        let target = self.chance.pick(&self.targets).clone();
        let opening = Client::open(&target, Mode::Legacy, self.chance.goodbye());
        let mut client = in_time(opening).await?;
        self.tally.count(|counts| counts.sessions += 1);
        let wire = client
            .session()
            .cloned()
            .expect("a legacy client has a session");
        let session = Session::new(
            self.number,
            wire,
            Arc::clone(&self.targets),
            Arc::clone(&self.tally),
        );
        let standalone = if self.has_counter && self.chance.holds_standalone_stream() {
            let chance = self.chance.split();
            Some(in_time(standalone::hold(&session, &mut client, chance)).await?)
        } else {
            None
        };
        for _ in 0..self.chance.session_calls() {
            if Instant::now() >= self.until {
                break;
            }
            if standalone.is_some() {
                Call::increment(&session, &mut client, &mut self.chance).await?;
            }
            Call::long_job(&session, &mut client, &mut self.chance).await?;
        }
        drop(standalone);
        in_time(client.end()).await
    }
}

async fn in_time<T>(step: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    timeout(HANDSHAKE_TIMEOUT, step)
        .await
        .unwrap_or_else(|_| Err(Failure::Transport("the handshake took too long".to_owned())))
}
