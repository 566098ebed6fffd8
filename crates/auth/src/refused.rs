//! Logs refused callers. A line names the failed check, not the token. Lines are rate-limited by kind
//! (`telemetry.logs.repeats`), because anyone can cause them.

use serde_json::Value;
use shoal_ports::{AuthError, TokenFault, shown};

const SHOWN: usize = 200;

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

pub(crate) fn token(came: &str) -> TokenFault {
    let (check, expected) = (TokenFault::Malformed, "a JWT that is signed (JWS)");
    let refusal = check.label();
    tracing::info!(refusal, came, expected, "refused an access token: {check}");
    check
}

/// Logs refusals besides those of [`claim`] and [`token`].
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
        AuthError::TooManyProofs { .. } => "proofs",
        // `Missing` and `Unavailable` are not logged: clients discover authentication by a request without a token, and
        // an unreachable issuer is logged elsewhere.
        AuthError::Missing | AuthError::Unavailable { .. } => return,
    };
    tracing::info!(refusal = kind, "refused a caller: {why}");
}
