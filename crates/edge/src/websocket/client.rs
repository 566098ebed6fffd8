//! Whoever is at the other end of a connection, and the session that it has there.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::request::Parts;
use parking_lot::Mutex;
use shoal_ports::{EventStream, Grant, GrantNews, Principal, SessionId};
use shoal_protocol::{Body, TraceContext};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::closing::{End, TOKEN_OVER};
use crate::answer;
use crate::backlog::Reader;
use crate::cut_off::CutOff;
use crate::legacy::OpenedSession;
use crate::permit::RequestPermit;
use crate::quotas::Places;
use crate::refusal::Refusal;
use crate::refused::Refused;
use crate::single_streams::SingleStream;
use crate::state::EdgeState;
use crate::visit::Visit;

/// Whoever is at the other end.
pub(super) struct Client {
    pub(super) edge: Arc<EdgeState>,
    /// The head of the handshake.
    pub(super) head: Parts,
    pub(super) principal: Principal,
    /// What is granted to it now, if that is more than who it is.
    pub(super) grant: Mutex<Option<Arc<Grant>>>,
    /// Whether it can come back, since it is told ids.
    pub(super) resumable: bool,
}

impl Client {
    /// A visit for a message with this span.
    pub(super) fn visit(&self, trace: Option<TraceContext>) -> Visit<'_> {
        Visit {
            edge: &self.edge,
            head: &self.head,
            came: Instant::now().into(),
            principal: self.principal.clone(),
            grant: self.grant.lock().clone(),
            token: None,
            trace,
            places: Places::default(),
        }
    }

    /// Lets a message in. There is no request for it that was counted by its address.
    pub(super) async fn admit(
        &self,
        visit: &Visit<'_>,
        body: &mut Body,
        permit: &mut RequestPermit,
    ) -> Result<(), Refusal> {
        let from = self.edge.config.trusted_proxies.address_of(&self.head);
        permit.places[0] = self.edge.quotas.arrive(from, visit.came).await?;
        visit.admit(body, permit).await
    }

    /// Whoever gets what is written.
    pub(super) fn reader(&self) -> Reader {
        self.visit(None).reader()
    }

    /// A refusal as a message.
    pub(super) fn refusal(&self, refused: &Refused, began: Instant) -> Bytes {
        refused.count(&self.edge.recorder, began);
        answer::refusal_text(refused)
    }

    /// Its token was looked at again.
    pub(super) fn hear_of_grant(&self, news: GrantNews) -> Result<(), End> {
        match news {
            GrantNews::Renewed(grant) => *self.grant.lock() = Some(grant),
            GrantNews::Over(why) => {
                CutOff::of(&self.edge, &self.principal, &self.head).tell(&why);
                return Err(TOKEN_OVER);
            }
        }
        Ok(())
    }

    /// Ready when the node drains, and the client is to go: not all at once.
    pub(super) async fn sent_away(self: Arc<Self>) {
        self.edge.drain.cancelled().await;
        sleep(self.edge.share_of_return()).await;
    }
}

/// The session of a connection.
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) events: EventStream,
    /// Of a client that cannot come back: a drain waits for what is under way, and the session ends with the connection.
    pub(super) single: Option<(SingleStream, OpenedSession)>,
}

impl Session {
    /// Fires when whoever drains the node sends a client away that cannot come back.
    pub(super) fn sent_away(&self) -> Option<CancellationToken> {
        self.single.as_ref().map(|(single, _)| single.end())
    }

    /// Ends the session of a client that cannot come back; ready when it has said what it has to say.
    pub(super) fn end(&self) -> Option<BoxFuture<'static, ()>> {
        self.single.as_ref().map(|(_, opened)| opened.end())
    }
}
