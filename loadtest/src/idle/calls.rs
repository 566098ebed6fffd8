use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use hdrhistogram::Histogram;
use http::HeaderValue;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::summary::new_histogram;
use crate::connection::Goodbye;
use crate::failure::Failure;
use crate::mcp::Mode;
use crate::mcp::answer::check_text;
use crate::mcp::client::Client;
use crate::target::Target;

const CALL_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Counted {
    pub(super) latency: Histogram<u64>,
    pub(super) wrong: u64,
    pub(super) failed: u64,
    pub(super) example: Option<String>,
}

pub(super) struct Calls {
    callers: JoinSet<()>,
    stop: watch::Sender<bool>,
    counted: Arc<Mutex<Counted>>,
}

impl Calls {
    /// Together, the callers make `rate` calls per second.
    pub(super) async fn start(
        urls: &[String],
        mode: Mode,
        callers: usize,
        rate: u32,
    ) -> anyhow::Result<Self> {
        let mut clients = Vec::with_capacity(callers);
        for number in 0..callers {
            let target = Target::resolve(&urls[number % urls.len()]).await?;
            let client = Client::open(&target, mode, Goodbye::Finish).await;
            clients.push((
                client.context("could not open a session for calls")?,
                target,
            ));
        }
        let (stop, stopped) = watch::channel(false);
        let counted = Arc::new(Mutex::new(Counted {
            latency: new_histogram(),
            wrong: 0,
            failed: 0,
            example: None,
        }));
        let every = Duration::from_secs(1) * u32::try_from(callers).unwrap_or(u32::MAX) / rate;
        let began = Instant::now();
        let mut running = JoinSet::new();
        for (number, (client, target)) in clients.into_iter().enumerate() {
            let caller = Caller {
                number,
                client: Some(client),
                target,
                mode,
                counted: Arc::clone(&counted),
            };
            let share = u32::try_from(number).unwrap_or(u32::MAX);
            let first = began + Duration::from_secs(1) * share / rate;
            running.spawn(caller.run(first, every, stopped.clone()));
        }
        Ok(Self {
            callers: running,
            stop,
            counted,
        })
    }

    pub(super) async fn stop(mut self) -> Counted {
        let _ = self.stop.send(true);
        while self.callers.join_next().await.is_some() {}
        let counted = Arc::try_unwrap(self.counted).expect("all callers have ended");
        counted.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Caller {
    number: usize,
    client: Option<Client>,
    target: Target,
    mode: Mode,
    counted: Arc<Mutex<Counted>>,
}

impl Caller {
    /// If a slow answer delays the next call, that call's latency counts from its due time.
    async fn run(mut self, first: Instant, every: Duration, mut stopped: watch::Receiver<bool>) {
        let mut due = first;
        for call in 0_u64.. {
            let waited = Instant::now() < due;
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => return,
                () = sleep_until(due) => {}
            }
            // Timers are up to a millisecond late, which is not the server's fault.
            let began = if waited { Instant::now() } else { due };
            let outcome = timeout(CALL_TIMEOUT, self.call(call)).await;
            let outcome = outcome
                .unwrap_or_else(|_| Err(Failure::Transport("the call took too long".to_owned())));
            if outcome.is_err() {
                self.client = None;
            }
            self.count(outcome, began.elapsed());
            due += every;
        }
    }

    async fn call(&mut self, call: u64) -> Result<(), Failure> {
        let client = match &mut self.client {
            Some(client) => client,
            none => none.insert(Client::open(&self.target, self.mode, Goodbye::Finish).await?),
        };
        let text = format!("{call:x}.{:x}", self.number);
        let params = format!(r#""name":"echo","arguments":{{"text":"{text}"}}"#);
        let tool = HeaderValue::from_static("echo");
        client
            .request("tools/call", Some(&tool), &params, |result| {
                check_text(result, &text)
            })
            .await
    }

    fn count(&self, outcome: Result<(), Failure>, took: Duration) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Ok(()) => {
                let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
                counted.latency.saturating_record(nanoseconds);
            }
            Err(failure) => {
                if failure.is_wrong_answer() {
                    counted.wrong += 1;
                } else {
                    counted.failed += 1;
                }
                counted.example.get_or_insert_with(|| failure.to_string());
            }
        }
    }
}
