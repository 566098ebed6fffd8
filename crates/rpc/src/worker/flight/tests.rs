//! What a flight makes of frames that come late, twice, or not at all.

use std::task::{Context, Poll, Waker};

use shoal_ports::{AskId, CallFailure, CallId};
use shoal_protocol::{Outcome, RawJson};
use tokio::sync::oneshot;

use super::{Arrived, Begin, Flight, Holder, Left};
use crate::proto::types::v1::CallOutcome;
use crate::proto::worker::v1::event::{CloseStream, Kind};
use crate::proto::worker::v1::node_frame::Frame;
use crate::proto::worker::v1::{self as wire};

const PLENTY: u64 = 1 << 20;

fn attached() -> Flight {
    Flight::new(7, Begin::Attach(CallId::generate(), 0, None), 1)
}

fn event(sequence: u64) -> wire::Event {
    wire::Event {
        flight: 7,
        sequence,
        kind: Some(Kind::CloseStream(CloseStream { retry_ms: 1 })),
    }
}

fn end(sequence: u64) -> wire::Event {
    wire::Event {
        kind: Some(Kind::Finished(CallOutcome::default())),
        ..event(sequence)
    }
}

/// The last event that the worker is told of, and whether the flight stays.
fn resumed(flight: &Flight, link: u64) -> (Option<u64>, bool) {
    let (frames, stays) = flight.resume(link);
    let after = frames.iter().find_map(|frame| match frame {
        Frame::Attach(attach) => Some(attach.after),
        _ => None,
    });
    (after, stays)
}

#[test]
fn what_an_earlier_link_still_brings_is_out_of_date() {
    let flight = attached();
    assert_eq!(flight.event(1, event(1), PLENTY), Arrived::More);
    assert_eq!(resumed(&flight, 2), (Some(1), true));
    // The worker was asked for this again: whoever believed it twice would run the call twice.
    let refusal = CallFailure::NotExecuted {
        reason: "late".to_owned(),
    };
    assert!(!flight.over(1, refusal) && !flight.lost(1, true));
    assert_eq!(flight.event(1, end(2), PLENTY), Arrived::More);
    assert_eq!(resumed(&flight, 3), (Some(1), true));
    assert_eq!(flight.event(3, end(2), PLENTY), Arrived::Last);
    assert_eq!(resumed(&flight, 4), (None, false));
}

#[test]
fn a_call_whose_reader_was_replaced_before_it_heard_anything_is_there() {
    let opened = |flight: &Flight| flight.poll_opened(&mut Context::from_waker(Waker::noop()));
    let flight = attached();
    assert!(flight.lost(1, true));
    assert!(matches!(opened(&flight), Poll::Ready(Ok(None))));
    assert!(flight.is_replaced());
    let flight = attached();
    assert!(flight.lost(1, false));
    assert!(matches!(opened(&flight), Poll::Ready(Err(_))));
}

#[test]
fn an_event_that_comes_twice_counts_once() {
    let flight = attached();
    for sequence in [1, 2, 2, 1, 3] {
        flight.event(1, event(sequence), PLENTY);
    }
    assert_eq!(resumed(&flight, 2), (Some(3), true));
    assert_eq!(flight.state.lock().more.len(), 2);
}

#[test]
fn more_than_was_granted_is_noticed() {
    let flight = attached();
    assert_eq!(flight.event(1, event(1), 200), Arrived::More);
    assert_eq!(flight.event(1, event(2), 200), Arrived::TooMuch);
}

#[test]
fn a_flight_that_nobody_holds_stays_until_its_answers_have_arrived() {
    let flight = attached();
    flight.accepted(1);
    let (taken, mut open) = oneshot::channel();
    let answer = Outcome::Result(RawJson::from_static("1"));
    assert!(flight.answer(AskId(1), answer.clone(), taken).is_some());
    // A second answer is none.
    let (again, _) = oneshot::channel();
    assert!(flight.answer(AskId(1), answer, again).is_none());
    assert!(flight.leave(Holder::Steer) == Left::Held);
    assert!(flight.leave(Holder::Reader) == Left::Steered);
    let (frames, stays) = flight.resume(2);
    let answers = frames
        .iter()
        .filter(|frame| matches!(frame, Frame::Answer(_)));
    assert_eq!((answers.count(), stays), (2, true));
    assert!(flight.answer_taken(AskId(1), true));
    assert_eq!(open.try_recv(), Ok(true));
    assert!(!resumed(&flight, 3).1);
}

#[test]
fn an_end_settles_every_answer() {
    let flight = attached();
    let (taken, mut open) = oneshot::channel();
    let answer = Outcome::Result(RawJson::from_static("1"));
    flight.answer(AskId(1), answer, taken);
    flight.event(1, end(1), PLENTY);
    assert!(open.try_recv().is_err());
    assert!(flight.cancel("too late").is_none());
    assert!(flight.leave(Holder::Both) == Left::Held);
}
