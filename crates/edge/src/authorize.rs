use std::net::IpAddr;

use http::request::Parts;
use http::{HeaderMap, header};
use memchr::memchr;
use shoal_ports::{
    AuthError, Authenticated, Credentials, Grant, LastToken, Operation, Principal, Scheme,
};
use shoal_protocol::{Body, Message};
use tokio::time::Instant;

use crate::connection::Connection;
use crate::state::EdgeState;
use crate::{audit, measure, names};

pub(crate) async fn authenticate(
    edge: &EdgeState,
    head: &Parts,
    from: Option<IpAddr>,
    token: Option<(Scheme, &[u8])>,
    came: Instant,
) -> Result<Authenticated, AuthError> {
    let peer = Connection::of(&head.extensions).map(|connection| &*connection.peer);
    let last = peer.map(|peer| &peer.last_token);
    let shown = Credentials {
        token,
        digest: last.zip(token).map(|(last, (_, token))| last.digest(token)),
        proof: head
            .headers
            .get(&names::DPOP)
            .and_then(|proof| proof.to_str().ok()),
        certificate: peer.and_then(|peer| peer.certificate.as_ref()),
        method: head.method.as_str(),
        path: head.uri.path(),
        came,
    };
    let authenticated = edge.authenticator.authenticate(shown).await;
    measure::authenticated(edge.authenticator.method(), &authenticated);
    if audit::enabled() && last.is_none_or(|last| is_news(last, from, &shown, &authenticated)) {
        audit::authenticated(edge, head, &authenticated);
    }
    authenticated
}

/// A connection's last admitted token is not recorded again for the same caller and address, unless
/// it comes with a proof.
fn is_news(
    last: &LastToken,
    from: Option<IpAddr>,
    shown: &Credentials<'_>,
    answer: &Result<Authenticated, AuthError>,
) -> bool {
    match (answer, shown.digest) {
        (Ok(known), Some(token)) if shown.proof.is_none() => {
            last.lets_in(&token, &known.principal, from)
        }
        (Ok(_), _) => true,
        (Err(_), _) => {
            last.is_refused();
            true
        }
    }
}

pub(crate) fn token(headers: &HeaderMap) -> Option<(Scheme, &[u8])> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (name, token) = value.split_at_checked(memchr(b' ', value)?)?;
    let schemes = [(&b"bearer"[..], Scheme::Bearer), (b"dpop", Scheme::Dpop)];
    let (_, scheme) = (schemes.into_iter()).find(|(known, _)| name.eq_ignore_ascii_case(known))?;
    let token = token.trim_ascii();
    (!token.is_empty()).then_some((scheme, token))
}

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
