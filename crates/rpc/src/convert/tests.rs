//! Values survive the round trip through messages.

mod strategies;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proptest::option;
use proptest::prelude::{any, proptest};
use prost::Message as _;
use shoal_ports::{
    Announcement, Call, CallFailure, DeliveryId, GatewayError, NodeId, NodeInfo, OpenSession,
    Opened, Post, Principal, Repeat, SessionId, StreamItem, WorkerId, WorkerLoad,
};
use shoal_protocol::{Body, Message};
use tokio::time::Instant;

use self::strategies::{
    binding, body, call, catalog, event, event_id, failure, grant, headers, item, outcome, refusal,
    request, revision, text, trace, transport,
};
use super::call::{call_in, call_out};
use super::catalog::{announcement_in, announcement_out, load_in, load_out};
use super::event::{event_in, event_out};
use super::gateway::{
    error_from_wire, error_to_wire, event_id_in, event_id_out, item_in, item_out, open_in,
    open_out, opened_in, opened_out,
};
use super::node::{node_in, node_out};
use super::outcome::{answer_in, answer_out, failure_in, failure_out};
use super::post::{deliver_in, deliver_out, session_in};
use super::trace::trace_out;
use crate::proto::{node::v1 as node, types::v1 as types, worker::v1 as worker};

fn through<M: prost::Message + Default>(message: &M) -> M {
    M::decode(&message.encode_to_vec()[..]).unwrap()
}

fn same(left: &impl Debug, right: &impl Debug) {
    assert_eq!(format!("{left:?}"), format!("{right:?}"));
}

proptest! {
    #[test]
    fn calls(call in call(Instant::now())) {
        let now = call.deadline - Duration::from_millis(1234);
        let ledger = call.binding.as_ref().and_then(|binding| binding.ledger);
        let back = call_in(through(&call_out(&call, ledger, now)), now).unwrap();
        same(&back, &(call, ledger));
    }

    #[test]
    fn events(event in event(), flight: u64) {
        let message = through(&event_out(flight, event.clone()));
        assert_eq!(message.flight, flight);
        same(&event_in(message).unwrap(), &event);
    }

    #[test]
    fn answers_and_failures(outcome in outcome(), failure in failure()) {
        same(&answer_in(Some(through(&answer_out(outcome.clone())))).unwrap(), &outcome);
        assert_eq!(failure_in(Some(through(&failure_out(failure.clone())))), failure);
    }

    #[test]
    fn announcements(
        catalog in option::of(catalog()),
        pool in text(),
        detail in option::of(text()),
        draining: bool,
    ) {
        let worker = WorkerId::new("w");
        let said = Announcement {
            worker: worker.clone(),
            pool: pool.into(),
            catalog: catalog.map(Arc::new),
            detail,
        };
        let back = announcement_in(&worker, through(&announcement_out(&said, draining))).unwrap();
        assert_eq!(back.pool, said.pool);
        if draining {
            assert!(back.catalog.is_none() && back.detail.is_some());
        } else {
            assert_eq!((back.catalog, back.detail), (said.catalog, said.detail));
        }
    }

    #[test]
    fn loads_and_nodes(counts: [u32; 3], id in text(), flags: [bool; 3], more: (u64, u64)) {
        let [running, queued, capacity] = counts.map(|count| count as usize);
        let load = WorkerLoad { running, queued, capacity };
        assert_eq!(load_in(through(&load_out(load, None))), load);
        let [session, edge, draining] = flags;
        let info = NodeInfo {
            address: format!("{id}:1"),
            id: NodeId::new(id),
            session,
            edge,
            draining,
            starting: false,
            pools: Vec::new(),
            sessions: more.0,
            in_flight: more.1,
            version: "1".to_owned(),
        };
        assert_eq!(node_in(through(&node_out(&info))), info);
    }

    #[test]
    fn posts(
        body in body(),
        delivery: [u8; 16],
        flags: (bool, bool, bool),
        session in text(),
        principal in text(),
        trace in trace(),
        binding in option::of(binding()),
        headers in headers(),
        grant in option::of(grant()),
    ) {
        let mut to = session_in(session, principal, trace_out(trace.as_ref()), flags.2);
        to.headers = headers;
        to.grant = grant;
        let post = Post {
            binding,
            body,
            delivery: DeliveryId::from_bytes(delivery),
            repeated: flags.0,
            repeat: Repeat::Never,
        };
        let message = through(&deliver_out(&to, post.clone(), flags.1));
        assert_eq!(message.relayed, flags.1);
        let (back_to, back) = deliver_in(message).unwrap();
        same(&back_to, &to);
        assert_eq!(back_to.grant, to.grant);
        same(&back, &post);
    }

    #[test]
    fn sessions(
        principal in text(),
        initialize in option::of(request()),
        transport in transport(),
        relayed: bool,
        revision in option::of(revision()),
        response in option::of(any::<Vec<u8>>()),
        trace in trace(),
    ) {
        let open = OpenSession {
            principal: Principal::new(principal.clone()),
            transport,
            initialize,
            trace,
        };
        same(&open_in(through(&open_out(open.clone(), relayed))).unwrap(), &open);
        let opened = Opened {
            session: SessionId::new(principal),
            revision,
            response: response.map(Bytes::from),
        };
        same(&opened_in(through(&opened_out(7, opened.clone()))).unwrap(), &opened);
    }

    #[test]
    fn streams(item in item(), id in event_id(), refusal in refusal()) {
        let mut cursor = id;
        let sent = item_out(7, item.clone(), &mut cursor);
        same(&item_in(through(&sent)).unwrap().unwrap(), &item);
        match (&item, sent.kind) {
            (StreamItem::Event { id, .. } | StreamItem::Prime { id, .. }, _) => {
                assert_eq!(cursor, *id);
            }
            // An older edge sees an event that leaves the client's position unchanged.
            (StreamItem::Passing { data }, Some(node::item::Kind::Event(event))) => {
                assert_eq!((event.id, &event.data), (Some(event_id_out(id)), data));
                assert_eq!(cursor, id);
            }
            _ => assert_eq!(cursor, id),
        }
        assert_eq!(event_id_in(through(&event_id_out(id))), id);
        assert_eq!(error_from_wire(Some(through(&error_to_wire(refusal.clone())))), refusal);
    }

    #[test]
    fn no_message_makes_a_conversion_panic(bytes: Vec<u8>) {
        let now = Instant::now();
        let _ = types::Call::decode(&bytes[..]).map(|call| call_in(call, now));
        let _ = types::CallFailure::decode(&bytes[..]).map(|failure| failure_in(Some(failure)));
        let _ = types::Outcome::decode(&bytes[..]).map(|outcome| answer_in(Some(outcome)));
        let _ = worker::Event::decode(&bytes[..]).map(event_in);
        let _ = worker::Announce::decode(&bytes[..])
            .map(|said| announcement_in(&WorkerId::new("w"), said));
        let _ = node::Deliver::decode(&bytes[..]).map(deliver_in);
        let _ = node::Open::decode(&bytes[..]).map(open_in);
        let _ = node::Item::decode(&bytes[..]).map(item_in);
        let _ = node::GatewayError::decode(&bytes[..]).map(|error| error_from_wire(Some(error)));
    }
}

#[test]
fn times_beyond_all_clocks_are_bounded() {
    let now = Instant::now();
    let forever = types::Call {
        id: Bytes::from_static(&[1; 16]),
        caller: Some(types::Caller {
            revision: "2025-11-25".to_owned(),
            ..types::Caller::default()
        }),
        timeout_ms: u64::MAX,
        ..types::Call::default()
    };
    let (call, _) = call_in(forever, now).unwrap();
    assert!(call.deadline > now);
    assert_eq!(call.repeat, Repeat::Never);
    let over = Call {
        deadline: now,
        ..call
    };
    assert_eq!(
        call_out(&over, None, now + Duration::from_secs(1)).timeout_ms,
        0
    );
}

/// An error about an unreadable message has the null id, which nodes refuse.
#[test]
fn a_response_without_an_id_does_not_end_the_link() {
    let error = br#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}"#;
    let body = Body::from_client(&Bytes::from_static(error), 8).unwrap();
    let to = session_in("s".to_owned(), "alice".to_owned(), None, false);
    let said = through(&deliver_out(&to, Post::new(body), false));
    let (_, post) = deliver_in(said).unwrap();
    let Body::Single(Message::Response(response)) = post.body else {
        panic!("it is a response");
    };
    assert_eq!(response.id.to_json().as_str(), r#""""#);
}

#[test]
fn what_is_not_said_takes_its_stated_default() {
    assert!(matches!(
        failure_in(None),
        CallFailure::OutcomeUnknown { .. }
    ));
    assert!(matches!(error_from_wire(None), GatewayError::Internal(_)));
    assert!(answer_in(None).is_err());
    assert!(event_in(worker::Event::default()).is_none());
    assert!(item_in(node::Item::default()).unwrap().is_none());
}
