//! Each request is a plain gRPC call, because requests are rare and harmless to lose.

mod remote;
mod service;

pub use remote::RemoteInspector;
pub use service::{ConsoleService, serve_inspector};
