//! Both kinds of links over real sockets, between scripted workers and gateways.
#![expect(clippy::unwrap_used, reason = "a failed test is the report")]

mod away;
mod backlog;
mod bulk;
mod calls;
mod console;
mod fleet;
mod gateway;
mod generated;
mod goodbye;
mod hostile;
mod lengths;
mod probe;
mod proxy;
mod raw;
mod raw_node;
mod record;
mod rejoin;
mod scripted_gateway;
mod scripted_worker;
mod setting;
mod sight;
mod steering;
mod storm;
mod streams;
mod tasks;
mod tls;
mod unreachable;
mod versions;
mod wire;
