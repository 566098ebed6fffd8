//! `[[auth.issuers]]`: an authorization server.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::settings;

settings! {
    /// An authorization server. `issuer_kind` chooses what other settings are unless they are set
    /// ([issuers](issuers.md#what-issuer_kind-sets)).
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table with issuer")]
    pub struct Issuer {
        /// The product or service that issues the tokens.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub issuer_kind: Option<IssuerKind> = None,
        /// Its issuer identifier, as its tokens have it in `iss`. With `issuer_kind = "entra"` it may name several tenants by `common`,
        /// `organizations` or `{tenantid}`, with `tenants`.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub issuer: String = String::new(),
        /// The ids of the tenants whose tokens are taken, where `issuer` names several.
        pub tenants: Vec<String> = Vec::new(),
        /// Other names of the issuer that its tokens may have in `iss`. `{tenantid}` stands for the tenant.
        pub aliases: Vec<String> = Vec::new(),
        /// Audiences, one of which a token must name; `auth.resource` unless set.
        pub audience: Vec<String> = Vec::new(),
        /// The claims that say for whom a token is: `aud` unless set. The first one that a token has counts. `client_id`, `azp`,
        /// `cid` and `appid` say who got the token, so they need `clients`; where a token has `aud` too, that must name one of `audience`
        /// or `clients`.
        pub audience_claims: Vec<String> = Vec::new(),
        /// The clients whose tokens are taken, by their ids in `client_id`, `azp`, `cid` or `appid`; those of all clients unless set.
        pub clients: Vec<String> = Vec::new(),
        /// The URL of its keys. Unless set, they are found by the issuer's metadata (RFC 8414, OpenID Connect Discovery).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub jwks_url: Option<String> = None,
        /// The algorithms that its tokens may be signed with.
        pub algorithms: Vec<SigningAlgorithm> = vec![SigningAlgorithm::RS256, SigningAlgorithm::ES256],
        /// The claims that name the principal: `sub` unless set. The first one that a token has counts. A principal that is named by
        /// another than the first is `CLAIM:VALUE`. A dot leads into a claim that is an object.
        pub principal_claims: Vec<String> = Vec::new(),
        /// The claims that hold scopes: `scope` and `scp` unless set. All of them count, as texts with spaces or as lists. A dot leads
        /// into a claim that is an object, such as `realm_access.roles`.
        pub scope_claims: Vec<String> = Vec::new(),
        /// Values that other claims must have, by the claim: one of the listed texts. For example `{ hd = ["example.com"] }`.
        pub required_claims: BTreeMap<String, Vec<String>> = BTreeMap::new(),
        /// A file with certificates in PEM of authorities that are trusted besides the system's.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub authority: Option<PathBuf> = None,
        /// Lets the issuer be asked over plain HTTP on other machines: whoever is on the way can then make tokens.
        pub allow_http: bool = false,
        /// Ask the issuer about tokens instead of verifying them here: a table with `client_id` and `client_secret_file`, by which
        /// Shoal says who it is, and `endpoint`, unless that is found by the issuer's metadata. `tokens` says which tokens: `all` unless
        /// set, `jwt`, or `opaque` for those that are no JWT. One issuer at most can be asked about the latter. `protocol` is `rfc7662`
        /// unless set, or `tokeninfo` for Google's, which needs no client.
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
        /// The URL to ask. Unless set, it is found by the issuer's metadata.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub endpoint: Option<String> = None,
        /// Shoal's name there, as a client.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub client_id: String = String::new(),
        /// A file with its secret, which is sent by `Authorization: Basic`. It is read for each question.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub client_secret_file: Option<PathBuf> = None,
        /// How the URL is asked; `rfc7662` unless set.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub protocol: Option<Protocol> = None,
        /// The tokens that the issuer is asked about; `all` unless set. Others are verified here.
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
    /// Google's token information, which needs no client.
    TokenInfo,
}

/// The tokens that an issuer is asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AskedTokens {
    /// All of its tokens.
    #[default]
    All,
    /// Its JWTs.
    Jwt,
    /// Tokens that are no JWT.
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
