use std::net::IpAddr;

use http::request::Parts;
use http::{Method, header};
use shoal_ports::{AuthError, Authenticated, Principal, QuotaSubject};
use shoal_protocol::{Request, TraceContext};
use shoal_telemetry::audit::{self, Event, Kind, keys};
use shoal_telemetry::trace::{self, attributes};

use crate::measure;
use crate::state::EdgeState;

const ANONYMOUS: &str = "anonymous";

pub(crate) use shoal_telemetry::audit::enabled;

pub(crate) fn authenticated(
    edge: &EdgeState,
    head: &Parts,
    answer: &Result<Authenticated, AuthError>,
) {
    if edge.authenticator.method() == ANONYMOUS {
        return;
    }
    audit::record(Kind::Authentication, |event| {
        event.set(keys::AUTH_METHOD, edge.authenticator.method());
        match answer {
            Ok(known) => {
                event.set(attributes::OUTCOME, "accepted");
                event.set(keys::ENDUSER_ID, known.principal.as_str());
            }
            Err(why) => refused(event, why),
        }
        came(event, edge, head);
    });
}

pub(crate) fn not_enough(
    edge: &EdgeState,
    head: &Parts,
    principal: &Principal,
    request: &Request,
    why: &AuthError,
) {
    audit::record(Kind::Authentication, |event| {
        event.set(keys::AUTH_METHOD, edge.authenticator.method());
        refused(event, why);
        event.set(keys::ENDUSER_ID, principal.as_str());
        event.set(attributes::MCP_METHOD_NAME, request.method.as_str());
        came(event, edge, head);
    });
}

/// The principal is unknown if the quota counts addresses.
pub(crate) fn over_quota(quota: &str, subject: &QuotaSubject, principal: Option<&Principal>) {
    audit::record(Kind::Quota, |event| {
        event.set(attributes::OUTCOME, "refused");
        event.set(keys::QUOTA, quota);
        if let QuotaSubject::Address(address) = subject {
            event.set(attributes::CLIENT_ADDRESS, *address);
        }
        event.set_some(keys::ENDUSER_ID, principal.map(Principal::as_str));
        event.trace(trace::current().as_ref());
    });
}

pub(crate) fn cut_off(
    edge: &EdgeState,
    principal: &Principal,
    context: &AuditContext,
    why: &AuthError,
) {
    audit::record(Kind::Authentication, |event| {
        event.set(keys::AUTH_METHOD, edge.authenticator.method());
        event.set(attributes::OUTCOME, "cut_off");
        event.set(attributes::REASON, measure::outcome(why).1);
        event.set(keys::ENDUSER_ID, principal.as_str());
        context.tell(event);
    });
}

fn refused(event: &mut Event<'_>, why: &AuthError) {
    let (outcome, reason) = measure::outcome(why);
    event.set(attributes::OUTCOME, outcome.as_str());
    event.set(attributes::REASON, reason);
}

fn came(event: &mut Event<'_>, edge: &EdgeState, head: &Parts) {
    AuditContext::of(edge, head).tell(event);
}

pub(crate) struct AuditContext {
    address: Option<IpAddr>,
    method: Method,
    session: Option<String>,
    agent: Option<String>,
    parent: Option<TraceContext>,
}

impl AuditContext {
    pub(crate) fn of(edge: &EdgeState, head: &Parts) -> Self {
        let session = head.headers.get(&crate::names::SESSION_ID);
        // Lossy, so that bytes outside ASCII cannot hide a client's name.
        let agent = head.headers.get(header::USER_AGENT);
        Self {
            address: edge.trusted_proxies.address_of(head),
            method: head.method.clone(),
            session: session.and_then(|id| id.to_str().ok().map(str::to_owned)),
            agent: agent.map(|agent| String::from_utf8_lossy(agent.as_bytes()).into_owned()),
            parent: measure::parent(&head.headers),
        }
    }

    fn tell(&self, event: &mut Event<'_>) {
        event
            .set_some(attributes::CLIENT_ADDRESS, self.address)
            .set(attributes::HTTP_REQUEST_METHOD, self.method.as_str())
            .set_some(attributes::MCP_SESSION_ID, self.session.as_deref())
            .set_some(keys::USER_AGENT, self.agent.as_deref())
            .trace(self.parent.as_ref());
    }
}
