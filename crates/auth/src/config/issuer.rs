//! `[[auth.issuers]]`: an authorization server.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::settings;

settings! {
    /// An authorization server. `issuer_kind` sets [defaults](issuers.md#what-issuer_kind-sets).
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table with issuer")]
    pub struct Issuer {
        /// Product that issues the tokens.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub issuer_kind: Option<IssuerKind> = None,
        /// Issuer identifier (`iss`). For several Entra tenants, write `common`, `organizations` or `{tenantid}`, and
        /// set `tenants`.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub issuer: String = String::new(),
        /// Accepted Entra tenant ids.
        pub tenants: Vec<String> = Vec::new(),
        /// Other accepted values of `iss`; `{tenantid}` stands for the tenant's id.
        pub aliases: Vec<String> = Vec::new(),
        /// Accepted audiences, of which a token must name one; by default `auth.resource`.
        pub audience: Vec<String> = Vec::new(),
        /// Claims that may hold the audience, by default `aud`; Shoal uses the first that the token has. If you list
        /// `client_id`, `azp`, `cid` or `appid`, also set `clients`.
        /// If the token has `aud`, it must still name one of `audience` or `clients`.
        pub audience_claims: Vec<String> = Vec::new(),
        /// Accepted clients (`client_id`, `azp`, `cid` or `appid`); by default all.
        pub clients: Vec<String> = Vec::new(),
        /// URL of the issuer's keys; by default from the issuer's metadata.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub jwks_url: Option<String> = None,
        /// Accepted signature algorithms.
        pub algorithms: Vec<SigningAlgorithm> = vec![SigningAlgorithm::RS256, SigningAlgorithm::ES256],
        /// Claims that may name the principal, by default `sub`; Shoal uses the first that the token has. A claim other
        /// than the first in your list gives the principal `CLAIM:VALUE`. A dot leads into an object.
        pub principal_claims: Vec<String> = Vec::new(),
        /// Claims that hold scopes (text or list), by default `scope` and `scp`; all count. A dot leads into an object,
        /// such as `realm_access.roles`.
        pub scope_claims: Vec<String> = Vec::new(),
        /// Claims that tokens need, each with its allowed values, such as `{ hd = ["example.com"] }`.
        pub required_claims: BTreeMap<String, Vec<String>> = BTreeMap::new(),
        /// PEM file: further trusted authorities.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub authority: Option<PathBuf> = None,
        /// Allows plain HTTP to another machine's issuer (loopback always may). Attackers on the network can then forge
        /// tokens.
        pub allow_http: bool = false,
        /// Asks the issuer about tokens instead of checking them locally.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub introspection: Option<Introspection> = None,
    }
}

/// The product or service that issues tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IssuerKind {
    /// Microsoft Entra ID.
    Entra,
    /// Okta.
    Okta,
    /// Auth0.
    Auth0,
    /// Keycloak.
    Keycloak,
    /// Amazon Cognito.
    Cognito,
    /// Google.
    Google,
}

settings! {
    /// How an issuer is asked about tokens (RFC 7662).
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table with client_id")]
    pub struct Introspection {
        /// URL for introspection; by default from the issuer's metadata.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub endpoint: Option<String> = None,
        /// Client id of Shoal at the issuer.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub client_id: String = String::new(),
        /// File with the client secret for `Authorization: Basic`, read for each request.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub client_secret_file: Option<PathBuf> = None,
        /// Protocol; by default `rfc7662`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub protocol: Option<Protocol> = None,
        /// Tokens that Shoal asks about, by default `all`. Only one issuer may have `all` or `opaque`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tokens: Option<AskedTokens> = None,
    }
}

/// How an issuer is asked about a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// OAuth 2.0 Token Introspection.
    #[default]
    Rfc7662,
    /// Google's, which needs no `client_id`.
    TokenInfo,
}

/// The tokens that an issuer is asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AskedTokens {
    /// All tokens.
    #[default]
    All,
    /// JWTs.
    Jwt,
    /// Other tokens.
    Opaque,
}

/// An algorithm by which tokens are signed. All are asymmetric: whoever checks a signature cannot make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "their names say it all (RFC 7518, RFC 8037)")]
pub enum SigningAlgorithm {
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    EdDSA,
}

impl SigningAlgorithm {
    pub(crate) const ALL: [Self; 9] = [
        Self::RS256,
        Self::RS384,
        Self::RS512,
        Self::PS256,
        Self::PS384,
        Self::PS512,
        Self::ES256,
        Self::ES384,
        Self::EdDSA,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::RS256 => "RS256",
            Self::RS384 => "RS384",
            Self::RS512 => "RS512",
            Self::PS256 => "PS256",
            Self::PS384 => "PS384",
            Self::PS512 => "PS512",
            Self::ES256 => "ES256",
            Self::ES384 => "ES384",
            Self::EdDSA => "EdDSA",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }
}
