//! The gateway that finds the owner of each session, and outlives it.

mod lookup;
mod open;
mod owner_route;
mod patience;
mod relay;
mod request;
mod retry_decision;
mod search;
mod span;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use shoal_ports::{
    Delivered, Directory, EventStream, GatewayError, OpenSession, Opened, Post, SessionGateway,
    SessionRef,
};
use shoal_protocol::EventId;
use shoal_telemetry::trace::InSpan as _;
use tokio::sync::Semaphore;

use self::relay::Relay;
use self::request::{Close, Deliver, GatewayRequest, Listen};
use self::retry_decision::Operation;
use crate::cache::OwnerCache;
use crate::config::RoutingConfig;
use crate::counters::RoutingCounters;
use crate::members::Members;
use crate::status::{ClusterStatus, RoutingStatus};

/// Over how long they spread who wait for the same node.
pub(crate) const SPREAD: Duration = Duration::from_millis(100);

/// The sessions of the whole cluster as one [`SessionGateway`]. Cheap to clone.
///
/// A message goes to the node that is remembered as its session's owner, without a look at the store. If
/// that fails in a way that another attempt can mend, or none is remembered, the owner is searched for with patience (see
/// [`RoutingConfig::patience`]): where the session's id hints, through the store, what other nodes say, nodes in between,
/// and the node that takes sessions that nobody owns.
///
/// * A message whose way broke is delivered again, as [repeated](Post::repeated) and under the same delivery
///   id, to whoever is the owner by then.
/// * Streams go on through a change of owner, with nothing missing or told twice.
/// * A store that is away hurts only who must ask it: those are answered
///   [`Unavailable`](GatewayError::Unavailable) at once, unless they may have been carried out before.
///
/// Errors are those of the owner, but for [`Moved`](GatewayError::Moved) and
/// [`Unreachable`](GatewayError::Unreachable), which are dealt with here. When patience runs out, what was
/// certainly not carried out, or does no harm twice, is `Unavailable`, with a time to come back; a delivery
/// that may have been carried out is `Unreachable`.
///
/// Dropping a future drops the attempt that it waits for, with what the gateway's contract says of that,
/// and no further attempt is made.
#[derive(Clone)]
pub struct RoutedGateway {
    routes: Arc<Routes>,
}

pub(crate) struct Routes {
    pub(crate) config: RoutingConfig,
    pub(crate) members: Members,
    pub(crate) directory: Arc<dyn Directory>,
    /// The sessions of this node, if it has the session role.
    pub(crate) local: Option<Arc<dyn SessionGateway>>,
    pub(crate) cache: OwnerCache,
    /// Lookups that may run at the same time.
    lookups: Semaphore,
    pub(crate) counters: RoutingCounters,
}

impl RoutedGateway {
    /// The way to all sessions from this node; `local` are its own, if it has the session role.
    pub fn new(
        config: RoutingConfig,
        members: Members,
        directory: Arc<dyn Directory>,
        local: Option<Arc<dyn SessionGateway>>,
    ) -> Self {
        let routes = Routes {
            lookups: Semaphore::new(config.lookups_at_once.max(1)),
            cache: OwnerCache::new(config.cached_owners, config.cached_for, config.cached_idle),
            config,
            members,
            directory,
            local,
            counters: RoutingCounters::default(),
        };
        Self {
            routes: Arc::new(routes),
        }
    }

    /// What other nodes that cannot reach an owner are served with here: one attempt, straight to the owner
    /// and never by way of yet another node.
    pub fn relay(&self) -> Arc<dyn SessionGateway> {
        Arc::new(Relay::new(Arc::clone(&self.routes)))
    }

    /// The cluster as this node sees it.
    pub fn status(&self) -> ClusterStatus {
        let routing: RoutingStatus = self.routes.counters.status(self.routes.cache.len());
        ClusterStatus::of(&self.routes.members, routing)
    }
}

#[async_trait]
impl SessionGateway for RoutedGateway {
    /// Opens a session here, if this node takes sessions and is not overloaded, or on the less loaded of two nodes drawn
    /// at random; on another one if that cannot. While none can be reached it waits, for
    /// [`open_within`](RoutingConfig::open_within).
    /// A node that broke off may have opened one that nobody knows of; it idles out.
    async fn open(&self, open: OpenSession) -> Result<Opened, GatewayError> {
        self.routes.open(open).await
    }

    async fn deliver(&self, to: &SessionRef, post: Post) -> Result<Delivered, GatewayError> {
        let repeated = post.repeated;
        let delivered = self.routes.carry(to, &Deliver(post), repeated).await?;
        Ok(match delivered {
            Delivered::Stream(stream) => Delivered::Stream(self.routes.outlive(to, stream)),
            answer => answer,
        })
    }

    async fn listen(
        &self,
        to: &SessionRef,
        cursor: Option<EventId>,
    ) -> Result<EventStream, GatewayError> {
        let stream = self.routes.carry(to, &Listen(cursor), false).await?;
        Ok(self.routes.outlive(to, stream))
    }

    /// Ends the session. One that is gone when it is asked a second time, after the way broke, was ended the
    /// first time.
    async fn close(&self, to: &SessionRef) -> Result<(), GatewayError> {
        self.routes.carry(to, &Close, false).await?;
        self.routes.cache.remove(&to.session);
        Ok(())
    }
}

impl Routes {
    /// Has a request answered by the session's owner: the one that is remembered, or else the one that is found.
    pub(crate) async fn carry<E: GatewayRequest>(
        &self,
        to: &SessionRef,
        request: &E,
        committed: bool,
    ) -> Result<E::Answer, GatewayError> {
        let insists = E::OPERATION == Operation::Listen;
        let route = self.remembered_route(&to.session, insists);
        let failure = match route {
            None => None,
            Some(route) => match self.first_attempt(&route, to, request, committed).await {
                Ok(answer) => {
                    self.went(&route);
                    return Ok(answer);
                }
                Err(error) => Some((route, error)),
            },
        };
        // What is rare is boxed, so that the future of a plain message stays small.
        Box::pin(async {
            let mut span = span::searching(to, E::OPERATION, committed);
            let context = span.context().cloned();
            let search = self.search(to, request, committed, failure, &mut span);
            let answer = search.in_trace(context.as_ref()).await;
            if let Err(error) = &answer {
                span.record_error(span::kind(error));
            }
            answer
        })
        .await
    }

    /// The attempt at the owner that is remembered. Whoever has been disappointed before watches it; for the others it is not
    /// worth the while.
    async fn first_attempt<E: GatewayRequest>(
        &self,
        route: &owner_route::OwnerRoute,
        to: &SessionRef,
        request: &E,
        committed: bool,
    ) -> Result<E::Answer, GatewayError> {
        let answer = request.attempt(&*route.gateway, to, committed);
        match committed || route.is_broken() {
            true => Box::pin(self.while_it_owns(route, answer)).await,
            false => answer.await,
        }
    }

    /// Notes that a request was done by this way.
    pub(crate) fn went(&self, route: &owner_route::OwnerRoute) {
        route.worked();
        if route.is_relayed() {
            self.counters.relayed.add();
        }
    }
}
