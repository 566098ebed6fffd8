//! The HTTP clients that Shoal calls others with: servers behind URLs, services with an OpenAPI document, authorization servers.
//!
//! A target that the configuration names is the operator's choice. One that somebody else names (a document's `servers`, the
//! metadata of an issuer) could be anything that Shoal reaches and its clients do not. So such a target must be a public address, or one of
//! `outbound.allow`. The address that was checked is the one that is connected to
//! ([why](../../../docs/adr/0041-targets-that-others-name-are-public.md)).
//!
//! | file | its part |
//! |---|---|
//! | `config` | what an operator can say |
//! | `address` | what kind of address one is |
//! | `network` | a network, as `allow` names it |
//! | `rules` | which addresses may be reached |
//! | `resolver` | names become addresses that may be reached |
//! | `client` | the one constructor of clients |
//! | `redirect` | which redirects are followed |
//! | `body` | reading an answer, bounded |

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
