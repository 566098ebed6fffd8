use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use shoal_protocol::RawJson;
use tokio::time::Instant;

use crate::last_token::digest_of;
use crate::{AuthError, Grant, GrantWatch, Principal, TokenDigest};

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
