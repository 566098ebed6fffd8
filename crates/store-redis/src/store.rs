//! The store as a whole: connecting, handing it out, telling how it is.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use redis::{Cmd, Value};
use shoal_ports::{LogError, NodeId, Store, StoreError};
use shoal_telemetry::metrics::{Registration, metrics};
use tokio::time::timeout;

use crate::bus::RedisBus;
use crate::config::RedisConfig;
use crate::connections::{Connections, Suspicion};
use crate::dial::Dialler;
use crate::error::ConnectError;
use crate::hello::warn_of_eviction;
use crate::keys::{Keys, is_prefix};
use crate::meter::Latency;
use crate::reply::{Parts, step};
use crate::scripts::{RoomScript, Script, Scripts};

/// All storage ports, kept in one Redis. Clones share its connections.
#[derive(Clone)]
pub struct RedisStore {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) connections: Connections,
    pub(crate) bus: RedisBus,
    pub(crate) keys: Keys,
    pub(crate) scripts: Scripts,
    /// Redis' answers about the leases renewed here: when each began, and how often it was contested.
    pub(crate) leases: Mutex<HashMap<NodeId, Bytes>>,
    place: String,
}

/// How the store is, for the status page.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct RedisStatus {
    /// Which servers, without user and password.
    pub place: String,
    /// Whether there is a connection for commands.
    pub connected: bool,
    /// Why not, if there is none.
    pub outage: Option<String>,
    /// Whether news comes in.
    pub news: bool,
    /// Commands that wait for their reply now.
    pub in_flight: usize,
    /// Commands that were sent.
    pub commands: u64,
    /// Commands that failed or got no reply in time.
    pub failures: u64,
    /// Connections that were made after one broke.
    pub reconnects: u64,
    /// How long replies took.
    pub latency: Latency,
}

impl RedisStore {
    /// Connects for commands and for news. Must be called in a Tokio runtime with its timer and I/O; its
    /// tasks end with the last clone of the store.
    ///
    /// Takes at most twice the connect time-out and once the response time-out. Cancellation safe: nothing is left behind.
    ///
    /// # Errors
    /// [`ConnectError::Config`] if it can never work; [`ConnectError::Unreachable`] if it may later.
    pub async fn connect(config: RedisConfig) -> Result<Self, ConnectError> {
        if !is_prefix(&config.key_prefix) {
            let wrong = "the key prefix must not be empty, nor contain { or }";
            return Err(ConnectError::Config(wrong.to_owned()));
        }
        if config.max_in_flight == 0 || config.events_per_stream == 0 {
            let wrong = "Redis needs room for one command, and a stream for one event";
            return Err(ConnectError::Config(wrong.to_owned()));
        }
        let dialler = Arc::new(Dialler::new(&config)?);
        let place = dialler.place();
        let unreachable = |why| ConnectError::Unreachable(format!("{place}: {why}"));
        let keys = Keys::new(&config.key_prefix);
        let mut link = dialler.dial().await.map_err(unreachable)?;
        let news = dialler.dial_news(&keys.news(), 0).await;
        let news = news.map_err(unreachable)?;
        let _ = timeout(config.response_timeout, warn_of_eviction(&mut link)).await;
        let suspicion = Suspicion::default();
        let inner = Inner {
            connections: Connections::new(&config, dialler.clone(), link, suspicion.clone()),
            bus: RedisBus::new(&config, dialler, keys.news(), news, suspicion),
            scripts: Scripts::new(&config),
            keys,
            leases: Mutex::default(),
            place,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// The store behind all seams.
    pub fn into_store(self) -> Store {
        let store = Arc::new(self);
        Store {
            directory: store.clone(),
            log: store.clone(),
            journal: store.clone(),
            membership: store.clone(),
            bus: store,
        }
    }

    /// Has the connection looked at whenever metrics are collected, until the registrations are dropped.
    pub fn observe(&self) -> [Registration; 2] {
        let store = &metrics().store;
        let inner = Arc::downgrade(&self.inner);
        let connected = store.observe_connected(move || {
            let inner = inner.upgrade();
            inner.is_some_and(|inner| inner.connections.outage().is_none())
        });
        let inner = Arc::downgrade(&self.inner);
        let in_flight = store.observe_in_flight(move || {
            let waiting = inner.upgrade().map(|inner| inner.connections.in_flight());
            u64::try_from(waiting.unwrap_or_default()).unwrap_or(u64::MAX)
        });
        [connected, in_flight]
    }

    /// How the store is now. Asks nobody.
    pub fn status(&self) -> RedisStatus {
        let connections = &self.inner.connections;
        let meter = connections.meter();
        let outage = connections.outage();
        RedisStatus {
            place: self.inner.place.clone(),
            connected: outage.is_none(),
            outage,
            news: self.inner.bus.is_listening(),
            in_flight: connections.in_flight(),
            commands: meter.commands(),
            failures: meter.failures(),
            reconnects: meter.reconnects(),
            latency: meter.latency(),
        }
    }
}

impl Inner {
    /// Runs a script on a key, with what `args` adds to it.
    pub(crate) async fn run(
        &self,
        script: &Arc<Script>,
        key: &str,
        args: impl FnOnce(&mut Cmd),
    ) -> Result<Value, StoreError> {
        let mut command = script.on(key);
        args(&mut command);
        self.connections.run(script, key, command).await
    }

    /// Runs a step that needs room in its session's log. Where there is none, and where it is `due`, the session's accounts are
    /// settled first.
    pub(crate) async fn run_with_room(
        &self,
        script: &RoomScript,
        key: &str,
        due: bool,
        args: impl Fn(&mut Cmd),
    ) -> Result<Parts, LogError> {
        if !due {
            match step(self.run(&script.plain, key, &args).await?) {
                Err(LogError::Store(StoreError::Full(_))) => {}
                done => return done,
            }
        }
        step(self.run(&script.settled, key, &args).await?)
    }

    /// Some fields of a hash.
    pub(crate) async fn fields(&self, key: &str, fields: &[&str]) -> Result<Value, StoreError> {
        let mut command = redis::cmd("HMGET");
        command.arg(key).arg(fields);
        self.connections.ask(key, command).await
    }
}

/// Milliseconds as Redis takes them: at least one.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis())
        .unwrap_or(u64::MAX)
        .clamp(1, 1 << 40)
}
