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
mod resolved;

pub use check::BadSetting;
pub(crate) use check::{asked_url, public_url};
pub(crate) use identifier::{canonical, same};
pub use issuer::{AskedTokens, Introspection, Issuer, IssuerKind, Protocol, SigningAlgorithm};
pub(crate) use kinds::CLIENT_CLAIMS;
pub(crate) use resolved::{Asked, ResolvedIssuer};

settings! {
    /// Who may call.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Auth {
        /// How callers are told apart.
        pub mode: AuthMode = AuthMode::None,
        /// The bearer tokens of `mode = "tokens"`. Several may name the same principal, to change a token
        /// without a gap.
        pub tokens: Vec<Token> = Vec::new(),
        /// A TOML file with more of them, as `[[tokens]]`. It is read again when it changes, without a restart. A file that
        /// cannot be read changes nothing, and is logged.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tokens_file: Option<PathBuf> = None,
        /// Lets `mode = "none"` serve an address that other machines can reach: everybody who reaches it
        /// may call every tool.
        pub allow_anonymous: bool = false,
        /// With `mode = "oauth"`: the URL by which clients know this server, such as `https://mcp.example.com/mcp`. Tokens
        /// must be issued for it.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub resource: String = String::new(),
        /// The authorization servers whose access tokens are taken by `mode = "oauth"`.
        pub issuers: Vec<Issuer> = Vec::new(),
        /// The scopes that every request needs. A token without one of them is answered with `403`.
        pub required_scopes: Vec<String> = Vec::new(),
        /// The scopes that clients are told of; those of `required_scopes` unless set.
        pub scopes_supported: Vec<String> = Vec::new(),
        /// The scopes that calls of a tool need besides, by the tool's name, in which `*` stands for any characters.
        pub tool_scopes: BTreeMap<String, Vec<String>> = BTreeMap::new(),
        /// The scopes that a broader one implies, by the broader one's name.
        pub implied_scopes: BTreeMap<String, Vec<String>> = BTreeMap::new(),
        /// Whether tokens may or must be bound to a key of their client (DPoP).
        pub dpop: Dpop = Dpop::Off,
        /// Bytes by which an edge remembers proofs (DPoP) at most, so that each is good once. A proof takes about 24, for three minutes
        /// with the default `clock_skew`. A principal may hold a quarter of what is free.
        pub dpop_bytes: usize = 64 << 20,
        /// How far this machine's clock may be from those of authorization servers and clients.
        pub clock_skew: Period = Period::seconds(60),
        /// How often an issuer's keys are fetched again. A key that is not known has them fetched sooner.
        pub keys_refresh: Period = Period::seconds(15 * 60),
        /// How long lies at least between two fetches that unknown keys cause.
        pub keys_interval: Period = Period::seconds(30),
        /// How long keys are used while their issuer cannot be reached.
        pub keys_stale: Period = Period::seconds(24 * 3600),
        /// How long an authorization server may take to answer.
        pub request_timeout: Period = Period::seconds(10),
        /// Bytes of verified tokens' claims that are remembered at most.
        pub cached_bytes: usize = 32 << 20,
        /// How long a verified token is believed, if it does not expire before. A key that its issuer withdraws, and a token that
        /// it revokes, works for so long.
        pub cached_for: Period = Period::seconds(60),
        /// The longest access token, in bytes.
        pub token_bytes: usize = 16 << 10,
    }
}

/// How callers are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuthMode {
    /// Not at all: everybody is the same principal. Only for loopback addresses.
    #[default]
    None,
    /// By the bearer tokens in `auth.tokens` and `auth.tokens_file`.
    Tokens,
    /// By access tokens of the authorization servers in `auth.issuers`.
    OAuth,
}

/// A bearer token.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with name and sha256")]
pub struct Token {
    /// The principal that the token stands for. `shoal-console` and `anonymous` are reserved.
    pub name: String,
    /// SHA-256 of the token, in hexadecimal; `shoal config hash-token` prints it.
    pub sha256: TokenHash,
}

/// Whether tokens may or must be bound to a key of their client (DPoP, RFC 9449).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dpop {
    /// Bound tokens are refused.
    #[default]
    Off,
    /// A bound token needs a proof; others do not.
    Accepted,
    /// Only bound tokens are taken.
    Required,
}
