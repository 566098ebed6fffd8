//! The seam that authenticates callers.

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

/// Identifies callers by the credentials of HTTP requests.
///
/// Cancellation safe. Implementations must not log or return credentials.
#[async_trait]
pub trait Authenticator: Send + Sync + 'static {
    /// Identifies the caller by a request's credentials.
    async fn authenticate(&self, shown: Credentials<'_>) -> Result<Authenticated, AuthError>;

    /// Returns the label of this authentication method in metrics.
    fn method(&self) -> &'static str {
        "bearer"
    }

    /// Checks that a grant covers a request.
    ///
    /// # Errors
    /// [`AuthError::Scope`], with every scope that the request needs.
    fn authorize(&self, _grant: &Grant, _operation: &Operation<'_>) -> Result<(), AuthError> {
        Ok(())
    }

    /// Watches a token while a stream stays open. The watch ends as soon as requests with the token would be refused,
    /// or earlier.
    fn watch(&self, _token: &[u8], known: &Authenticated) -> GrantWatch {
        GrantWatch::until(known.grant.as_ref().and_then(|grant| grant.until))
    }

    /// Returns the values of the `WWW-Authenticate` headers, one for each scheme.
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

    /// Returns the metadata of the protected resource (RFC 9728), if the server has any.
    fn resource_metadata(&self) -> Option<ResourceMetadata> {
        None
    }
}

/// The credentials of one request. There is no `Debug`, so that logs cannot contain them.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    /// The scheme and token of `Authorization`, if present.
    pub token: Option<(Scheme, &'a [u8])>,
    /// The digest of that token, if the connection already knows it.
    pub digest: Option<TokenDigest>,
    /// The proof in the `DPoP` header.
    pub proof: Option<&'a str>,
    /// The TLS certificate that the client sent, if any.
    pub certificate: Option<&'a ClientCertificate>,
    /// The request's HTTP method.
    pub method: &'a str,
    /// The request's path.
    pub path: &'a str,
    /// When the request arrived. The token must be valid at that time.
    pub came: Instant,
}

impl<'a> Credentials<'a> {
    /// Makes credentials that have a bearer token and nothing else.
    pub fn bearer(token: &'a str) -> Self {
        Self {
            token: Some((Scheme::Bearer, token.as_bytes())),
            ..Self::none()
        }
    }

    /// Returns the digest of the token, which it computes unless it is known.
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
    /// Hashes a client's certificate, given in DER.
    pub fn of(certificate: &[u8]) -> Self {
        Self(Sha256::digest(certificate).into())
    }

    /// Returns the SHA-256 of the certificate.
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
    /// The caller's grant, if the credentials carry one.
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
    /// The granted scopes, including those that they imply.
    pub scopes: Box<[Arc<str>]>,
    /// The token's claims, as a JSON object. The authenticator limits their length.
    pub claims: RawJson,
    /// When the grant ends, by this machine's monotonic clock.
    pub until: Option<Instant>,
    /// The parsed form of the claims, for policy rules.
    pub read: Memo,
}

impl Grant {
    /// Whether the grant includes the scope.
    pub fn has(&self, scope: &str) -> bool {
        self.scopes.iter().any(|granted| **granted == *scope)
    }
}

// Without the claims, because they are personal data.
impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (f.debug_struct("Grant"))
            .field("scopes", &self.scopes)
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

/// The MCP operation that a request asks for.
pub struct Operation<'a> {
    /// The operation's JSON-RPC method.
    pub method: &'a str,
    /// The operation's parameters.
    pub params: Option<&'a RawJson>,
}

impl Operation<'_> {
    /// Returns a text parameter, such as `name` of `tools/call`.
    pub fn parameter(&self, name: &str) -> Option<String> {
        let value = self.params?.member(name)?;
        serde_json::from_slice(&value.to_bytes()).ok()
    }
}

/// The public document that describes the protected resource, and its paths.
#[derive(Clone, Debug)]
pub struct ResourceMetadata {
    /// The URL paths that serve the document.
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
    /// The credentials are unknown.
    #[error("the bearer token is not valid; send Authorization: Bearer with a valid one")]
    Invalid,
    /// The access token is invalid here.
    #[error("the access token is not valid: {0}; authorize again")]
    Token(TokenFault),
    /// The DPoP proof is wrong (RFC 9449).
    #[error("the DPoP proof is not valid: {0}; send a new one with each request")]
    Proof(ProofFault),
    /// The principal has used more DPoP proofs than Shoal can remember to detect replays.
    #[error(
        "this principal has shown too many DPoP proofs within a short time; send requests more slowly"
    )]
    TooManyProofs {
        /// When the caller should retry.
        retry_after: Duration,
    },
    /// The token lacks scopes. Lists all that the request needs.
    #[error("the access token lacks a scope; this needs: {}; authorize again with it", .0.join(" "))]
    Scope(Arc<[String]>),
    /// Callers cannot be authenticated now.
    #[error("callers cannot be authenticated now: {reason}; try again later")]
    Unavailable {
        /// Why callers cannot be authenticated.
        reason: &'static str,
        /// When the caller should retry.
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
            /// Returns the fault's label in metrics.
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
        /// The token exceeds the length limit.
        TooLong = "too_long": "it is too long",
        /// The token cannot be read.
        Malformed = "malformed": "it cannot be read",
        /// The token's signature algorithm is not allowed for its issuer.
        Algorithm = "algorithm": "its algorithm is not allowed here",
        /// The issuer does not have the key that signed the token.
        Key = "key": "its key is not known",
        /// The token's signature is wrong.
        Signature = "signature": "its signature is wrong",
        /// The token's issuer is not trusted.
        Issuer = "issuer": "its issuer is not trusted here",
        /// The token is for another resource.
        Audience = "audience": "it is not for this server",
        /// The token has expired.
        Expired = "expired": "it has expired",
        /// The token is not valid yet.
        NotYet = "not_yet": "it is not valid yet",
        /// The issuer says that the token is inactive.
        Inactive = "inactive": "it is not active",
        /// The token lacks a subject or an expiry.
        Claims = "claims": "a claim is missing or cannot be used",
        /// The token is bound to a key, but the request lacks a proof of that key.
        Bound = "bound": "it is bound to a key; show a proof of that key",
        /// The token is bound to a certificate that the connection did not show.
        Certificate = "certificate": "it is bound to a certificate; connect with that one",
        /// The token is bound in a way that Shoal cannot check.
        Binding = "binding": "it is bound to its client in a way that cannot be checked here",
        /// The token is not bound to a key or certificate, as the settings require.
        Unbound = "unbound": "it is not bound to a key, as this server requires",
    }
}

faults! {
    /// Why a DPoP proof is refused.
    ProofFault {
        /// The request has no proof.
        Missing = "proof_missing": "there is none",
        /// The proof cannot be read.
        Malformed = "proof_malformed": "it cannot be read",
        /// The proof's signature algorithm is not allowed.
        Algorithm = "proof_algorithm": "its algorithm is not allowed here",
        /// The proof's signature is wrong.
        Signature = "proof_signature": "its signature is wrong",
        /// The proof's key is not the token's key.
        Key = "proof_key": "its key is not the token's",
        /// The proof is for another request.
        Request = "proof_request": "it is for another request",
        /// The proof is for another token.
        Token = "proof_token": "it is for another token",
        /// The proof was made too long ago, or in the future.
        Time = "proof_time": "it was not made just now",
        /// The proof was used before.
        Replayed = "proof_replayed": "it was used before",
    }
}
