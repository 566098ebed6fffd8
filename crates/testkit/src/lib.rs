//! Clusters, faults and clients for tests.
//!
//! Real programs run on loopback ports: `shoal`, `redis-server`, and proxies between them. A
//! program ends when its value is dropped.

pub mod admin;
mod arguments;
pub mod chaos;
pub mod check;
pub mod client;
pub mod clock;
pub mod cluster;
pub mod dialers;
pub mod directory;
mod endpoints;
pub mod fault_proxy;
pub mod free_port;
pub mod history;
pub mod http;
pub mod limits;
pub mod load;
pub mod process;
pub mod programs;
pub mod redis;
pub mod redis_cluster;
pub mod redis_sentinel;
mod relay;
pub mod roll;
pub mod round_robin;
pub mod service;
mod wait;
