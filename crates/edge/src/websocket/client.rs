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

use super::end::{ConnectionEnd, TOKEN_OVER};
use crate::answer;
use crate::backlog::BacklogReader;
use crate::cut_off::CutOff;
use crate::legacy::OpenedSession;
use crate::permit::RequestPermit;
use crate::quotas::QuotaPlaces;
use crate::refusal::Refusal;
use crate::refused::RefusedMessage;
use crate::single_streams::SingleStream;
use crate::state::EdgeState;
use crate::visit::Visit;

pub(super) struct SocketClient {
    pub(super) edge: Arc<EdgeState>,
    pub(super) head: Parts,
    pub(super) principal: Principal,
    pub(super) grant: Mutex<Option<Arc<Grant>>>,
    pub(super) resumable: bool,
}

impl SocketClient {
    pub(super) fn visit(&self, trace: Option<TraceContext>) -> Visit<'_> {
        Visit {
            edge: &self.edge,
            head: &self.head,
            came: Instant::now().into(),
            principal: self.principal.clone(),
            grant: self.grant.lock().clone(),
            token: None,
            trace,
            places: QuotaPlaces::default(),
        }
    }

    /// Counts the message by the client's address first, because no HTTP request has counted it.
    pub(super) async fn admit(
        &self,
        visit: &Visit<'_>,
        body: &mut Body,
        permit: &mut RequestPermit,
    ) -> Result<(), Refusal> {
        let from = self.edge.trusted_proxies.address_of(&self.head);
        permit.places[0] = self.edge.quotas.arrive(from, visit.came).await?;
        visit.admit(body, permit).await
    }

    pub(super) fn reader(&self) -> BacklogReader {
        self.visit(None).reader()
    }

    pub(super) fn refusal(&self, refused: &RefusedMessage, began: Instant) -> Bytes {
        refused.count(&self.edge.recorder, began);
        answer::refusal_text(refused)
    }

    pub(super) fn hear_of_grant(&self, news: GrantNews) -> Result<(), ConnectionEnd> {
        match news {
            GrantNews::Renewed(grant) => *self.grant.lock() = Some(grant),
            GrantNews::Over(why) => {
                CutOff::of(&self.edge, &self.principal, &self.head).tell(&why);
                return Err(TOKEN_OVER);
            }
        }
        Ok(())
    }

    /// After a drain begins, waits for a random time that spreads clients.
    pub(super) async fn sent_away(self: Arc<Self>) {
        self.edge.drain.cancelled().await;
        sleep(self.edge.share_of_return()).await;
    }
}

pub(super) struct SocketSession {
    pub(super) id: SessionId,
    pub(super) events: EventStream,
    /// The stream and session of a client that cannot resume. A drain waits for their running work,
    /// and the session ends with the connection.
    pub(super) single: Option<(SingleStream, OpenedSession)>,
}

impl SocketSession {
    pub(super) fn sent_away(&self) -> Option<CancellationToken> {
        self.single.as_ref().map(|(single, _)| single.end())
    }

    /// The future is ready when the last messages are sent.
    pub(super) fn end(&self) -> Option<BoxFuture<'static, ()>> {
        self.single.as_ref().map(|(_, opened)| opened.end())
    }
}
