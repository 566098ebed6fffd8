//! A request whose caller is known and welcome, and its body.

use std::sync::Arc;

use axum::body::Body as HttpBody;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::{BoxFuture, pending};
use http::request::Parts;
use shoal_ports::{
    AuthError, Authenticated, ClientInfo, ForwardedHeaders, Grant, GrantWatch, Principal,
};
use shoal_protocol::{Body, Message, RawJson, RequestId, TraceContext};
use shoal_telemetry::metrics::{self, Direction, metrics};
use tokio::time::Instant;

use crate::authorize;
use crate::backlog::Reader;
use crate::body::{self, Bounds};
use crate::connection::Connection;
use crate::cut_off::CutOff;
use crate::permit::RequestPermit;
use crate::quotas::Places;
use crate::refusal::Refusal;
use crate::refused::Refused;
use crate::state::EdgeState;

/// A request whose caller is known and welcome.
pub(crate) struct Visit<'a> {
    pub(crate) edge: &'a Arc<EdgeState>,
    pub(crate) head: &'a Parts,
    /// When its head came, or the message in it: as of then it is counted. The clock is read once for all that asks for it.
    pub(crate) came: Instant,
    pub(crate) principal: Principal,
    /// What the caller showed, if that was more than who it is.
    pub(crate) grant: Option<Arc<Grant>>,
    /// The token by which it was let in, unless it came on a connection that is watched as a whole.
    pub(crate) token: Option<&'a [u8]>,
    /// The span of the request, or of the message in it: the parent of what is done for it.
    pub(crate) trace: Option<TraceContext>,
    /// What it holds of quotas of its address.
    pub(crate) places: Places,
}

impl Visit<'_> {
    /// Whoever gets the answer.
    pub(crate) fn reader(&self) -> Reader {
        let backlog = &self.edge.backlog;
        let connection = Connection::of(&self.head.extensions);
        backlog.reader(&self.principal, connection.map(|it| &it.writing))
    }

    /// The client that says this of itself.
    pub(crate) fn client(&self, info: &RawJson) -> ClientInfo {
        match Connection::of(&self.head.extensions) {
            Some(connection) => connection.peer.last_client.named(info),
            None => ClientInfo::new(info.clone()),
        }
    }

    /// Reads the body within the limits. Where it takes room, the permit holds that.
    pub(crate) async fn read(
        &self,
        http_body: HttpBody,
        permit: &mut RequestPermit,
    ) -> Result<Bytes, Refusal> {
        let config = &self.edge.config;
        let bounds = Bounds {
            bytes: config.limits.body_bytes,
            within: config.timing.body,
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

    /// What the request says in headers that pools ask for.
    pub(crate) fn forwarded(&self) -> ForwardedHeaders {
        let wanted = self.edge.dispatcher.facts().borrow().headers.clone();
        let given = &self.head.headers;
        ForwardedHeaders::new(wanted.iter().flat_map(|name| {
            let values = given.get_all(&**name).iter();
            values.map(move |value| (name.clone(), Bytes::copy_from_slice(value.as_bytes())))
        }))
    }

    /// Parses the body within the limits, and checks that its caller may send it.
    pub(crate) fn parse(&self, text: &Bytes) -> Result<Body, Refused> {
        let body = Body::from_client(text, self.edge.config.limits.nesting)
            .map_err(|invalid| Refused::of(invalid.id.clone(), invalid))?;
        if let Some(grant) = &self.grant {
            authorize::expect_enough(self.edge, self.head, &self.principal, grant, &body)
                .map_err(|why| Refused::of(request_id(&body), why))?;
        }
        Ok(body)
    }

    /// Lets a message in, once for each that a client sends: what Shoal itself repeats of it does not come by here. A call needs a
    /// node that lives long enough, and what the message asks for is counted against the caller's quotas. Whoever reads the
    /// message afterwards reads what its server will.
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

    /// Ready when the caller's token lets nobody in any more; the end of the stream is told.
    pub(crate) fn until_over(&self) -> BoxFuture<'static, AuthError> {
        self.until_cut_off(|watch| watch.over().boxed())
    }

    /// The same when the token was taken back, and not by its own end.
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

    /// Watches what the caller showed, for an answer that stays open.
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

/// The id of the request in a body that holds just one.
pub(crate) fn request_id(body: &Body) -> Option<RequestId> {
    match body {
        Body::Single(Message::Request(request)) => Some(request.id.clone()),
        _ => None,
    }
}
