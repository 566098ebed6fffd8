//! Serves an [`Inspector`](shoal_ports::Inspector) to other nodes for the operators' console, and
//! reads theirs. Plain gRPC calls suffice, because they are rare and harmless to lose.

mod remote;
mod service;

pub use remote::RemoteInspector;
pub use service::{ConsoleService, serve_inspector};
