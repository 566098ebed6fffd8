use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use shoal_protocol::RawJson;
use tokio::time::Instant;

use crate::last_token::digest_of;
use crate::{GrantWatch, Memo, Principal, TokenDigest};

/// Identifies callers by the credentials of HTTP requests. Cancellation safe. Implementations must
/// not log or return credentials.
#[async_trait]
pub trait Authenticator: Send + Sync + 'static {
    /// Identifies the caller.
    async fn authenticate(&self, shown: Credentials<'_>) -> Result<Authenticated, AuthError>;

    /// Returns the method's label in metrics.
    fn method(&self) -> &'static str {
        "bearer"
    }

    /// Fails with [`AuthError::Scope`] and every scope that the request needs, if the grant lacks
    /// one.
    fn authorize(&self, _grant: &Grant, _operation: &Operation<'_>) -> Result<(), AuthError> {
        Ok(())
    }

    /// Watches a token of an open stream. The watch reports [the end](crate::GrantNews::Over) no
    /// later than Shoal would refuse a request with the token.
    fn watch(&self, _token: &[u8], known: &Authenticated) -> GrantWatch {
        GrantWatch::until(known.grant.as_ref().and_then(|grant| grant.until))
    }

    /// Returns the `WWW-Authenticate` headers, one for each scheme.
    fn challenges(&self, why: &AuthError) -> Vec<String> {
        match why {
            AuthError::Missing => vec!["Bearer".to_owned()],
            AuthError::Unavailable { .. } | AuthError::TooManyProofs { .. } => Vec::new(),
            _ => vec![
                r#"Bearer error="invalid_token", error_description="the bearer token is not valid""#
                    .to_owned(),
            ],
        }
    }

    /// Returns the protected resource's metadata (RFC 9728), if any.
    fn resource_metadata(&self) -> Option<ResourceMetadata> {
        None
    }
}

/// The credentials of one request. Not `Debug`, so that logs cannot contain them.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    /// The contents of `Authorization`.
    pub token: Option<(Scheme, &'a [u8])>,
    /// The token's digest, if the connection already knows it.
    pub digest: Option<TokenDigest>,
    /// The proof in the `DPoP` header.
    pub proof: Option<&'a str>,
    /// The client's TLS certificate.
    pub certificate: Option<&'a ClientCertificate>,
    /// The HTTP method.
    pub method: &'a str,
    /// The request's path.
    pub path: &'a str,
    /// The time of arrival, when the token must be valid.
    pub came: Instant,
}

impl<'a> Credentials<'a> {
    /// Makes credentials with only a bearer token.
    pub fn bearer(token: &'a str) -> Self {
        Self {
            token: Some((Scheme::Bearer, token.as_bytes())),
            ..Self::none()
        }
    }

    /// Returns the token's digest.
    pub fn digest(&self, token: &[u8]) -> TokenDigest {
        self.digest.unwrap_or_else(|| digest_of(token))
    }

    /// Makes credentials without a token.
    pub fn none() -> Self {
        Self {
            token: None,
            digest: None,
            proof: None,
            certificate: None,
            method: "POST",
            path: "/mcp",
            came: Instant::now(),
        }
    }
}

/// The SHA-256 of a client's certificate (RFC 8705, 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientCertificate([u8; 32]);

impl ClientCertificate {
    /// Hashes a certificate in DER.
    pub fn of(certificate: &[u8]) -> Self {
        Self(Sha256::digest(certificate).into())
    }

    /// Returns the hash.
    pub fn sha256(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The authentication scheme of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `Authorization: Bearer …` (RFC 6750).
    Bearer,
    /// `Authorization: DPoP …`, with a proof (RFC 9449).
    Dpop,
}

/// An authenticated caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticated {
    /// The caller's name.
    pub principal: Principal,
    /// The grant that the credentials carry.
    pub grant: Option<Arc<Grant>>,
}

impl From<Principal> for Authenticated {
    fn from(principal: Principal) -> Self {
        Self {
            principal,
            grant: None,
        }
    }
}

/// The rights that an authorization server granted with a token.
#[derive(PartialEq, Eq)]
pub struct Grant {
    /// The granted scopes, with the scopes that they imply.
    pub scopes: Box<[Arc<str>]>,
    /// The token's claims, a JSON object of limited length.
    pub claims: RawJson,
    /// The grant's end, by this machine's monotonic clock.
    pub until: Option<Instant>,
    /// The parsed claims, for policy rules.
    pub read: Memo,
}

impl Grant {
    /// Whether the grant includes the scope.
    pub fn has(&self, scope: &str) -> bool {
        self.scopes.iter().any(|granted| **granted == *scope)
    }
}

// Omits the claims, which are personal data.
impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (f.debug_struct("Grant"))
            .field("scopes", &self.scopes)
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

/// A requested MCP operation.
pub struct Operation<'a> {
    /// The JSON-RPC method.
    pub method: &'a str,
    /// The parameters.
    pub params: Option<&'a RawJson>,
}

impl Operation<'_> {
    /// Returns a text parameter, such as `name` of `tools/call`.
    pub fn parameter(&self, name: &str) -> Option<String> {
        let value = self.params?.member(name)?;
        serde_json::from_slice(&value.to_bytes()).ok()
    }
}

/// The public document about the protected resource.
#[derive(Clone, Debug)]
pub struct ResourceMetadata {
    /// The URL paths of the document.
    pub paths: Vec<String>,
    /// The document, as JSON.
    pub document: Bytes,
}

/// Why a caller was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// The request has no credentials.
    #[error("a bearer token is required; send Authorization: Bearer with a valid one")]
    Missing,
    /// The credentials are invalid.
    #[error("the bearer token is not valid; send Authorization: Bearer with a valid one")]
    Invalid,
    /// The access token is not valid at this server.
    #[error("the access token is not valid: {0}; authorize again")]
    Token(TokenFault),
    /// The DPoP proof is wrong (RFC 9449).
    #[error("the DPoP proof is not valid: {0}; send a new one with each request")]
    Proof(ProofFault),
    /// The principal used more DPoP proofs than Shoal can remember.
    #[error(
        "this principal has shown too many DPoP proofs within a short time; send requests more slowly"
    )]
    TooManyProofs {
        /// The pause before a retry.
        retry_after: Duration,
    },
    /// The token lacks scopes. Lists every scope that the request needs.
    #[error("the access token lacks a scope; this needs: {}; authorize again with it", .0.join(" "))]
    Scope(Arc<[String]>),
    /// Callers cannot be authenticated now.
    #[error("callers cannot be authenticated now: {reason}; try again later")]
    Unavailable {
        /// The cause.
        reason: &'static str,
        /// The pause before a retry.
        retry_after: Duration,
    },
}

macro_rules! faults {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $label:literal: $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
        pub enum $name {
            $($(#[$variant_doc])* #[error($text)] $variant,)+
        }

        impl $name {
            /// Returns the label in metrics.
            pub fn label(self) -> &'static str {
                match self {
                    $(Self::$variant => $label,)+
                }
            }
        }
    };
}

faults! {
    /// Why an access token is refused.
    TokenFault {
        /// Longer than the limit.
        TooLong = "too_long": "it is too long",
        /// Unreadable.
        Malformed = "malformed": "it cannot be read",
        /// Algorithm not allowed for the issuer.
        Algorithm = "algorithm": "its algorithm is not allowed here",
        /// Key unknown to the issuer.
        Key = "key": "its key is not known",
        /// Wrong signature.
        Signature = "signature": "its signature is wrong",
        /// Untrusted issuer.
        Issuer = "issuer": "its issuer is not trusted here",
        /// For another resource.
        Audience = "audience": "it is not for this server",
        /// Expired.
        Expired = "expired": "it has expired",
        /// Not valid yet.
        NotYet = "not_yet": "it is not valid yet",
        /// Inactive, as the issuer says.
        Inactive = "inactive": "it is not active",
        /// A claim is missing or invalid.
        Claims = "claims": "a claim is missing or cannot be used",
        /// Bound to a key that the request does not prove.
        Bound = "bound": "it is bound to a key; show a proof of that key",
        /// Bound to a certificate that the connection did not show.
        Certificate = "certificate": "it is bound to a certificate; connect with that one",
        /// Bound in a way that Shoal cannot check.
        Binding = "binding": "it is bound to its client in a way that cannot be checked here",
        /// Unbound, although the settings require a binding.
        Unbound = "unbound": "it is not bound to a key, as this server requires",
    }
}

faults! {
    /// Why a DPoP proof is refused.
    ProofFault {
        /// Absent.
        Missing = "proof_missing": "there is none",
        /// Unreadable.
        Malformed = "proof_malformed": "it cannot be read",
        /// Algorithm not allowed.
        Algorithm = "proof_algorithm": "its algorithm is not allowed here",
        /// Wrong signature.
        Signature = "proof_signature": "its signature is wrong",
        /// Key other than the token's.
        Key = "proof_key": "its key is not the token's",
        /// For another request.
        Request = "proof_request": "it is for another request",
        /// For another token.
        Token = "proof_token": "it is for another token",
        /// Too old, or in the future.
        Time = "proof_time": "it was not made just now",
        /// Used before.
        Replayed = "proof_replayed": "it was used before",
    }
}
