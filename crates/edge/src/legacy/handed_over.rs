//! Hands a body over to its session in a Tokio task, because the client may disconnect while the body's requests hold
//! quota places.

use std::sync::Arc;

use http::request::Parts;
use shoal_ports::{Delivered, GatewayError, Grant, Principal, SessionId};
use shoal_protocol::{Body, TraceContext};
use shoal_telemetry::trace::InSpan as _;
use tokio::time::Instant;

use super::{HandedOverMessage, hand_over, internal, to};
use crate::held_places::{SessionPlaces, runs};
use crate::media::AnswerForm;
use crate::permit::RequestPermit;
use crate::places::QuotaPlaces;
use crate::state::EdgeState;
use crate::visit::Visit;

/// The body's requests hold quota places until their tools have stopped.
pub(crate) async fn hand_over_held(
    visit: &Visit<'_>,
    session: SessionId,
    body: Body,
    permit: &mut RequestPermit,
    form: AnswerForm,
) -> Result<(HandedOverMessage, Delivered, Option<SessionPlaces>), GatewayError> {
    let on_stream = form == AnswerForm::SessionStream;
    if permit.places[1].is_empty() || !(on_stream || runs(&body)) {
        let (handed, delivered) = hand_over(visit, session, body).await?;
        return Ok((handed, delivered, None));
    }
    let places = std::mem::take(&mut permit.places[1]);
    let visitor = OwnedVisit::of(visit);
    let handing = tokio::spawn(async move {
        let visit = visitor.visit();
        let to = to(&visit, session.clone());
        let mut places = SessionPlaces::of(visit.edge, to, &body, places);
        if on_stream {
            places.expect_on_stream(&visit.edge.awaited_answers);
        }
        let handing = hand_over(&visit, session, body);
        let handed = handing.in_trace(visit.trace.as_ref()).await;
        places.delivered(handed.as_ref().map(|(_, delivered)| delivered));
        handed.map(|(handed, delivered)| (handed, delivered, Some(places)))
    });
    let lost = |_| Err(internal("the edge failed to forward a message"));
    handing.await.unwrap_or_else(lost)
}

struct OwnedVisit {
    edge: Arc<EdgeState>,
    head: Parts,
    came: Instant,
    principal: Principal,
    grant: Option<Arc<Grant>>,
    trace: Option<TraceContext>,
}

impl OwnedVisit {
    fn of(visit: &Visit<'_>) -> Self {
        Self {
            edge: Arc::clone(visit.edge),
            head: visit.head.clone(),
            came: visit.came,
            principal: visit.principal.clone(),
            grant: visit.grant.clone(),
            trace: visit.trace.clone(),
        }
    }

    fn visit(&self) -> Visit<'_> {
        Visit {
            edge: &self.edge,
            head: &self.head,
            came: self.came,
            principal: self.principal.clone(),
            grant: self.grant.clone(),
            token: None,
            trace: self.trace.clone(),
            places: QuotaPlaces::default(),
        }
    }
}
