//! Sections of the configuration that more than one role reads.

mod calls;
mod catalog;
mod cluster;
pub mod kubernetes;
mod limits;
mod session;
mod streams;
mod tasks;

pub use calls::CallSettings;
pub use catalog::{CacheScope, CatalogSettings, ServerInfo};
pub use cluster::{ClusterSettings, ClusterTls, NEWEST_PROTOCOL};
pub use limits::NodeLimits;
pub use session::SessionSettings;
pub use streams::StreamSettings;
pub use tasks::TaskSettings;
