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
    AdoptCall, Delivered, Directory, EventStream, GatewayError, OpenSession, Opened, Post,
    SessionGateway, SessionId, SessionRef, SessionTasks, TaskRequest,
};
use shoal_protocol::task::Task;
use shoal_protocol::{EventId, RequestId};
use shoal_telemetry::trace::InSpan as _;
use tokio::sync::Semaphore;

use self::relay::Relay;
use self::request::{
    Adopt, AskTask, Close, Deliver, GatewayRequest, Listen, TasksOf, UntilOver, WatchTask,
};
use self::retry_decision::Operation;
use crate::cache::OwnerCache;
use crate::config::RoutingConfig;
use crate::counters::RoutingCounters;
use crate::members::Members;
use crate::status::{ClusterStatus, RoutingStatus};

/// Time over which waiting requests spread their retries.
const SPREAD: Duration = Duration::from_millis(100);

/// The sessions of the whole cluster. A cheap handle.
///
/// A message goes to the remembered owner. If that is unknown, or a retry may help, the gateway searches for up to
/// [`RoutingConfig::patience`]: by the hint in the session ID, the store, redirects, relays, and the node that takes
/// sessions without owner.
///
/// * After a broken connection, the message goes to the current owner, [repeated](Post::repeated) under the same
///   delivery ID.
/// * Streams continue through a change of owner, without gaps or duplicates.
/// * While the store is away, only messages that need the store fail. They get
///   [`Unavailable`](GatewayError::Unavailable), unless they may have been carried out.
///
/// When patience runs out, a delivery that may have been carried out and must not repeat gets
/// [`Unreachable`](GatewayError::Unreachable); other messages get `Unavailable` with a retry time. If a future is
/// dropped, the current attempt is dropped with it.
#[derive(Clone)]
pub struct RoutedGateway {
    routes: Arc<Routes>,
}

pub(crate) struct Routes {
    pub(crate) config: RoutingConfig,
    pub(crate) members: Members,
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) local: Option<Arc<dyn SessionGateway>>,
    pub(crate) cache: OwnerCache,
    lookups: Semaphore,
    pub(crate) counters: RoutingCounters,
}

impl RoutedGateway {
    /// Routes requests from this node; `local` serves its own sessions.
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

    /// Returns a gateway for nodes that cannot reach an owner themselves. It does not wait, follows one redirect, and
    /// uses no other relay.
    pub fn relay(&self) -> Arc<dyn SessionGateway> {
        Arc::new(Relay::new(Arc::clone(&self.routes)))
    }

    /// Returns the cluster as this node sees it.
    pub fn status(&self) -> ClusterStatus {
        let routing: RoutingStatus = self.routes.counters.status(self.routes.cache.len());
        ClusterStatus::of(&self.routes.members, routing)
    }
}

#[async_trait]
impl SessionGateway for RoutedGateway {
    /// Opens the session on this node, unless it is overloaded or accepts no sessions. Waits up to
    /// [`open_within`](RoutingConfig::open_within) for a node. A broken connection may leave an unused session behind
    /// until its idle timeout.
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

    /// If a repeated attempt finds no session, the first attempt ended it, and the close succeeds.
    async fn close(&self, to: &SessionRef) -> Result<(), GatewayError> {
        self.routes.carry(to, &Close, false).await?;
        self.routes.cache.remove(&to.session);
        Ok(())
    }

    fn new_task(&self) -> Result<SessionId, GatewayError> {
        self.routes.new_task()
    }

    /// Makes a task on the node that its id names, or on another one if that node does not take it. If an earlier
    /// attempt may have made the task, asks the task's owner first.
    async fn adopt(&self, to: &SessionRef, call: AdoptCall) -> Result<Task, GatewayError> {
        let repeated = call.repeated;
        self.routes.carry(to, &Adopt(call), repeated).await
    }

    async fn ask_task(&self, to: &SessionRef, request: TaskRequest) -> Result<Task, GatewayError> {
        match request {
            TaskRequest::Watch { seen } => self.routes.carry(to, &WatchTask(seen), false).await,
            request => self.routes.carry(to, &AskTask(request), false).await,
        }
    }

    async fn until_over(
        &self,
        to: &SessionRef,
        requests: Option<&[RequestId]>,
    ) -> Result<(), GatewayError> {
        let request = UntilOver(requests.map(<[_]>::to_vec));
        self.routes.carry(to, &request, false).await
    }

    async fn tasks_of(&self, session: &SessionRef) -> Result<Option<SessionTasks>, GatewayError> {
        self.routes.carry(session, &TasksOf, false).await
    }
}

impl Routes {
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

    /// If the request is repeated or the link is broken, stops waiting when the owner's announcement lapses.
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

    pub(crate) fn went(&self, route: &owner_route::OwnerRoute) {
        route.worked();
        if route.is_relayed() {
            self.counters.relayed.add();
        }
    }
}
