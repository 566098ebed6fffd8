//! The worker runtime and its backends: bounded actor pools that run tools, resources and prompts.

mod backend;
#[cfg(fuzzing)]
pub mod fuzz;
mod http;
mod http_client;
mod openapi;
mod rmcp_backend;
mod runtime;
mod stdio;
mod upstream;

pub use self::http::{HttpBackend, HttpConfig, HttpIsolation};
pub use self::http_client::{
    CallersWithoutToken, ClientAuthentication, ClientCredentialsConfig, HttpTls,
    TokenExchangeConfig,
};
pub use backend::{Backend, BackendState, CallContext};
pub use openapi::{
    CredentialConfig, DeepLists, DocumentPreview, OpenApiBackend, OpenApiConfig, ToolChoice,
};
pub use rmcp_backend::{CallerSession, RequestContextExt, RmcpBackend};
pub use runtime::{PoolConfig, WorkerRuntime};
pub use shoal_ports::SessionState;
pub use stdio::{Isolation, StdioBackend, StdioConfig};
pub use upstream::{EraChoice, Line, Lines};
