//! The storage ports of `shoal-ports` in Redis, so that sessions outlive nodes.
//!
//! Every step of a session is one script on its keys (`src/lua`), fenced by the session's epoch. Requires Redis 7.0 or
//! Valkey: one server, a Redis Cluster, or masters behind Sentinel.
//!
//! Start reading at `store.rs`, then `lua/common.lua`.

mod access;
mod bus;
mod cluster_bus;
mod config;
mod connections;
mod dial;
mod directory;
mod error;
mod event_log;
#[cfg(fuzzing)]
pub mod fuzz;
mod hello;
mod journal;
mod keys;
mod link;
mod lists;
mod measure;
mod membership;
mod meter;
mod millis;
mod outage;
mod quota;
mod reply;
mod scripts;
mod store;
mod suspicion;
mod target;

pub use config::{RedisConfig, RedisSettings, RedisTls, Sentinel};
pub use error::ConnectError;
pub use meter::Latency;
pub use outage::Outage;
pub use store::{RedisStatus, RedisStore};

/// Checks a configuration without connecting.
///
/// # Errors
/// The fault, described without the password.
pub fn check(config: &RedisConfig) -> Result<(), String> {
    let target = target::RedisTarget::parse(&config.url)?;
    access::RedisCredentials::new(&target, config).map(drop)
}

/// Reads the files with passwords and certificates, without connecting.
///
/// # Errors
/// As for [`check`], or a file that cannot be used.
pub fn open_files(config: &RedisConfig) -> Result<(), String> {
    let target = target::RedisTarget::parse(&config.url)?;
    let credentials = access::RedisCredentials::new(&target, config)?;
    credentials.read(&target).map(drop)
}
