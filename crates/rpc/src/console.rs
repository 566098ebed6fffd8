//! What nodes tell one another for the operators' console: any [`Inspector`](shoal_ports::Inspector) served
//! to other nodes, and that of another node as one.
//!
//! Plain calls, not links: they are rare, answered once, and lost without harm.

mod remote;
mod service;

pub use remote::RemoteInspector;
pub use service::{ConsoleService, serve_inspector};
