use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use redis::{Cmd, Value};
use shoal_ports::{LogError, NodeId, Store, StoreError};
use shoal_telemetry::metrics::{Registration, metrics};
use tokio::time::timeout;

use crate::bus::RedisBus;
use crate::config::RedisConfig;
use crate::connections::Connections;
use crate::dial::Dialler;
use crate::error::ConnectError;
use crate::hello::warn_of_eviction;
use crate::keys::{Keys, is_prefix};
use crate::meter::Latency;
use crate::reply::{ReplyParts, step};
use crate::scripts::{RoomScript, Script, Scripts};
use crate::suspicion::Suspicion;

/// All storage ports in one Redis. Clones share its connections.
#[derive(Clone)]
pub struct RedisStore {
    pub(crate) inner: Arc<RedisStoreInner>,
}

pub(crate) struct RedisStoreInner {
    pub(crate) connections: Connections,
    pub(crate) bus: RedisBus,
    pub(crate) keys: Keys,
    pub(crate) scripts: Scripts,
    /// When each lease that this node renews began, and how often it was contested.
    pub(crate) leases: Mutex<HashMap<NodeId, Bytes>>,
    place: String,
}

/// The store's status.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct RedisStatus {
    /// The addresses of the servers, without user and password.
    pub place: String,
    /// Whether the connection for commands is open.
    pub connected: bool,
    /// Why the connection for commands is down.
    pub outage: Option<String>,
    /// Whether the cluster bus receives events.
    pub news: bool,
    /// Commands that wait for replies.
    pub in_flight: usize,
    /// Commands sent.
    pub commands: u64,
    /// Commands that failed or timed out.
    pub failures: u64,
    /// Connections made after a loss.
    pub reconnects: u64,
    /// How long replies took.
    pub latency: Latency,
}

impl RedisStore {
    /// Connects to Redis. Call within a Tokio runtime with timer and I/O. The store's tasks end when its last clone is
    /// dropped.
    ///
    /// Takes at most two connect time-outs and one response time-out. Cancellation safe.
    ///
    /// # Errors
    /// [`ConnectError::Config`] if the settings are wrong; [`ConnectError::Unreachable`] if retrying may help.
    pub async fn connect(config: RedisConfig) -> Result<Self, ConnectError> {
        if !is_prefix(&config.redis.prefix) {
            let wrong = "the key prefix must not be empty, nor contain { or }";
            return Err(ConnectError::Config(wrong.to_owned()));
        }
        if config.redis.commands == 0 || config.streams.events_per_stream == 0 {
            let wrong = "Redis needs room for one command, and a stream for one event";
            return Err(ConnectError::Config(wrong.to_owned()));
        }
        let dialler = Arc::new(Dialler::new(&config)?);
        let place = dialler.place();
        let unreachable = |why| ConnectError::Unreachable(format!("{place}: {why}"));
        let keys = Keys::new(&config.redis.prefix);
        let response_timeout = config.redis.response_timeout.get();
        let mut link = dialler.dial().await.map_err(unreachable)?;
        let news = dialler.dial_news(&keys.news(), 0).await;
        let news = news.map_err(unreachable)?;
        let _ = timeout(response_timeout, warn_of_eviction(&mut link)).await;
        let suspicion = Suspicion::default();
        let inner = RedisStoreInner {
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

    /// Returns the store as the implementation of all storage ports.
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

    /// Reports the store's metrics until the registrations are dropped.
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

    /// Returns the status without asking Redis.
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

impl RedisStoreInner {
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

    /// Settles the accounts of stored bytes first, if `due` or if the store is full.
    pub(crate) async fn run_with_room(
        &self,
        script: &RoomScript,
        key: &str,
        due: bool,
        args: impl Fn(&mut Cmd),
    ) -> Result<ReplyParts, LogError> {
        if !due {
            match step(self.run(&script.plain, key, &args).await?) {
                Err(LogError::Store(StoreError::Full(_))) => {}
                done => return done,
            }
        }
        step(self.run(&script.settled, key, &args).await?)
    }

    pub(crate) async fn fields(&self, key: &str, fields: &[&str]) -> Result<Value, StoreError> {
        let mut command = redis::cmd("HMGET");
        command.arg(key).arg(fields);
        self.connections.ask(key, command).await
    }
}
