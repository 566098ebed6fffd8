//! Access tokens of an authorization server on loopback.
#![allow(clippy::unwrap_used, reason = "a failed test is the report")]

#[path = "oauth/certificate.rs"]
mod certificate;
#[path = "oauth/discovery.rs"]
mod discovery;
#[path = "oauth/dpop.rs"]
mod dpop;
#[path = "oauth/introspection.rs"]
mod introspection;
#[path = "oauth/issuers/mod.rs"]
mod issuers;
#[path = "oauth/keys.rs"]
mod keys;
#[path = "oauth/setting.rs"]
mod setting;
#[path = "oauth/tokens.rs"]
mod tokens;
#[path = "oauth/watches.rs"]
mod watches;
