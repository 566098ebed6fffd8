//! The seam that decides who is calling.

use async_trait::async_trait;

use crate::Principal;

/// Decides who is calling from the credentials of an HTTP request.
///
/// Cancellation safe. Must not log or return the credentials.
#[async_trait]
pub trait Authenticator: Send + Sync + 'static {
    /// Names the caller. `bearer` is the token of `Authorization: Bearer …`, if there was one.
    async fn authenticate(&self, bearer: Option<&str>) -> Result<Principal, AuthError>;
}

/// Why a caller was turned away; the edge answers `401`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// No credentials.
    #[error("a bearer token is required")]
    Missing,
    /// Credentials that nobody has.
    #[error("the bearer token is not valid")]
    Invalid,
}
