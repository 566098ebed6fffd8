//! An open loop: calls begin at fixed times, however long earlier ones take.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::connection::Goodbye;
use crate::failure::Failure;
use crate::mcp::Mode;
use crate::mcp::client::Client;
use crate::target::Target;

/// Starts `work` `rate` times a second, with the time at which it was due. Returns the results when all work has ended.
pub(crate) async fn spread<F>(
    rate: f64,
    time: Duration,
    work: impl Fn(Instant) -> F,
) -> Vec<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let every = Duration::from_secs_f64(1.0 / rate);
    let (mut running, mut ended, mut due) = (JoinSet::new(), Vec::new(), Instant::now());
    let until = due + time;
    while due < until {
        sleep_until(due).await;
        running.spawn(work(due));
        while let Some(done) = running.try_join_next() {
            ended.extend(done);
        }
        due += every;
    }
    while let Some(done) = running.join_next().await {
        ended.extend(done);
    }
    ended
}

/// Clients of one endpoint, opened on demand, each for one call at a time.
pub(crate) struct Pool {
    target: Target,
    mode: Mode,
    idle: Mutex<Vec<Client>>,
}

impl Pool {
    pub(crate) fn new(target: Target, mode: Mode) -> Self {
        let idle = Mutex::default();
        Self { target, mode, idle }
    }

    /// Calls with an idle client, or a new one.
    pub(crate) async fn call<T>(
        &self,
        patience: Duration,
        call: impl AsyncFnOnce(&mut Client) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let calling = async {
            let idle = self.idle().pop();
            let mut client = match idle {
                Some(client) => client,
                None => Client::open(&self.target, self.mode, Goodbye::Reset).await?,
            };
            let called = call(&mut client).await;
            self.idle().push(client);
            called
        };
        let late = |_| Failure::transport("a call", "no answer in time");
        timeout(patience, calling).await.map_err(late).flatten()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Client>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
