use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::{sleep_until, timeout, timeout_at};

use crate::engine::{Engine, Shared};
use crate::failure::Failure;
use crate::mcp::job::Job;

/// A stream with more events than the connection's buffers hold.
const LONG: Job = Job::burst(10_000);

const PAUSE: Duration = Duration::from_millis(100);

const REST: Duration = Duration::from_secs(60);

pub(super) struct SlowReader {
    number: usize,
    shared: Arc<Shared>,
    from: Instant,
    until: Instant,
}

impl SlowReader {
    /// Returns a reader for the second half of the run.
    pub(super) fn new(number: usize, engine: &Engine) -> Self {
        Self {
            number,
            shared: Arc::clone(&engine.shared),
            from: engine.stages.end_of(1),
            until: engine.stages.end(),
        }
    }

    pub(super) async fn run(self) {
        sleep_until(self.from.into()).await;
        if let Err(failure) = self.read().await {
            self.shared.tally.failed("a slow reader's call", &failure);
        }
    }

    async fn read(&self) -> Result<(), Failure> {
        let mut caller = self.shared.open(self.number).await?;
        let starting = async {
            caller.client.narrow().await?;
            LONG.start(&mut caller.client).await
        };
        let (mut reply, mut watch) = self.shared.in_time(starting).await?;
        // Every second client reads nothing before the end.
        let mut whole = Ok(());
        if self.number.is_multiple_of(2) {
            sleep_until(self.until.into()).await;
        } else if let Ok(ended) = timeout_at(self.until.into(), watch.read(&mut reply, PAUSE)).await
        {
            whole = ended;
        }
        if whole.is_ok() {
            let rest = timeout(REST, watch.read(&mut reply, Duration::ZERO)).await;
            let late = |_| Failure::Transport("the rest did not come".to_owned());
            whole = rest.map_err(late).flatten();
        }
        let tally = &self.shared.tally;
        match whole {
            Err(wrong @ Failure::Wrong(_)) => Err(wrong),
            _ if watch.is_answered() => {
                tally.event("slow readers that got all of their stream");
                watch.finish()
            }
            _ => {
                tally.event("slow readers that the server cut off");
                watch.finish_cut()
            }
        }
    }
}
