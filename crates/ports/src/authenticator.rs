//! The seam that decides who is calling.

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

/// Decides who is calling from the credentials of an HTTP request.
///
/// Cancellation safe. Must not log or return the credentials.
#[async_trait]
pub trait Authenticator: Send + Sync + 'static {
    /// Names the caller.
    async fn authenticate(&self, shown: Credentials<'_>) -> Result<Authenticated, AuthError>;

    /// How metrics call this way to authenticate.
    fn method(&self) -> &'static str {
        "bearer"
    }

    /// Whether what was granted to a caller is enough for a request. The edge asks only for callers with a [`Grant`].
    ///
    /// # Errors
    /// [`AuthError::Scope`], with every scope that the request needs.
    fn authorize(&self, _grant: &Grant, _operation: &Operation<'_>) -> Result<(), AuthError> {
        Ok(())
    }

    /// Watches the token by which a caller was let in, for a stream that stays open. One that is taken back ends the watch within the
    /// time for which a request with it would still be let in.
    fn watch(&self, _token: &[u8], known: &Authenticated) -> GrantWatch {
        GrantWatch::until(known.grant.as_ref().and_then(|grant| grant.until))
    }

    /// What `WWW-Authenticate` says to a caller who was turned away: a value for each scheme.
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

    /// What anybody may read of the protected resource (RFC 9728), if it has such a document.
    fn resource_metadata(&self) -> Option<ResourceMetadata> {
        None
    }
}

/// What a request shows of its caller. Nothing prints it.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    /// The scheme and the token of `Authorization`, if there was one.
    pub token: Option<(Scheme, &'a [u8])>,
    /// The digest of that token, where it is known already.
    pub digest: Option<TokenDigest>,
    /// The header `DPoP`.
    pub proof: Option<&'a str>,
    /// The certificate of its connection, if the client showed one.
    pub certificate: Option<&'a ClientCertificate>,
    /// The request's method.
    pub method: &'a str,
    /// The path that it asks for.
    pub path: &'a str,
    /// When it came: as of then the token must be believed.
    pub came: Instant,
}

impl<'a> Credentials<'a> {
    /// Nothing but a bearer token.
    pub fn bearer(token: &'a str) -> Self {
        Self {
            token: Some((Scheme::Bearer, token.as_bytes())),
            ..Self::none()
        }
    }

    /// The digest of the token.
    pub fn digest(&self, token: &[u8]) -> TokenDigest {
        self.digest.unwrap_or_else(|| digest_of(token))
    }

    /// Nothing at all.
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

/// The certificate that a client showed when TLS began, by its SHA-256 (RFC 8705, 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientCertificate([u8; 32]);

impl ClientCertificate {
    /// Of a certificate in DER.
    pub fn of(certificate: &[u8]) -> Self {
        Self(Sha256::digest(certificate).into())
    }

    /// Its SHA-256.
    pub fn sha256(&self) -> &[u8; 32] {
        &self.0
    }
}

/// How a token is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `Authorization: Bearer …` (RFC 6750).
    Bearer,
    /// `Authorization: DPoP …`, with a proof (RFC 9449).
    Dpop,
}

/// Who is calling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticated {
    /// Its name.
    pub principal: Principal,
    /// What it showed, if that was more than who it is.
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

/// What an authorization server granted to a caller.
#[derive(PartialEq, Eq)]
pub struct Grant {
    /// The scopes, with those that they imply.
    pub scopes: Box<[Arc<str>]>,
    /// All claims of the token, as a JSON object. The authenticator limits their length.
    pub claims: RawJson,
    /// When the grant ends, if it does, by this machine's monotonic clock.
    pub until: Option<Instant>,
    /// What policy rules have read of it.
    pub read: Memo,
}

impl Grant {
    /// Whether a scope is among those that were granted.
    pub fn has(&self, scope: &str) -> bool {
        self.scopes.iter().any(|granted| **granted == *scope)
    }
}

// Claims say more of a person than a log should.
impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (f.debug_struct("Grant"))
            .field("scopes", &self.scopes)
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

/// What a request is for.
pub struct Operation<'a> {
    /// Its JSON-RPC method.
    pub method: &'a str,
    /// Its parameters.
    pub params: Option<&'a RawJson>,
}

impl Operation<'_> {
    /// The text that a parameter is, such as `name` of `tools/call`.
    pub fn parameter(&self, name: &str) -> Option<String> {
        let value = self.params?.member(name)?;
        serde_json::from_slice(&value.to_bytes()).ok()
    }
}

/// A document that anybody may read, and where.
#[derive(Clone, Debug)]
pub struct ResourceMetadata {
    /// The paths at which it is served.
    pub paths: Vec<String>,
    /// It, as JSON.
    pub document: Bytes,
}

/// Why a caller was turned away.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// No credentials.
    #[error("a bearer token is required; send Authorization: Bearer with a valid one")]
    Missing,
    /// Credentials that nobody has.
    #[error("the bearer token is not valid; send Authorization: Bearer with a valid one")]
    Invalid,
    /// An access token that was not granted for this, or not any more.
    #[error("the access token is not valid: {0}; authorize again")]
    Token(TokenFault),
    /// The proof that the caller has the token's key is wrong (RFC 9449).
    #[error("the DPoP proof is not valid: {0}; send a new one with each request")]
    Proof(ProofFault),
    /// A valid proof for which there is no room: the principal has shown too many within the time in which each could be replayed.
    #[error(
        "this principal has shown too many DPoP proofs within a short time; send requests more slowly"
    )]
    TooManyProofs {
        /// When to come back.
        retry_after: Duration,
    },
    /// A valid token that is not enough: all scopes that the request needs.
    #[error("the access token lacks a scope; this needs: {}; authorize again with it", .0.join(" "))]
    Scope(Arc<[String]>),
    /// Nobody can tell now.
    #[error("callers cannot be authenticated now: {reason}; try again later")]
    Unavailable {
        /// Why.
        reason: &'static str,
        /// When to come back.
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
            /// How metrics call it.
            pub fn label(self) -> &'static str {
                match self {
                    $(Self::$variant => $label,)+
                }
            }
        }
    };
}

faults! {
    /// What is wrong with an access token.
    TokenFault {
        /// Longer than any that is taken.
        TooLong = "too_long": "it is too long",
        /// Neither a JWT nor anything that can be asked about.
        Malformed = "malformed": "it cannot be read",
        /// Signed in a way that is not allowed for its issuer.
        Algorithm = "algorithm": "its algorithm is not allowed here",
        /// Signed with a key that its issuer does not have.
        Key = "key": "its key is not known",
        /// The signature is wrong.
        Signature = "signature": "its signature is wrong",
        /// Of an issuer that is not trusted.
        Issuer = "issuer": "its issuer is not trusted here",
        /// For another resource.
        Audience = "audience": "it is not for this server",
        /// Its time is over.
        Expired = "expired": "it has expired",
        /// Its time has not come.
        NotYet = "not_yet": "it is not valid yet",
        /// Not active, as its issuer says.
        Inactive = "inactive": "it is not active",
        /// It does not say whose it is, or when it ends.
        Claims = "claims": "a claim is missing or cannot be used",
        /// Bound to a key, and shown without a proof of it.
        Bound = "bound": "it is bound to a key; show a proof of that key",
        /// Bound to a certificate, and shown over a connection without it.
        Certificate = "certificate": "it is bound to a certificate; connect with that one",
        /// Bound in a way that cannot be checked here.
        Binding = "binding": "it is bound to its client in a way that cannot be checked here",
        /// Not bound, where it must be.
        Unbound = "unbound": "it is not bound to a key, as this server requires",
    }
}

faults! {
    /// What is wrong with a DPoP proof.
    ProofFault {
        /// There is none.
        Missing = "proof_missing": "there is none",
        /// It cannot be read.
        Malformed = "proof_malformed": "it cannot be read",
        /// Signed in a way that is not allowed.
        Algorithm = "proof_algorithm": "its algorithm is not allowed here",
        /// The signature is wrong.
        Signature = "proof_signature": "its signature is wrong",
        /// Made with another key than the token is bound to.
        Key = "proof_key": "its key is not the token's",
        /// For another request.
        Request = "proof_request": "it is for another request",
        /// For another token.
        Token = "proof_token": "it is for another token",
        /// Made too long ago, or in the future.
        Time = "proof_time": "it was not made just now",
        /// It was there before.
        Replayed = "proof_replayed": "it was used before",
    }
}
