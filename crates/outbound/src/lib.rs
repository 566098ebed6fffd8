//! HTTP clients for servers behind URLs, OpenAPI services, and authorization servers.
//!
//! The operator chooses targets in the configuration. A target from elsewhere (a document's `servers`, an issuer's
//! metadata) must have a public address or one of `outbound.allow`, because it could be a server that Shoal reaches and
//! its callers do not. Shoal connects to the checked address
//! ([why](../../../docs/adr/0041-targets-that-others-name-are-public.md)).
//!
//! | file | part |
//! |---|---|
//! | `config` | settings |
//! | `address` | kinds of addresses |
//! | `rules` | allowed addresses |
//! | `resolver` | checked name resolution |
//! | `client` | the only constructor of clients |
//! | `redirect` | followed redirects |
//! | `body` | bounded bodies |

mod address;
mod body;
mod client;
mod config;
mod error;
mod redirect;
mod resolver;
mod rules;

pub use self::body::{Broken, collect};
pub use self::client::{Client, ClientSettings, Identity, Named, Outbound};
pub use self::config::OutboundConfig;
pub use self::error::whole_story;
pub use self::redirect::{MOST_REDIRECTS, Redirects};
pub use self::resolver::{Looked, Lookup};

#[cfg(test)]
mod tests;
