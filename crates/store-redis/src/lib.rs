//! The storage ports of `shoal-ports` kept in Redis, so that sessions outlive nodes.
//!
//! Every step of a session is one script on the keys of that session (`src/lua`), in one round trip; the
//! session's epoch fences each of them. Redis 7.0 or newer, or Valkey: one server, a Redis Cluster, or
//! masters that Sentinel names; with TLS and ACL users.
//!
//! Start reading at `store.rs`, then `lua/common.lua`.

mod access;
mod bus;
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
mod outage;
mod quota;
mod reply;
mod scripts;
mod store;
mod target;

pub use config::{Password, RedisConfig, SentinelConfig, TlsConfig};
pub use error::ConnectError;
pub use meter::Latency;
pub use outage::Outage;
pub use store::{RedisStatus, RedisStore};

/// Checks how a store is to be reached, without connecting.
///
/// # Errors
/// A description of what is wrong with the URL, or contradicts it. It never contains the password.
pub fn check(config: &RedisConfig) -> Result<(), String> {
    let target = target::Target::parse(&config.url)?;
    access::Credentials::new(&target, config).map(drop)
}

/// Reads the passwords and certificates of a store, without connecting.
///
/// # Errors
/// As [`check`], and the file that cannot be used.
pub fn open_files(config: &RedisConfig) -> Result<(), String> {
    let target = target::Target::parse(&config.url)?;
    let credentials = access::Credentials::new(&target, config)?;
    credentials.read(&target).map(drop)
}
