//! The edge's side of node links: the session gateway of another node.
//!
//! | | |
//! |---|---|
//! | `connect` | hello and welcome |
//! | `link` | one link, and the requests that await answers |
//! | `drive` | the frames that arrive on a link |
//! | `stream` | a stream, as its listener reads it |
//! | `sight` | whether the process of a node is gone |

mod connect;
mod drive;
mod link;
mod sight;
mod stream;

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use shoal_ports::{
    AdoptCall, Backoff, Delivered, EventStream, GatewayError, NodeId, OpenSession, Opened, Post,
    SessionGateway, SessionId, SessionRef, SessionTasks, TaskRequest,
};
use shoal_protocol::task::Task;
use shoal_protocol::{EventId, RequestId};
use tokio::time::Instant;

use self::link::{GatewayLink, GatewayReply, RETRY_AFTER};
pub use self::sight::{Sight, look_for};
use crate::LinkConfig;
use crate::convert::gateway::{event_id_out, open_out};
use crate::convert::post::deliver_out;
use crate::convert::task::{adopt_out, ask_out, list_out};
use crate::convert::trace::trace_out;
use crate::convert::until_over::until_over_out;
use crate::link::versions;
use crate::proto::node::v1::edge_frame::Frame;
use crate::proto::node::v1::{CloseSession, Listen};

/// The session gateway of another node; a cheap handle.
///
/// Dials on demand. After a failure, pauses, each time for longer. During the pause, requests fail at once with
/// [`GatewayError::Unsent`]. When the link breaks, requests in flight end with [`GatewayError::Unreachable`] and
/// streams with [`Moved`](shoal_ports::StreamItem::Moved).
///
/// # Cancel safety
/// Dropping a future discards the answer; the message may have been sent.
#[derive(Clone)]
pub struct RemoteGateway {
    shared: Arc<RemoteGatewayInner>,
    relayed: bool,
}

struct RemoteGatewayInner {
    from: NodeId,
    node: Option<NodeId>,
    address: String,
    config: LinkConfig,
    link: Mutex<Option<Arc<GatewayLink>>>,
    /// The lock lets concurrent requests share one attempt.
    dialling: tokio::sync::Mutex<Dialling>,
}

struct Dialling {
    backoff: Backoff,
    resting: Option<(Instant, String)>,
}

impl RemoteGateway {
    /// Makes a gateway to the node at `address` (`host:port`), which must be `node`, if given. `from` names this node
    /// in logs.
    pub fn new(from: NodeId, node: Option<NodeId>, address: &str, config: LinkConfig) -> Self {
        let dialling = Dialling {
            backoff: Backoff::new(config.backoff, config.backoff_max),
            resting: None,
        };
        Self {
            shared: Arc::new(RemoteGatewayInner {
                from,
                node,
                address: address.to_owned(),
                config,
                link: Mutex::default(),
                dialling: tokio::sync::Mutex::new(dialling),
            }),
            relayed: false,
        }
    }

    /// Returns a gateway over the same link for requests that another node has relayed. The far end must not relay
    /// again.
    pub fn relayed(&self) -> Self {
        Self {
            relayed: true,
            ..self.clone()
        }
    }

    async fn link(&self) -> Result<Arc<GatewayLink>, GatewayError> {
        match self.shared.up() {
            Some(link) => Ok(link),
            None => Box::pin(self.shared.dial()).await,
        }
    }

    async fn ask(&self, frame: impl FnOnce(u64) -> Frame) -> Result<GatewayReply, GatewayError> {
        self.link().await?.ask(frame).await
    }

    /// Sends a request that only peers of at least this version know.
    async fn ask_of_version(
        &self,
        version: u32,
        frame: impl FnOnce(u64) -> Frame,
    ) -> Result<GatewayReply, GatewayError> {
        let link = self.link().await?;
        if link.version < version {
            return Err(GatewayError::Unavailable {
                reason: "the release of the session's node does not know this request".to_owned(),
                retry_after: RETRY_AFTER,
            });
        }
        link.ask(frame).await
    }
}

impl RemoteGatewayInner {
    fn up(&self) -> Option<Arc<GatewayLink>> {
        let link = self.link.lock();
        link.as_ref().filter(|link| link.is_up()).cloned()
    }

    async fn dial(&self) -> Result<Arc<GatewayLink>, GatewayError> {
        let mut dialling = self.dialling.lock().await;
        if let Some(link) = self.up() {
            return Ok(link);
        }
        let unreachable = |reason| GatewayError::Unsent { reason };
        if let Some((until, why)) = &dialling.resting
            && Instant::now() < *until
        {
            return Err(unreachable(why.clone()));
        }
        match connect::connect(&self.from, self.node.as_ref(), &self.address, &self.config).await {
            Ok(link) => {
                dialling.backoff.reset();
                dialling.resting = None;
                *self.link.lock() = Some(Arc::clone(&link));
                Ok(link)
            }
            Err(error) => {
                let why = format!("{}: {error}", self.address);
                let rest = dialling.backoff.pause();
                dialling.resting = Some((Instant::now() + rest, why.clone()));
                Err(unreachable(why))
            }
        }
    }
}

impl Drop for RemoteGatewayInner {
    fn drop(&mut self) {
        if let Some(link) = self.link.lock().take() {
            link.close();
        }
    }
}

#[async_trait]
impl SessionGateway for RemoteGateway {
    async fn open(&self, open: OpenSession) -> Result<Opened, GatewayError> {
        let mut open = open_out(open, self.relayed);
        let reply = self.ask(|flight| {
            open.flight = flight;
            Frame::Open(open)
        });
        match reply.await? {
            GatewayReply::Opened(opened) => Ok(opened),
            other => Err(other.unexpected()),
        }
    }

    async fn deliver(&self, to: &SessionRef, post: Post) -> Result<Delivered, GatewayError> {
        let link = self.link().await?;
        if link.version < versions::BINDINGS && post.is_bound() {
            // An older node would run the call at another worker. The error tells the edge that its binding does not
            // hold.
            let reason = "its release does not know where edges bind calls".to_owned();
            return Err(match post.repeated {
                true => GatewayError::Unreachable { reason },
                false => GatewayError::WorkerAway { reason },
            });
        }
        let mut deliver = deliver_out(to, post, self.relayed);
        let reply = link.ask(|flight| {
            deliver.flight = flight;
            Frame::Deliver(deliver)
        });
        match reply.await? {
            GatewayReply::Json(text) => Ok(Delivered::Json(text)),
            GatewayReply::Accepted => Ok(Delivered::Accepted),
            GatewayReply::Stream(stream) => Ok(Delivered::Stream(stream)),
            GatewayReply::Task(task) => Ok(Delivered::Task(task)),
            other => Err(other.unexpected()),
        }
    }

    async fn listen(
        &self,
        to: &SessionRef,
        cursor: Option<EventId>,
    ) -> Result<EventStream, GatewayError> {
        let reply = self.ask(|flight| {
            Frame::Listen(Listen {
                flight,
                session: to.session.as_str().to_owned(),
                principal: to.principal.as_str().to_owned(),
                cursor: cursor.map(event_id_out),
                relayed: self.relayed,
                trace: trace_out(to.trace.as_ref()),
                hinted: to.hinted,
            })
        });
        match reply.await? {
            GatewayReply::Stream(stream) => Ok(stream),
            other => Err(other.unexpected()),
        }
    }

    async fn close(&self, to: &SessionRef) -> Result<(), GatewayError> {
        let reply = self.ask(|flight| {
            Frame::CloseSession(CloseSession {
                flight,
                session: to.session.as_str().to_owned(),
                principal: to.principal.as_str().to_owned(),
                relayed: self.relayed,
                trace: trace_out(to.trace.as_ref()),
                hinted: to.hinted,
            })
        });
        match reply.await? {
            GatewayReply::Closed => Ok(()),
            other => Err(other.unexpected()),
        }
    }

    fn new_task(&self) -> Result<SessionId, GatewayError> {
        let node = self.shared.node.as_ref();
        let node = node.ok_or_else(|| GatewayError::Unavailable {
            reason: format!("the node at {} is not known by name", self.shared.address),
            retry_after: RETRY_AFTER,
        })?;
        Ok(SessionId::of_task_opened_by(node))
    }

    async fn adopt(&self, to: &SessionRef, call: AdoptCall) -> Result<Task, GatewayError> {
        let mut adopt = adopt_out(to, call, self.relayed);
        let reply = self.ask_of_version(versions::TASKS, |flight| {
            adopt.flight = flight;
            Frame::Adopt(Box::new(adopt))
        });
        reply.await?.into_task()
    }

    async fn ask_task(&self, to: &SessionRef, request: TaskRequest) -> Result<Task, GatewayError> {
        let mut ask = ask_out(to, request, self.relayed);
        let reply = self.ask_of_version(versions::TASKS, |flight| {
            ask.flight = flight;
            Frame::AskTask(ask)
        });
        reply.await?.into_task()
    }

    async fn until_over(
        &self,
        to: &SessionRef,
        requests: Option<&[RequestId]>,
    ) -> Result<(), GatewayError> {
        let mut wait = until_over_out(to, requests, self.relayed);
        let reply = self.ask_of_version(versions::TASKS, |flight| {
            wait.flight = flight;
            Frame::UntilOver(wait)
        });
        match reply.await? {
            GatewayReply::Accepted => Ok(()),
            other => Err(other.unexpected()),
        }
    }

    async fn tasks_of(&self, session: &SessionRef) -> Result<Option<SessionTasks>, GatewayError> {
        let mut list = list_out(session, self.relayed);
        let reply = self.ask_of_version(versions::TASKS, |flight| {
            list.flight = flight;
            Frame::ListTasks(list)
        });
        match reply.await? {
            GatewayReply::SessionTasks(made) => Ok(made),
            other => Err(other.unexpected()),
        }
    }
}
