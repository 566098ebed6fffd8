//! Both links over real sockets, between scripted workers and gateways.
#![expect(clippy::unwrap_used, reason = "a failed test is the report")]

mod bulk;
mod calls;
mod fleet;
mod gateway;
mod hostile;
mod proxy;
mod rejoin;
mod scripted_gateway;
mod scripted_worker;
mod setting;
mod streams;
mod versions;
