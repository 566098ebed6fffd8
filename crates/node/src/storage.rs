//! Where sessions, streams and journals are kept: in the process, or in Redis.

use std::sync::Arc;

use anyhow::Context as _;
use shoal_ports::memory::{MemoryLimits, MemoryQuotas, MemoryStore};
use shoal_ports::{QuotaCells, Store};
use shoal_store_redis::{ConnectError, RedisConfig, RedisStore};
use shoal_telemetry::metrics::Registration;

use crate::admin::{StoreHealth, StoreReport};
use crate::config::{MEMORY, Settings};
use crate::starting::Starting;

/// What people call a store that is away.
pub(crate) const REDIS: &str = "Redis";

/// The store that the settings name.
#[derive(Clone)]
pub(crate) enum Storage {
    /// Embedded.
    Memory(MemoryStore),
    /// Shared with other processes.
    Redis(RedisStore),
}

impl Storage {
    /// Opens the store; waits for a Redis that cannot be reached.
    ///
    /// # Errors
    /// When its URL cannot be used.
    pub(crate) async fn open(settings: &Settings, starting: &Starting) -> anyhow::Result<Self> {
        let streams = &settings.streams;
        if settings.node.store.is_memory() {
            return Ok(Self::Memory(MemoryStore::new(MemoryLimits {
                events_per_stream: streams.events_per_stream,
                bytes_per_session: streams.bytes_per_session,
                bytes: streams.bytes,
                retention: streams.retention.get(),
            })));
        }
        let config = settings.redis.store(&settings.node.store, streams);
        connect(config, starting).await.map(Self::Redis)
    }

    /// The store behind all seams.
    pub(crate) fn store(&self) -> Store {
        match self {
            Self::Memory(memory) => memory.clone().into_store(),
            Self::Redis(redis) => redis.clone().into_store(),
        }
    }

    /// Where quotas are counted.
    pub(crate) fn quota_cells(&self) -> Arc<dyn QuotaCells> {
        match self {
            Self::Memory(_) => Arc::new(MemoryQuotas::default()),
            Self::Redis(redis) => Arc::new(redis.clone()),
        }
    }

    /// Whether the store serves this node, whose last heartbeat it refused for the reason `unwritten`, if it did.
    pub(crate) fn health(&self, unwritten: Option<String>) -> StoreHealth {
        let (kind, trouble) = match self {
            Self::Memory(_) => (MEMORY, None),
            Self::Redis(redis) => {
                let away = redis
                    .status()
                    .outage
                    .map(|why| format!("Redis is away: {why}"));
                let refusing = unwritten.map(|why| format!("Redis takes no writes: {why}"));
                ("redis", away.or(refusing))
            }
        };
        StoreHealth { kind, trouble }
    }

    /// Has the store looked at whenever metrics are collected, until the registrations are dropped.
    pub(crate) fn observe(&self) -> Vec<Registration> {
        match self {
            Self::Memory(_) => Vec::new(),
            Self::Redis(redis) => redis.observe().into(),
        }
    }

    /// How the store is.
    pub(crate) fn report(&self, health: StoreHealth) -> StoreReport {
        match self {
            Self::Memory(memory) => StoreReport {
                health,
                event_bytes: Some(memory.event_bytes()),
                redis: None,
            },
            Self::Redis(redis) => StoreReport {
                health,
                event_bytes: None,
                redis: Some(redis.status()),
            },
        }
    }
}

async fn connect(config: RedisConfig, starting: &Starting) -> anyhow::Result<RedisStore> {
    loop {
        match RedisStore::connect(config.clone()).await {
            Err(ConnectError::Unreachable(why)) => starting.wait_for(REDIS, &why).await,
            connected => return connected.context("cannot open the store (node.store)"),
        }
    }
}
