//! The worker runtime and its backends: bounded actor pools that run tools, resources and prompts.

mod backend;

pub use backend::{Backend, BackendState, CallContext};
