//! Authentication of callers: none, static bearer tokens, or OAuth 2.1.
//!
//! | file | what it holds |
//! |---|---|
//! | `config.rs`, `config/` | what an operator can say, and what does not go together |
//! | `tokens.rs`, `token_hash.rs`, `tokens_file.rs` | static tokens, by their hashes, and a file of them that may change |
//! | [`OAuth`] (`oauth.rs`) | access tokens of authorization servers; the order of the checks |
//! | `oauth/jws.rs`, `oauth/keys.rs`, `oauth/claims.rs` | a token taken apart, the keys of an issuer, and what a token must say |
//! | `oauth/key_source.rs`, `oauth/metadata.rs`, `oauth/http.rs` | where the keys come from, and how they are kept |
//! | `oauth/introspection.rs`, `oauth/flights.rs` | asking the issuer about a token, once for all who show it |
//! | `oauth/recheck.rs` | asking again while a stream is open |
//! | `oauth/dpop.rs`, `oauth/replays.rs` | proofs that a caller has the key that its token is bound to |
//! | `oauth/scopes.rs`, `oauth/resource.rs` | which scopes a request needs; what callers are told |
//! | `oauth/cache.rs` | tokens that were verified |
//! | `refused.rs` | what the log says of callers who are refused |
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
