//! Clusters, faults and clients for tests.
//!
//! Everything here runs real programs on loopback ports: `shoal` processes, a `redis-server`, proxies
//! between them that can be cut. What is started ends with the value that holds it.

pub mod admin;
pub mod chaos;
pub mod check;
pub mod client;
pub mod clock;
pub mod cluster;
pub mod dialers;
pub mod directory;
pub mod fault_proxy;
pub mod free_port;
pub mod history;
pub mod http;
pub mod limits;
pub mod process;
pub mod programs;
pub mod redis;
pub mod redis_cluster;
pub mod redis_sentinel;
pub mod roll;
pub mod round_robin;
pub mod service;
