//! Log lines about refused callers: they name the failed check, and never contain the token. Because anyone can cause them, the log has one
//! line of each kind now and then (`telemetry.logs.repeats`).

use serde_json::Value;
use shoal_ports::{AuthError, TokenFault, shown};

/// Characters of a value that are told.
const SHOWN: usize = 200;

/// A token says something else than it must. Returns the fault.
pub(crate) fn claim(
    check: TokenFault,
    claim: &str,
    came: Option<&Value>,
    expected: &str,
) -> TokenFault {
    let came = came.map(|came| match came {
        Value::String(text) => shown(text, SHOWN),
        other => shown(&other.to_string(), SHOWN),
    });
    let expected = shown(expected, SHOWN);
    tracing::info!(
        refusal = check.label(),
        claim,
        came,
        expected,
        "refused an access token: {check}"
    );
    check
}

/// A token cannot be read as one. Returns the fault.
pub(crate) fn token(came: &str) -> TokenFault {
    let (check, expected) = (TokenFault::Malformed, "a JWT that is signed (JWS)");
    let refusal = check.label();
    tracing::info!(refusal, came, expected, "refused an access token: {check}");
    check
}

/// A caller is refused for this reason, unless [`claim`] or [`token`] has said why.
pub(crate) fn caller(why: &AuthError) {
    let kind = match why {
        AuthError::Token(fault) => match fault {
            TokenFault::Malformed
            | TokenFault::Issuer
            | TokenFault::Audience
            | TokenFault::Algorithm
            | TokenFault::Key
            | TokenFault::Claims
            | TokenFault::NotYet
            | TokenFault::Expired => return,
            other => other.label(),
        },
        AuthError::Proof(fault) => fault.label(),
        AuthError::Invalid => "unknown",
        AuthError::Scope(_) => "scope",
        // The first is how clients find out that a token is needed; the other is told where it is answered.
        AuthError::TooManyProofs { .. } => "proofs",
        AuthError::Missing | AuthError::Unavailable { .. } => return,
    };
    tracing::info!(refusal = kind, "refused a caller: {why}");
}
