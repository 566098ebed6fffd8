//! Authentication of callers: none, static bearer tokens, or OAuth 2.1.
//!
//! | file | content |
//! |---|---|
//! | `config.rs`, `config/` | the settings, and checks that they fit together |
//! | `tokens.rs`, `token_hash.rs`, `tokens_file.rs` | static tokens, by their hashes; a watched file of them |
//! | [`OAuth`] (`oauth.rs`) | access tokens; the order of the checks |
//! | `oauth/jws.rs`, `oauth/keys.rs`, `oauth/claims.rs` | a token's form, an issuer's keys, the required claims |
//! | `oauth/key_source.rs`, `oauth/metadata.rs`, `oauth/http.rs` | fetching and caching the keys |
//! | `oauth/introspection.rs`, `oauth/flights.rs` | asking the issuer, once for concurrent requests |
//! | `oauth/recheck.rs` | checks while a stream is open |
//! | `oauth/dpop.rs`, `oauth/replays.rs` | proofs that a caller has its token's key |
//! | `oauth/scopes.rs`, `oauth/resource.rs` | required scopes; metadata and challenges |
//! | `oauth/cache.rs` | verified tokens |
//! | `refused.rs` | log lines about refused callers |
//! | `fixture.rs` | an authorization server for tests |

pub mod config;
#[cfg(feature = "fixture")]
pub mod fixture;
mod oauth;
mod refused;
mod token_hash;
mod tokens;
mod tokens_file;

#[cfg(fuzzing)]
pub use oauth::fuzz;
pub use oauth::{IssuerReport, OAuth};
pub use token_hash::TokenHash;
pub use tokens::{NoAuthentication, StaticTokens};
