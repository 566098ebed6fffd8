//! What a request shows of its caller, and whether what was granted to the caller is enough.

use http::request::Parts;
use http::{HeaderMap, header};
use shoal_ports::{AuthError, Authenticated, Credentials, Grant, Operation, Principal, Scheme};
use shoal_protocol::{Body, Message};

use crate::state::EdgeState;
use crate::{audit, measure, names};

/// Says who is calling.
pub(crate) async fn authenticate(
    edge: &EdgeState,
    head: &Parts,
    token: Option<(Scheme, &str)>,
) -> Result<Authenticated, AuthError> {
    let shown = Credentials {
        token,
        proof: head
            .headers
            .get(&names::DPOP)
            .and_then(|proof| proof.to_str().ok()),
        certificate: head.extensions.get(),
        method: head.method.as_str(),
        path: head.uri.path(),
    };
    let authenticated = edge.authenticator.authenticate(shown).await;
    measure::authenticated(edge.authenticator.method(), &authenticated);
    audit::authenticated(edge, head, &authenticated);
    authenticated
}

/// The token of `Authorization: Bearer …` or `DPoP …`.
pub(crate) fn token(headers: &HeaderMap) -> Option<(Scheme, &str)> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (name, token) = value.split_once(' ')?;
    let schemes = [("bearer", Scheme::Bearer), ("dpop", Scheme::Dpop)];
    let (_, scheme) = (schemes.into_iter()).find(|(known, _)| name.eq_ignore_ascii_case(known))?;
    let token = token.trim();
    (!token.is_empty()).then_some((scheme, token))
}

/// Checks that a caller may make every request of a body.
pub(crate) fn expect_enough(
    edge: &EdgeState,
    head: &Parts,
    principal: &Principal,
    grant: &Grant,
    body: &Body,
) -> Result<(), AuthError> {
    let expect = |message: &Message| {
        let Message::Request(request) = message else {
            return Ok(());
        };
        let operation = Operation {
            method: request.method.as_str(),
            params: request.params.as_ref(),
        };
        let enough = edge.authenticator.authorize(grant, &operation);
        if let Err(why) = &enough {
            measure::not_enough(edge.authenticator.method(), why);
            audit::not_enough(edge, head, principal, request, why);
        }
        enough
    };
    match body {
        Body::Single(message) => expect(message),
        Body::Batch(messages) => messages.iter().flatten().try_for_each(expect),
    }
}
