//! Authentication of callers: none, static bearer tokens, or OAuth 2.1.
//!
//! | file | content |
//! |---|---|
//! | `config.rs`, `config/` | the settings, and checks that they fit together |
//! | `tokens.rs`, `token_hash.rs`, `tokens_file.rs` | static tokens, by their hashes, and a watched file of them |
//! | [`OAuth`] (`oauth.rs`) | access tokens of authorization servers; the order of the checks |
//! | `oauth/jws.rs`, `oauth/keys.rs`, `oauth/claims.rs` | parsing a token, an issuer's keys, and the required claims |
//! | `oauth/key_source.rs`, `oauth/metadata.rs`, `oauth/http.rs` | fetching and caching the keys |
//! | `oauth/introspection.rs`, `oauth/flights.rs` | asking the issuer about a token, once for all concurrent requests |
//! | `oauth/recheck.rs` | checking again while a stream is open |
//! | `oauth/dpop.rs`, `oauth/replays.rs` | proofs that a caller has the key of its token |
//! | `oauth/scopes.rs`, `oauth/resource.rs` | required scopes; metadata and challenges for callers |
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
