use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::{sleep, sleep_until, timeout, timeout_at};

use super::call::{Job, Watch, start};
use super::session::Common;
use crate::connection::Reply;
use crate::failure::Failure;

/// A stream has more steps than the connection's buffers hold.
const STEPS: usize = 10_000;

const PAUSE: Duration = Duration::from_millis(100);

const REST: Duration = Duration::from_secs(60);

pub(super) struct SlowReader {
    pub(super) number: usize,
    pub(super) common: Arc<Common>,
    pub(super) from: Instant,
    pub(super) until: Instant,
}

impl SlowReader {
    pub(super) async fn run(self) {
        sleep_until(self.from.into()).await;
        if let Err(failure) = self.read().await {
            self.common.tally.failed("a slow reader's call", &failure);
        }
    }

    async fn read(&self) -> Result<(), Failure> {
        let mut caller = self.common.open(self.number).await?;
        let (mode, limit) = (self.common.mode, self.common.timeout);
        let starting = async {
            caller.client.narrow().await?;
            start(&mut caller.client, STEPS).await
        };
        let started = timeout(limit, starting).await;
        let Job {
            mut reply,
            mut watch,
        } = started
            .unwrap_or_else(|_| Err(Failure::Transport(format!("no answer ({})", mode.name()))))?;
        let mut whole = Ok(());
        if self.number.is_multiple_of(2) {
            sleep_until(self.until.into()).await;
        } else {
            let slowly = self.slowly(&mut reply, &mut watch);
            if let Ok(ended) = timeout_at(self.until.into(), slowly).await {
                whole = ended;
            }
        }
        if whole.is_ok() {
            whole = timeout(REST, rest(&mut reply, &mut watch))
                .await
                .unwrap_or_else(|_| Err(Failure::Transport("the rest did not come".to_owned())));
        }
        match whole {
            Err(wrong @ Failure::Wrong(_)) => Err(wrong),
            _ if watch.is_answered() => {
                self.common
                    .tally
                    .event("slow readers that got all of their stream");
                watch.finish()
            }
            _ => {
                self.common
                    .tally
                    .event("slow readers that the server cut off");
                watch.finish_cut()
            }
        }
    }

    async fn slowly(&self, reply: &mut Reply, watch: &mut Watch) -> Result<(), Failure> {
        while let Some(event) = reply.next().await? {
            watch.take(&event)?;
            sleep(PAUSE).await;
        }
        Ok(())
    }
}

async fn rest(reply: &mut Reply, watch: &mut Watch) -> Result<(), Failure> {
    while let Some(event) = reply.next().await? {
        watch.take(&event)?;
    }
    Ok(())
}
