use std::sync::Arc;

use bytes::Bytes;
use shoal_ports::{
    Binding, DeliveryId, ForwardedHeaders, Grant, Memo, Post, Principal, Repeat, SessionId,
    SessionRef, WorkerId,
};
use shoal_protocol::{
    Body, InvalidMessage, Message, Method, Notification, RawJson, Request, RequestId, Response,
    RpcError,
};

use super::call::{headers_in, headers_out, ledger_in, ledger_out};
use super::outcome::{answer_in, answer_out, error_in, error_out};
use super::trace::{trace_in, trace_out};
use super::{sixteen, trusted};
use crate::error::Malformed;
use crate::proto::node::v1 as wire;
use crate::proto::node::v1::member::Member;
use crate::proto::types::v1::{self as types, Trace};

pub(crate) fn deliver_out(to: &SessionRef, post: Post, relayed: bool) -> wire::Deliver {
    let (batch, members) = match post.body {
        Body::Single(message) => (false, vec![message_out(message)]),
        Body::Batch(members) => (true, members.into_iter().map(member_out).collect()),
    };
    wire::Deliver {
        flight: 0,
        session: to.session.as_str().to_owned(),
        principal: to.principal.as_str().to_owned(),
        delivery: Bytes::copy_from_slice(post.delivery.as_bytes()),
        repeated: post.repeated,
        relayed,
        batch,
        members,
        trace: trace_out(to.trace.as_ref()),
        hinted: to.hinted,
        headers: headers_out(&to.headers),
        grant: to.grant.as_ref().map(|grant| grant_out(grant)),
        binding: post.binding.map(|binding| wire::Binding {
            worker: binding.worker.to_string(),
            ledger: binding.ledger.map(ledger_out),
        }),
    }
}

pub(crate) fn deliver_in(said: wire::Deliver) -> Result<(SessionRef, Post), Malformed> {
    let mut members = said.members.into_iter().map(member_in);
    let body = if said.batch {
        Body::Batch(members.collect::<Result<_, _>>()?)
    } else {
        match (members.next().transpose()?, members.next()) {
            (Some(Ok(message)), None) => Body::Single(message),
            _ => return Err(Malformed("body: not exactly one message")),
        }
    };
    let mut to = session_in(said.session, said.principal, said.trace, said.hinted);
    let binding = said
        .binding
        .map(|binding| binding_in(binding.worker, binding.ledger))
        .transpose()?;
    let post = Post {
        body,
        delivery: DeliveryId::from_bytes(sixteen(&said.delivery, "delivery id")?),
        repeated: said.repeated,
        binding,
        repeat: Repeat::Never,
    };
    to.headers = headers_in(said.headers);
    to.grant = said.grant.map(grant_in).map(Arc::new);
    Ok((to, post))
}

fn grant_out(grant: &Grant) -> wire::Grant {
    wire::Grant {
        scopes: grant.scopes.iter().map(ToString::to_string).collect(),
        claims: grant.claims.to_bytes(),
    }
}

/// The edge checked the expiry before it sent the request.
fn grant_in(said: wire::Grant) -> Grant {
    Grant {
        scopes: said.scopes.into_iter().map(Arc::from).collect(),
        claims: trusted(said.claims),
        until: None,
        read: Memo::default(),
    }
}

pub(super) fn binding_in(
    worker: String,
    ledger: Option<types::Ledger>,
) -> Result<Binding, Malformed> {
    if worker.is_empty() {
        return Err(Malformed("binding: it names no worker"));
    }
    Ok(Binding {
        worker: WorkerId::new(worker),
        ledger: ledger.map(ledger_in),
    })
}

pub(crate) fn session_in(
    session: String,
    principal: String,
    trace: Option<Trace>,
    hinted: bool,
) -> SessionRef {
    SessionRef {
        session: SessionId::new(session),
        principal: Principal::new(principal),
        trace: trace_in(trace),
        hinted,
        headers: ForwardedHeaders::default(),
        grant: None,
    }
}

fn member_out(member: Result<Message, InvalidMessage>) -> wire::Member {
    match member {
        Ok(message) => message_out(message),
        Err(invalid) => wire::Member {
            member: Some(Member::Invalid(wire::Invalid {
                id: invalid.id.map(id_out),
                error: Some(error_out(invalid.error)),
            })),
        },
    }
}

fn message_out(message: Message) -> wire::Member {
    let member = match message {
        Message::Request(request) => Member::Request(request_out(request)),
        Message::Notification(notification) => Member::Notification(wire::Notification {
            method: notification.method.as_str().to_owned(),
            params: notification.params.map(RawJson::into_bytes),
        }),
        Message::Response(response) => Member::Response(wire::Response {
            // Nodes refuse the null id of an error about an unreadable message. No question has the empty id.
            id: match response.id.names_nothing() {
                true => Bytes::from_static(b"\"\""),
                false => id_out(response.id),
            },
            outcome: Some(answer_out(response.outcome)),
        }),
    };
    wire::Member {
        member: Some(member),
    }
}

fn member_in(member: wire::Member) -> Result<Result<Message, InvalidMessage>, Malformed> {
    Ok(Ok(match member.member {
        Some(Member::Request(request)) => Message::Request(request_in(request)?),
        Some(Member::Notification(said)) => Message::Notification(Notification {
            method: Method::from_name(&said.method),
            params: said.params.map(trusted),
        }),
        Some(Member::Response(said)) => Message::Response(Response {
            id: id_in(said.id)?,
            outcome: answer_in(said.outcome)?,
        }),
        Some(Member::Invalid(said)) => {
            return Ok(Err(InvalidMessage {
                id: said.id.map(id_in).transpose()?,
                error: said.error.map_or_else(
                    || RpcError::invalid_request("the message is invalid"),
                    error_in,
                ),
            }));
        }
        None => return Err(Malformed("body: a member of an unknown kind")),
    }))
}

pub(crate) fn request_out(request: Request) -> wire::Request {
    wire::Request {
        id: id_out(request.id),
        method: request.method.as_str().to_owned(),
        params: request.params.map(RawJson::into_bytes),
    }
}

pub(crate) fn request_in(request: wire::Request) -> Result<Request, Malformed> {
    Ok(Request {
        id: id_in(request.id)?,
        method: Method::from_name(&request.method),
        params: request.params.map(trusted),
    })
}

pub(super) fn id_out(id: RequestId) -> Bytes {
    id.to_json().into_bytes()
}

pub(super) fn id_in(id: Bytes) -> Result<RequestId, Malformed> {
    RequestId::from_json(&trusted(id)).map_err(|_| Malformed("request id"))
}
