use std::sync::Arc;

use anyhow::Context as _;
use shoal_ports::memory::{MemoryQuotas, MemoryStore};
use shoal_ports::{QuotaCells, Store};
use shoal_store_redis::{ConnectError, RedisConfig, RedisStore};
use shoal_telemetry::metrics::Registration;

use crate::admin::{StoreHealth, StoreReport};
use crate::config::{MEMORY, Settings};
use crate::starting::Starting;

pub(crate) const REDIS: &str = "Redis";

#[derive(Clone)]
pub(crate) enum Storage {
    Memory(MemoryStore),
    Redis(RedisStore),
}

impl Storage {
    /// Opens the store. Waits while Redis is unreachable.
    ///
    /// # Errors
    /// If the store cannot be opened for another reason, such as an invalid URL.
    pub(crate) async fn open(settings: &Settings, starting: &Starting) -> anyhow::Result<Self> {
        if settings.node.store.is_memory() {
            return Ok(Self::Memory(MemoryStore::new(settings.streams.clone())));
        }
        connect(settings.redis_store(), starting)
            .await
            .map(Self::Redis)
    }

    pub(crate) fn store(&self) -> Store {
        match self {
            Self::Memory(memory) => memory.clone().into_store(),
            Self::Redis(redis) => redis.clone().into_store(),
        }
    }

    pub(crate) fn quota_cells(&self) -> Arc<dyn QuotaCells> {
        match self {
            Self::Memory(_) => Arc::new(MemoryQuotas::default()),
            Self::Redis(redis) => Arc::new(redis.clone()),
        }
    }

    /// `unwritten` says why the store refused the node's last heartbeat.
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

    /// Exports the store's metrics until the registrations are dropped.
    pub(crate) fn observe(&self) -> Vec<Registration> {
        match self {
            Self::Memory(_) => Vec::new(),
            Self::Redis(redis) => redis.observe().into(),
        }
    }

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
