mod patience;

use shoal_ports::{GatewayError, NodeId, SessionRef};
use shoal_telemetry::trace::{Span, attributes};

use super::owner_route::OwnerRoute;
use super::patience::RoutingPatience;
use super::request::GatewayRequest;
use super::retry_decision::{AttemptContext, Operation, RetryDecision, decide};
use super::{Routes, span};

/// Number of failures that cause no pause: for example, of an outdated cache entry, a redirect's node and a relay.
const EAGER: u32 = 3;

/// If this many nodes are full, the whole cluster counts as full.
pub(super) const FULL_NODES: u32 = 2;

struct Search<'a> {
    routes: &'a Routes,
    to: &'a SessionRef,
    operation: Operation,
    committed: bool,
    failures: u32,
    full: u32,
    waited: bool,
    /// Whether the search does not record its waiting time as a takeover: `reattach` (stream.rs) records its own, and a
    /// watch only waits for news.
    measured: bool,
    counted: bool,
    patience: RoutingPatience,
    redirect: Option<NodeId>,
    /// Whether a redirect was followed since the last lookup in the store.
    redirected: bool,
    tried: Vec<NodeId>,
    /// The node asked to take the session over from a dead owner.
    successor: Option<NodeId>,
    /// Whether a successor declined, because the owner is alive or its lease still runs.
    is_owned: bool,
    refusal: Option<GatewayError>,
}

impl Routes {
    pub(super) async fn search<E: GatewayRequest>(
        &self,
        to: &SessionRef,
        request: &E,
        committed: bool,
        failure: Option<(OwnerRoute, GatewayError)>,
        span: &mut Span,
    ) -> Result<E::Answer, GatewayError> {
        let mut search = Search::new(self, to, E::OPERATION, committed);
        let mut failure = failure.map(|(route, error)| (Some(route), error));
        loop {
            if let Some((route, error)) = failure.take() {
                span::note(span, route.as_ref(), &error);
                match search.judge(route.as_ref(), &error) {
                    RetryDecision::Done => return request.done().ok_or(error),
                    RetryDecision::Final if search.committed && request.takes_effect() => {
                        return Err(refused_later(&error));
                    }
                    RetryDecision::Final => return Err(error),
                    RetryDecision::Elsewhere | RetryDecision::Repeat
                        if search.is_eager(route.as_ref()) => {}
                    RetryDecision::Elsewhere | RetryDecision::Repeat | RetryDecision::Later => {
                        search.pause().await?
                    }
                }
            }
            failure = match search.route().await {
                Err(error) => Some((None, error)),
                Ok(route) => match search.attempt(request, &route).await {
                    Ok(answer) => {
                        span.set(attributes::PEER_NODE, route.owner.as_str());
                        return Ok(answer);
                    }
                    Err(error) => Some((Some(route), error)),
                },
            };
        }
    }
}

/// A later owner that refuses cannot know whether an earlier one carried the message out.
fn refused_later(error: &GatewayError) -> GatewayError {
    GatewayError::Unreachable {
        reason: format!("and then: {error}"),
    }
}

impl<'a> Search<'a> {
    fn new(routes: &'a Routes, to: &'a SessionRef, operation: Operation, committed: bool) -> Self {
        let config = &routes.config;
        Self {
            routes,
            to,
            operation,
            committed,
            failures: 0,
            full: 0,
            waited: false,
            measured: match operation {
                Operation::Listen => committed,
                Operation::Watch => true,
                _ => false,
            },
            counted: false,
            patience: RoutingPatience::new(config, config.cluster.patience.get()),
            redirect: None,
            redirected: false,
            tried: Vec::new(),
            successor: None,
            is_owned: false,
            refusal: None,
        }
    }

    fn judge(&mut self, route: Option<&OwnerRoute>, error: &GatewayError) -> RetryDecision {
        let asked = AttemptContext {
            committed: self.committed,
            relayed: route.is_some_and(OwnerRoute::is_relayed),
            hinted: route.is_some_and(|route| route.is_hinted),
        };
        let decision = decide(self.operation, asked, error);
        self.failures += 1;
        match error {
            GatewayError::NotFound => self.routes.cache.remove(&self.to.session),
            GatewayError::Moved { owner } => self.redirect.clone_from(owner),
            GatewayError::TooManySessions { .. } => {
                self.full += 1;
                self.refusal = Some(error.clone());
            }
            _ => {}
        }
        if let Some(route) = route {
            match decision {
                RetryDecision::Repeat => route.broke(),
                _ => route.worked(),
            }
            let succeeds = self.successor.take().as_ref() == Some(&route.asked);
            if succeeds && matches!(error, GatewayError::Moved { .. }) {
                // Not added to `tried`, because the node may still be the relay to the owner.
                self.is_owned = true;
            } else if !route.is_hinted || self.operation == Operation::Adopt {
                // A node that only the hint named was not asked to take the session over, so it may still be asked. For
                // a new task, which has no owner, the node was asked.
                self.tried.push(route.asked.clone());
            }
        }
        let sent =
            decision == RetryDecision::Repeat && !matches!(error, GatewayError::Unsent { .. });
        self.committed |= sent && self.operation != Operation::Listen;
        self.waited |= decision == RetryDecision::Repeat;
        if self.full >= FULL_NODES && !self.committed {
            return RetryDecision::Final;
        }
        decision
    }

    fn is_eager(&self, route: Option<&OwnerRoute>) -> bool {
        route.is_some() && self.failures <= EAGER
    }

    /// Tries the hint in the session ID if no owner is remembered, then one redirect, then the store. Replaces a dead
    /// owner by its successor, which itself probes the owner.
    async fn route(&mut self) -> Result<OwnerRoute, GatewayError> {
        if self.failures == 0 && self.remembered().is_none() {
            let hinted = self.routes.hinted_route(&self.to.session);
            if let Some(route) = hinted {
                return Ok(route);
            }
        }
        let redirect = self.redirect.take().filter(|_| !self.redirected);
        self.redirected = redirect.is_some();
        let owner = match redirect {
            Some(owner) => Some(owner),
            None => self.look_up().await?,
        };
        let route = match &owner {
            Some(owner) => match self.succeeding(owner).await {
                Some(route) => Some(route),
                None => self.routes.route_to(owner, &self.tried),
            },
            None => self.routes.taker(&self.to.session, &self.tried),
        };
        route.ok_or_else(|| match (&owner, &self.refusal) {
            (None, Some(refusal)) => refusal.clone(),
            _ => GatewayError::Moved { owner: None },
        })
    }

    async fn succeeding(&mut self, owner: &NodeId) -> Option<OwnerRoute> {
        if self.redirected || self.is_owned || !self.routes.finds_gone(owner).await {
            return None;
        }
        if !self.tried.contains(owner) {
            self.tried.push(owner.clone());
        }
        let route = self.routes.taker(&self.to.session, &self.tried)?;
        self.successor = Some(route.asked.clone());
        Some(route)
    }

    async fn look_up(&self) -> Result<Option<NodeId>, GatewayError> {
        match self.routes.look_up(self.to).await {
            // If the store is away before the first attempt, an outdated entry of the cache is better than no owner.
            Err(GatewayError::Unavailable { .. })
                if self.failures == 0 && self.remembered().is_some() =>
            {
                Ok(self.remembered())
            }
            // The task does not exist yet, so it has no owner.
            Err(GatewayError::NotFound) if self.operation == Operation::Adopt => Ok(None),
            found => found,
        }
    }

    fn remembered(&self) -> Option<NodeId> {
        self.routes.cache.any(&self.to.session)
    }

    async fn attempt<E: GatewayRequest>(
        &mut self,
        request: &E,
        route: &OwnerRoute,
    ) -> Result<E::Answer, GatewayError> {
        if self.operation == Operation::Deliver && self.committed && !self.counted {
            self.counted = true;
            self.routes.counters.redelivered.add();
        }
        let hinted = route.is_hinted.then(|| self.to.by_hint());
        let to = hinted.as_ref().unwrap_or(self.to);
        let answer = request.attempt(&*route.gateway, to, self.committed);
        let answer = self.routes.while_it_owns(route, answer).await?;
        self.routes.went(route);
        self.routes
            .cache
            .insert(&self.to.session, route.owner.clone());
        if self.waited && !self.measured {
            self.routes.counters.takeovers.record(self.patience.spent());
        }
        Ok(answer)
    }
}
