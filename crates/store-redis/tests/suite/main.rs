//! Tests the store on real servers: one server, a Redis Cluster, and servers behind Sentinel.
#![allow(clippy::unwrap_used, reason = "a failed step of a test is the report")]

mod acl;
mod bus;
mod claims;
mod cluster;
mod expiry;
mod fixture;
mod forgotten;
mod layout;
mod limits;
mod lists;
mod measures;
mod one_server;
mod outages;
mod quotas;
mod repeated;
mod sentinel;
mod server;
mod tls;
mod together;
