use std::sync::Arc;
use std::time::Duration;

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
    /// The principal has used more DPoP proofs than Shoal can remember.
    #[error(
        "this principal has shown too many DPoP proofs within a short time; send requests more slowly"
    )]
    TooManyProofs {
        /// The pause before a retry.
        retry_after: Duration,
    },
    /// The token lacks scopes. The list has every scope that the request needs.
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
