//! The worker runtime and its backends: bounded actor pools that run tools, resources and prompts.

mod backend;
mod rmcp_backend;
mod runtime;
mod stdio;

pub use backend::{Backend, BackendState, CallContext};
pub use rmcp_backend::RmcpBackend;
pub use runtime::{PoolConfig, WorkerRuntime};
pub use shoal_ports::SessionState;
pub use stdio::{EraChoice, Isolation, Line, Lines, StdioBackend, StdioConfig};
