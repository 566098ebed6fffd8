use std::sync::Arc;

use async_trait::async_trait;
use shoal_ports::{
    AdoptCall, Delivered, EventStream, GatewayError, NodeId, OpenSession, Opened, Post,
    SessionGateway, SessionId, SessionRef, SessionTasks, TaskRequest,
};
use shoal_protocol::task::Task;
use shoal_protocol::{EventId, RequestId};

use super::Routes;
use super::owner_route::OwnerRoute;
use super::request::{Adopt, AskTask, Close, Deliver, GatewayRequest, Listen, TasksOf, UntilOver};

/// Relays requests of nodes that cannot reach an owner: over one hop, without waiting, because the asking node waits.
pub(super) struct Relay {
    routes: Arc<Routes>,
}

impl Relay {
    pub(super) fn new(routes: Arc<Routes>) -> Self {
        Self { routes }
    }

    /// Follows one redirect.
    async fn pass<E: GatewayRequest>(
        &self,
        to: &SessionRef,
        request: &E,
    ) -> Result<E::Answer, GatewayError> {
        let routes = &self.routes;
        let route = match routes.remembered_route(&to.session, true) {
            Some(route) => Some(route),
            None => {
                let owner = routes.look_up(to).await?;
                owner.and_then(|owner| self.straight(&owner))
            }
        };
        let Some(route) = route else {
            return Err(GatewayError::Moved { owner: None });
        };
        match self.attempt(to, request, route).await {
            Err(GatewayError::Moved { owner: Some(hint) }) => match self.straight(&hint) {
                Some(route) => self.attempt(to, request, route).await,
                None => Err(GatewayError::Moved { owner: Some(hint) }),
            },
            answer => answer,
        }
    }

    fn straight(&self, owner: &NodeId) -> Option<OwnerRoute> {
        let view = self.routes.members.view();
        self.routes.straight(view.node(owner)?)
    }

    async fn attempt<E: GatewayRequest>(
        &self,
        to: &SessionRef,
        request: &E,
        route: OwnerRoute,
    ) -> Result<E::Answer, GatewayError> {
        let answer = request.attempt(&*route.gateway, to, false).await;
        let cache = &self.routes.cache;
        match &answer {
            Err(GatewayError::Unreachable { .. } | GatewayError::Unsent { .. }) => route.broke(),
            _ => route.worked(),
        }
        match &answer {
            Ok(_) => cache.insert(&to.session, route.owner),
            Err(GatewayError::Moved { .. } | GatewayError::NotFound) => cache.remove(&to.session),
            Err(_) => {}
        }
        answer
    }
}

#[async_trait]
impl SessionGateway for Relay {
    async fn open(&self, open: OpenSession) -> Result<Opened, GatewayError> {
        match &self.routes.local {
            Some(local) => local.open(open).await,
            None => Err(GatewayError::Moved { owner: None }),
        }
    }

    async fn deliver(&self, to: &SessionRef, post: Post) -> Result<Delivered, GatewayError> {
        self.pass(to, &Deliver(post)).await
    }

    async fn listen(
        &self,
        to: &SessionRef,
        cursor: Option<EventId>,
    ) -> Result<EventStream, GatewayError> {
        self.pass(to, &Listen(cursor)).await
    }

    async fn close(&self, to: &SessionRef) -> Result<(), GatewayError> {
        self.pass(to, &Close).await
    }

    fn new_task(&self) -> Result<SessionId, GatewayError> {
        self.routes.new_task()
    }

    /// A task that does not exist has no owner, so the asking node must choose a node itself.
    async fn adopt(&self, to: &SessionRef, call: AdoptCall) -> Result<Task, GatewayError> {
        match self.pass(to, &Adopt(call)).await {
            Err(GatewayError::NotFound) => Err(GatewayError::Moved { owner: None }),
            adopted => adopted,
        }
    }

    async fn ask_task(&self, to: &SessionRef, request: TaskRequest) -> Result<Task, GatewayError> {
        self.pass(to, &AskTask(request)).await
    }

    async fn until_over(
        &self,
        to: &SessionRef,
        requests: Option<&[RequestId]>,
    ) -> Result<(), GatewayError> {
        self.pass(to, &UntilOver(requests.map(<[_]>::to_vec))).await
    }

    async fn tasks_of(&self, session: &SessionRef) -> Result<Option<SessionTasks>, GatewayError> {
        self.pass(session, &TasksOf).await
    }
}
