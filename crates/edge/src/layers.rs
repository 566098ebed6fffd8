//! The layers that every request passes before its endpoint, and every answer after it.
//!
//! | in this order | file | refused with |
//! |---|---|---|
//! | ambiguous headers | `header_check.rs` | 400 |
//! | the host and the page's origin | `origin_check.rs` | 403 |
//! | number and length of headers | here | 431 |
//! | `OPTIONS`, which ends here | `cors.rs` | |
//! | the method | here | 405 |
//! | quotas by address | `quotas.rs` | 429 |
//! | authentication | `authorize.rs` | 401, 403, 503 |
//! | limits on requests and streams, in total and per principal | `load.rs` | 503, 429 |
//! | content type and accepted types | `media.rs` | 415, 406 |
//! | time, size and room of the body | `body.rs`, `body_budget.rs` | 408, 413, 503, 429 |
//! | the message and its era | `visit.rs`, `era.rs` | 400 |
//! | the caller's grant | `authorize.rs` | 403 |
//! | calls during shutdown | `load.rs` | 503 |
//! | quotas by caller | `quotas.rs` | 429 |
//!
//! A stream is counted after its headers are checked. The process limits connections before all
//! layers (`crates/node/src/http.rs`).

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, Method, header};
use shoal_ports::{NodeLimits, Principal};
use shoal_telemetry::trace::InSpan as _;

use crate::edge::EdgeService;
use crate::endpoint::Endpoint;
use crate::quotas::QuotaPlaces;
use crate::refusal::Refusal;
use crate::refused::RefusedMessage;
use crate::state::EdgeState;
use crate::transport::is_at;
use crate::visit::Visit;
use crate::{answer, audit, authorize, cors, elsewhere, header_check, measure, resource};

/// Names the principal of this process's own requests, which need no authentication. Requests from
/// a network lack this extension.
#[derive(Clone, Debug)]
pub struct Trusted(pub Principal);

impl EdgeService {
    /// Answers a request.
    pub async fn answer(&self, request: Request) -> Response {
        let edge = &self.0;
        let began = Instant::now();
        let (head, body) = request.into_parts();
        let Some(endpoint) = Endpoint::of(edge, &head) else {
            let public = edge.public.as_ref();
            let document = public.filter(|it| it.paths.iter().any(|path| is_at(&head, path)));
            let (route, response) = match document {
                Some(public) => (
                    edge.routes.resource,
                    resource::answer(&head, &public.document),
                ),
                None => (measure::ELSEWHERE, elsewhere::answer(edge, &head)),
            };
            measure::answered(route, &head, began, &response);
            return response;
        };
        let mut response;
        let welcome =
            header_check::expect_unambiguous(&head).and_then(|()| edge.origin_check.check(&head));
        match welcome {
            Ok(origin) => {
                response = match enter(edge, endpoint, &head, body, began.into()).await {
                    Ok(response) => response,
                    Err(refused) => {
                        if head.method == Method::POST {
                            refused.count(&edge.recorder, began);
                        }
                        let mut response = answer::refusal(&refused);
                        if let Refusal::Unauthenticated(why) = &*refused.why {
                            let challenges = edge.authenticator.challenges(why);
                            answer::challenge(&mut response, &challenges);
                        }
                        response
                    }
                };
                if let Some(origin) = origin {
                    cors::allow(&mut response, origin);
                }
            }
            Err(refusal) => {
                // A foreign page can read this refusal only after its preflight succeeds.
                let asks = head.method == Method::OPTIONS;
                response = match refusal {
                    Refusal::ForeignOrigin(_) if asks => cors::preflight(&head.headers),
                    refusal => answer::refusal(&refusal.into()),
                };
                if let Some(origin) = head.headers.get(header::ORIGIN) {
                    cors::allow(&mut response, origin.clone());
                }
            }
        }
        measure::answered(endpoint.mount().route, &head, began, &response);
        response
    }
}

async fn enter(
    edge: &Arc<EdgeState>,
    endpoint: Endpoint,
    head: &Parts,
    body: Body,
    came: tokio::time::Instant,
) -> Result<Response, RefusedMessage> {
    expect_small(&head.headers, &edge.config.limits)?;
    if head.method == Method::OPTIONS {
        return Ok(cors::preflight(&head.headers));
    }
    let mount = endpoint.mount();
    mount.expect(head)?;
    let mut places = QuotaPlaces::default();
    let mut token = None;
    let caller = match head.extensions.get::<Trusted>() {
        Some(Trusted(principal)) => principal.clone().into(),
        None => {
            let wants_address = edge.quotas.count_addresses() || audit::enabled();
            let address = || edge.trusted_proxies.address_of(head);
            let from = wants_address.then(address).flatten();
            places = edge.quotas.arrive(from, came).await?;
            token = endpoint.token(&head.headers)?;
            authorize::authenticate(edge, head, from, token, came).await?
        }
    };
    let span = measure::span(mount.route, head);
    let visit = Visit {
        edge,
        head,
        came,
        principal: caller.principal,
        grant: caller.grant,
        token: token.map(|(_, token)| token),
        trace: span.context().cloned(),
        places,
    };
    // Boxed, because every caller up to the connection copies this future.
    let answer = Box::pin(endpoint.answer(visit, body));
    let answer = answer.in_span(&span).await;
    measure::end(span, answer.as_ref().map_err(|refused| &*refused.why));
    answer
}

fn expect_small(headers: &HeaderMap, limits: &NodeLimits) -> Result<(), Refusal> {
    let bytes: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum();
    if headers.len() <= limits.headers && bytes <= limits.header_bytes {
        return Ok(());
    }
    Err(Refusal::HeadersTooLarge {
        count: limits.headers,
        bytes: limits.header_bytes,
    })
}
