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
pub(crate) use resolved::{ResolvedIntrospection, ResolvedIssuer};

settings! {
    /// How Shoal authenticates callers.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Auth {
        /// How Shoal identifies callers.
        pub mode: AuthMode = AuthMode::None,
        /// Bearer tokens. To rotate one, add a token with the same `name`.
        pub tokens: Vec<Token> = Vec::new(),
        /// TOML file with more `[[tokens]]`, read again on change. Shoal ignores unusable changes.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tokens_file: Option<PathBuf> = None,
        /// Allows `mode = "none"` beyond loopback. Everyone who reaches the address can then call every tool.
        pub allow_anonymous: bool = false,
        /// URL of your server for OAuth clients. Tokens must name it as audience, unless their issuer has its own
        /// `audience`.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub resource: String = String::new(),
        /// Authorization servers for `mode = "oauth"`.
        pub issuers: Vec<Issuer> = Vec::new(),
        /// Scopes that every request needs; else Shoal answers `403`.
        pub required_scopes: Vec<String> = Vec::new(),
        /// Scopes that Shoal tells clients; by default `required_scopes`.
        pub scopes_supported: Vec<String> = Vec::new(),
        /// Further scopes that calls need, by the tool's name.
        pub tool_scopes: BTreeMap<String, Vec<String>> = BTreeMap::new(),
        /// Scopes that broad scopes include, such as `{ admin = ["files:write"] }`.
        pub implied_scopes: BTreeMap<String, Vec<String>> = BTreeMap::new(),
        /// Tokens bound to a client's key (DPoP).
        pub dpop: Dpop = Dpop::Off,
        /// Maximum bytes of remembered [DPoP proofs](bound-tokens.md), about 24 bytes each.
        pub dpop_bytes: usize = 64 << 20,
        /// Tolerated clock difference to authorization servers and clients.
        pub clock_skew: Period = Period::seconds(60),
        /// How often Shoal fetches the issuers' keys. A token with an unknown key causes an early fetch.
        pub keys_refresh: Period = Period::seconds(15 * 60),
        /// Minimum time between early fetches from one issuer.
        pub keys_interval: Period = Period::seconds(30),
        /// How long Shoal uses the old keys of an unreachable issuer.
        pub keys_stale: Period = Period::seconds(24 * 3600),
        /// Time limit of an authorization server's answer.
        pub request_timeout: Period = Period::seconds(10),
        /// Maximum bytes of tokens' cached claims.
        pub cached_bytes: usize = 32 << 20,
        /// How long Shoal trusts a verified token, even if it is revoked.
        pub cached_for: Period = Period::seconds(60),
        /// Maximum bytes of an access token.
        pub token_bytes: usize = 16 << 10,
    }
}

/// How Shoal identifies callers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuthMode {
    /// All callers are one principal. Needs loopback or `allow_anonymous`.
    #[default]
    None,
    /// By your bearer tokens.
    Tokens,
    /// By access tokens of the `issuers`.
    OAuth,
}

/// A bearer token.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with name and sha256")]
pub struct Token {
    /// Principal. `shoal-console` and `anonymous` are reserved.
    pub name: String,
    /// Hexadecimal SHA-256 of the token, from `shoal config hash-token`.
    pub sha256: TokenHash,
}

/// Whether tokens may or must be bound to a key of their client (DPoP, RFC 9449).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dpop {
    /// Shoal refuses them.
    #[default]
    Off,
    /// They need a proof.
    Accepted,
    /// Shoal accepts only these.
    Required,
}
