//! The HTTP clients for servers behind URLs, services with an OpenAPI document, and authorization servers.
//!
//! The operator chooses the targets in the configuration. A target that comes from elsewhere (a document's `servers`, an
//! issuer's metadata) could be anything that Shoal reaches and its callers do not, so it must have a public address or one of
//! `outbound.allow`. Shoal connects to the address that was checked
//! ([why](../../../docs/adr/0041-targets-that-others-name-are-public.md)).
//!
//! | file | its part |
//! |---|---|
//! | `config` | the settings |
//! | `address` | kinds of addresses |
//! | `network` | an entry of `allow` |
//! | `rules` | which addresses may be reached |
//! | `resolver` | resolves names and checks their addresses |
//! | `client` | the only constructor of clients |
//! | `redirect` | which redirects are followed |
//! | `body` | reads bodies up to a limit |

mod address;
mod body;
mod client;
mod config;
mod error;
mod network;
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
