//! `[auth]`: authentication settings.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::{Period, settings};

use crate::TokenHash;

mod check;
mod entra;
mod identifier;
mod issuer;
mod kinds;
mod resolve;
mod resolved;

pub use check::BadSetting;
pub(crate) use check::{asked_url, public_url};
pub(crate) use identifier::{canonical, same};
pub use issuer::{AskedTokens, Introspection, Issuer, IssuerKind, Protocol, SigningAlgorithm};
pub(crate) use kinds::CLIENT_CLAIMS;
pub(crate) use resolved::{Asked, ResolvedIssuer};

settings! {
    /// How Shoal authenticates callers.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Auth {
        /// How Shoal identifies callers.
        pub mode: AuthMode = AuthMode::None,
        /// Bearer tokens. Two tokens may name one principal, so that you can rotate them.
        pub tokens: Vec<Token> = Vec::new(),
        /// TOML file with more `[[tokens]]`, read again on change. If the file is unreadable, the old tokens stay.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tokens_file: Option<PathBuf> = None,
        /// Allows `mode = "none"` beyond loopback. Everyone who reaches the address can then call every tool.
        pub allow_anonymous: bool = false,
        /// URL of your server for OAuth clients. Tokens must name it, unless their issuer has its own `audience`.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub resource: String = String::new(),
        /// Authorization servers for `mode = "oauth"`.
        pub issuers: Vec<Issuer> = Vec::new(),
        /// Scopes that every request needs. Without them, Shoal answers `403`.
        pub required_scopes: Vec<String> = Vec::new(),
        /// Scopes that Shoal tells clients; by default `required_scopes`.
        pub scopes_supported: Vec<String> = Vec::new(),
        /// Further scopes that calls of a tool need, by the tool's name.
        pub tool_scopes: BTreeMap<String, Vec<String>> = BTreeMap::new(),
        /// For each broad scope, the scopes that it includes, such as `{ admin = ["files:write"] }`.
        pub implied_scopes: BTreeMap<String, Vec<String>> = BTreeMap::new(),
        /// Whether tokens may be bound to a client's key (DPoP).
        pub dpop: Dpop = Dpop::Off,
        /// Maximum bytes of remembered DPoP proofs (about 24 each, for three minutes). Each principal may use up to a
        /// quarter of the bytes that are still free.
        pub dpop_bytes: usize = 64 << 20,
        /// Tolerated clock difference to authorization servers and clients.
        pub clock_skew: Period = Period::seconds(60),
        /// How often Shoal fetches the issuers' keys. A token with an unknown key causes an early fetch.
        pub keys_refresh: Period = Period::seconds(15 * 60),
        /// Minimum time between two early fetches of an issuer's keys.
        pub keys_interval: Period = Period::seconds(30),
        /// How long Shoal uses an issuer's old keys while the issuer is unreachable.
        pub keys_stale: Period = Period::seconds(24 * 3600),
        /// Maximum time for an authorization server's answer.
        pub request_timeout: Period = Period::seconds(10),
        /// Maximum bytes of the cached claims of tokens.
        pub cached_bytes: usize = 32 << 20,
        /// How long Shoal trusts a verified token. A revoked token or key still works for this time.
        pub cached_for: Period = Period::seconds(60),
        /// Maximum bytes of an access token.
        pub token_bytes: usize = 16 << 10,
    }
}

/// How Shoal identifies callers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuthMode {
    /// All callers are one principal, only on loopback or with `allow_anonymous`.
    #[default]
    None,
    /// Callers send one of your bearer tokens.
    Tokens,
    /// Callers send access tokens of the `issuers`.
    OAuth,
}

/// A bearer token.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with name and sha256")]
pub struct Token {
    /// Principal that the token identifies. `shoal-console` and `anonymous` are reserved.
    pub name: String,
    /// Hexadecimal SHA-256 of the token, from `shoal config hash-token`.
    pub sha256: TokenHash,
}

/// Whether tokens may or must be bound to a key of their client (DPoP, RFC 9449).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dpop {
    /// Shoal refuses bound tokens.
    #[default]
    Off,
    /// Bound tokens need a proof.
    Accepted,
    /// Shoal accepts only bound tokens.
    Required,
}
