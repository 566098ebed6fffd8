use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Value};
use shoal_ports::{Backoff, StoreError};
use shoal_telemetry::metrics::metrics;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::config::RedisConfig;
use crate::dial::Dialler;
use crate::error::{Damage, judge};
use crate::link::RedisLink;
use crate::measure::LATE;
use crate::meter::Meter;
use crate::outage::Outage;
use crate::scripts::Script;
use crate::suspicion::Suspicion;

/// The connection for commands, which a task renews. After a loss, commands wait for the first attempt to reconnect. If
/// that fails, commands fail at once until there is a connection.
pub(crate) struct Connections {
    shared: Arc<ConnectionsInner>,
    _keeper: AbortOnDropHandle<()>,
}

struct ConnectionsInner {
    dialler: Arc<Dialler>,
    meter: Meter,
    room: Semaphore,
    most: usize,
    state: watch::Sender<ConnectionState>,
    broken: Notify,
    suspicion: Suspicion,
    response_timeout: Duration,
    backoff: Backoff,
}

#[derive(Clone)]
enum ConnectionState {
    Up { link: RedisLink, number: u64 },
    Dialling,
    Down(Arc<str>),
}

/// A connection that lived this long is replaced without a pause.
const LASTING: Duration = Duration::from_secs(1);

const CONNECTING: &str = "connecting to Redis";

impl Connections {
    /// Call within a runtime.
    pub(crate) fn new(
        config: &RedisConfig,
        dialler: Arc<Dialler>,
        link: RedisLink,
        suspicion: Suspicion,
    ) -> Self {
        let shared = Arc::new(ConnectionsInner {
            dialler,
            meter: Meter::default(),
            room: Semaphore::new(config.redis.commands),
            most: config.redis.commands,
            state: watch::Sender::new(ConnectionState::Up { link, number: 0 }),
            broken: Notify::new(),
            suspicion,
            response_timeout: config.redis.response_timeout.get(),
            backoff: config.backoff(),
        });
        let keeper = tokio::spawn(shared.clone().keep());
        Self {
            shared,
            _keeper: AbortOnDropHandle::new(keeper),
        }
    }

    /// Fails with `Full` if Redis is full, `Away` if the command was not sent, or `Unavailable` if the script may have
    /// run.
    pub(crate) async fn run(
        &self,
        script: &Arc<Script>,
        key: &str,
        command: Cmd,
    ) -> Result<Value, StoreError> {
        self.shared.ask(key, command, Some(script.clone())).await
    }

    /// Fails as [`Connections::run`] does.
    pub(crate) async fn ask(&self, key: &str, command: Cmd) -> Result<Value, StoreError> {
        self.shared.ask(key, command, None).await
    }

    pub(crate) fn meter(&self) -> &Meter {
        &self.shared.meter
    }

    pub(crate) fn outage(&self) -> Option<String> {
        match &*self.shared.state.borrow() {
            ConnectionState::Up { .. } => None,
            ConnectionState::Dialling => Some(CONNECTING.to_owned()),
            ConnectionState::Down(why) => Some(why.to_string()),
        }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.shared.most - self.shared.room.available_permits()
    }
}

impl ConnectionsInner {
    async fn ask(
        &self,
        key: &str,
        command: Cmd,
        script: Option<Arc<Script>>,
    ) -> Result<Value, StoreError> {
        let Ok(_room) = self.room.try_acquire() else {
            return Err(StoreError::Away(
                "too many commands wait for Redis".to_owned(),
            ));
        };
        let (mut link, number) = self.link().await?;
        let asked = Instant::now();
        let exchange = link.ask(Some(key), command, script);
        let reply = timeout(self.response_timeout, exchange).await;
        match reply {
            Ok(Ok(reply)) => {
                self.meter.answered(asked.elapsed());
                Ok(reply)
            }
            Ok(Err(error)) => {
                self.meter.failed();
                let failure = judge(&error, link.is_cluster());
                let before = asked.checked_sub(self.response_timeout).unwrap_or(asked);
                let broken = match failure.connection {
                    Damage::None => false,
                    Damage::Suspect => link.silent_since(before),
                    Damage::Broken => true,
                };
                if broken {
                    self.leave(number);
                }
                Err(failure.error)
            }
            Err(_) => {
                self.meter.failed();
                // A slow server still answers other commands. A silent server is gone.
                if link.silent_since(asked) {
                    self.leave(number);
                }
                Err(StoreError::Unavailable(LATE.to_owned()))
            }
        }
    }

    async fn link(&self) -> Result<(RedisLink, u64), StoreError> {
        if let ConnectionState::Up { link, number } = &*self.state.borrow() {
            return Ok((link.clone(), *number));
        }
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| !matches!(state, ConnectionState::Dialling));
        let why = match timeout(self.response_timeout, settled).await {
            Ok(Ok(state)) => match &*state {
                ConnectionState::Up { link, number } => return Ok((link.clone(), *number)),
                ConnectionState::Down(why) => why.to_string(),
                ConnectionState::Dialling => CONNECTING.to_owned(),
            },
            _ => CONNECTING.to_owned(),
        };
        Err(StoreError::Away(why))
    }

    fn leave(&self, broken: u64) {
        let left = self.state.send_if_modified(|state| match state {
            ConnectionState::Up { link, number } if *number == broken => {
                *state = if link.age() < LASTING {
                    ConnectionState::Down("the connection broke at once".into())
                } else {
                    ConnectionState::Dialling
                };
                true
            }
            _ => false,
        });
        if left {
            self.broken.notify_one();
        }
    }

    async fn keep(self: Arc<Self>) {
        let mut backoff = self.backoff.clone();
        let mut outage = Outage::new(self.dialler.place());
        let mut number = 0;
        loop {
            tokio::select! {
                () = self.broken.notified() => {}
                () = self.suspicion.0.notified() => {
                    // `ask` reports a failure itself.
                    let _ = self.ask("", redis::cmd("PING"), None).await;
                    continue;
                }
            }
            outage.failed("the connection is broken");
            if matches!(*self.state.borrow(), ConnectionState::Down(_)) {
                sleep(backoff.pause()).await;
            } else {
                backoff.reset();
            }
            let link = loop {
                match self.dialler.dial().await {
                    Ok(link) => break link,
                    Err(why) => {
                        outage.failed(&why);
                        self.state.send_replace(ConnectionState::Down(why.into()));
                        sleep(backoff.pause()).await;
                    }
                }
            };
            number += 1;
            self.meter.reconnected();
            metrics().store.reconnected();
            outage.over();
            self.state
                .send_replace(ConnectionState::Up { link, number });
        }
    }
}
