//! `[auth]`: who may call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_edge::TokenHash;

/// Who may call.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Auth {
    /// How callers are told apart.
    pub mode: AuthMode,
    /// The bearer tokens of `mode = "tokens"`. Several may name the same principal, to change a token
    /// without a gap.
    pub tokens: Vec<Token>,
    /// Lets `mode = "none"` serve an address that other machines can reach: everybody who reaches it
    /// may call every tool.
    pub allow_anonymous: bool,
}

/// How callers are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuthMode {
    /// Not at all: everybody is the same principal. Only for loopback addresses.
    #[default]
    None,
    /// By the bearer tokens in `auth.tokens`.
    Tokens,
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
