use std::sync::Arc;

use axum::body::Body as HttpBody;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::{BoxFuture, pending};
use http::request::Parts;
use shoal_ports::{
    AuthError, Authenticated, ClientInfo, ForwardedHeaders, Grant, GrantWatch, Principal,
};
use shoal_protocol::{Body, RawJson, TraceContext};
use shoal_telemetry::metrics::{self, Direction, metrics};
use tokio::time::Instant;

use crate::authorize;
use crate::backlog::BacklogReader;
use crate::body::{self, Bounds};
use crate::connection::Connection;
use crate::cut_off::CutOff;
use crate::permit::RequestPermit;
use crate::quotas::QuotaPlaces;
use crate::refusal::Refusal;
use crate::refused::RefusedMessage;
use crate::state::EdgeState;

pub(crate) struct Visit<'a> {
    pub(crate) edge: &'a Arc<EdgeState>,
    pub(crate) head: &'a Parts,
    /// When the head or message came. Quotas count by this time.
    pub(crate) came: Instant,
    pub(crate) principal: Principal,
    pub(crate) grant: Option<Arc<Grant>>,
    /// `None` if another task watches the token for the whole connection.
    pub(crate) token: Option<&'a [u8]>,
    pub(crate) trace: Option<TraceContext>,
    pub(crate) places: QuotaPlaces,
}

impl Visit<'_> {
    pub(crate) fn reader(&self) -> BacklogReader {
        let backlog = &self.edge.backlog;
        let connection = Connection::of(&self.head.extensions);
        backlog.reader(&self.principal, connection.map(|it| &it.writing))
    }

    pub(crate) fn client(&self, info: &RawJson) -> ClientInfo {
        match Connection::of(&self.head.extensions) {
            Some(connection) => connection.peer.last_client.named(info),
            None => ClientInfo::new(info.clone()),
        }
    }

    pub(crate) async fn read(
        &self,
        http_body: HttpBody,
        permit: &mut RequestPermit,
    ) -> Result<Bytes, Refusal> {
        let config = &self.edge.config;
        let bounds = Bounds {
            bytes: config.limits.body_bytes,
            within: config.endpoint.body_timeout.get(),
            room: &self.edge.budget,
            principal: &self.principal,
        };
        let (text, room) = body::read(&self.head.headers, http_body, bounds).await?;
        permit.room = room;
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        metrics()
            .http
            .bytes(Direction::In, metrics::Body::Plain, bytes);
        Ok(text)
    }

    pub(crate) fn forwarded(&self) -> ForwardedHeaders {
        let wanted = self.edge.dispatcher.facts().borrow().headers.clone();
        let given = &self.head.headers;
        ForwardedHeaders::new(wanted.iter().flat_map(|name| {
            let values = given.get_all(&**name).iter();
            values.map(move |value| (name.clone(), Bytes::copy_from_slice(value.as_bytes())))
        }))
    }

    pub(crate) fn parse(&self, text: &Bytes) -> Result<Body, RefusedMessage> {
        let body = Body::from_client(text, self.edge.config.limits.nesting)
            .map_err(|invalid| RefusedMessage::of(invalid.id.clone(), invalid))?;
        if let Some(grant) = &self.grant {
            authorize::expect_enough(self.edge, self.head, &self.principal, grant, &body)
                .map_err(|why| RefusedMessage::of(body.request_id(), why))?;
        }
        Ok(body)
    }

    /// Not used for Shoal's own repetition of a message. Coerces arguments, so that all later steps
    /// see the same text as the MCP server.
    pub(crate) async fn admit(
        &self,
        body: &mut Body,
        permit: &mut RequestPermit,
    ) -> Result<(), Refusal> {
        self.edge.load.expect_open(body)?;
        let quotas = &self.edge.quotas;
        permit.places[1] = quotas.admit(&self.principal, body, self.came).await?;
        self.edge.dispatcher.coerce(body);
        Ok(())
    }

    pub(crate) fn until_over(&self) -> BoxFuture<'static, AuthError> {
        self.until_cut_off(|watch| watch.over().boxed())
    }

    /// Expiry does not count.
    pub(crate) fn until_revoked(&self) -> BoxFuture<'static, AuthError> {
        self.until_cut_off(|watch| watch.revoked().boxed())
    }

    fn until_cut_off(
        &self,
        until: impl FnOnce(GrantWatch) -> BoxFuture<'static, AuthError>,
    ) -> BoxFuture<'static, AuthError> {
        if self.token.is_none() {
            return pending().boxed();
        }
        let cut_off = CutOff::of(self.edge, &self.principal, self.head);
        let until = until(self.watch());
        async move {
            let why = until.await;
            cut_off.tell(&why);
            why
        }
        .boxed()
    }

    pub(crate) fn watch(&self) -> GrantWatch {
        let Some(token) = self.token else {
            return GrantWatch::never();
        };
        let known = Authenticated {
            principal: self.principal.clone(),
            grant: self.grant.clone(),
        };
        self.edge.authenticator.watch(token, &known)
    }
}
