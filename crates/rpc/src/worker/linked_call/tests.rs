use std::task::{Context, Poll, Waker};

use shoal_ports::{AskId, CallFailure};
use tokio::sync::oneshot::error::TryRecvError;

use super::{Arrived, Holder, Left, LinkedCall};
use crate::proto::types::v1::CallOutcome;
use crate::proto::worker::v1::Event;
use crate::proto::worker::v1::event::{CloseStream, Kind};

const PLENTY: u64 = 1 << 20;

fn event(sequence: u64) -> Event {
    Event {
        flight: 7,
        sequence,
        kind: Some(Kind::CloseStream(CloseStream { retry_ms: 1 })),
        ..Event::default()
    }
}

fn end(sequence: u64) -> Event {
    Event {
        kind: Some(Kind::Finished(CallOutcome::default())),
        ..event(sequence)
    }
}

#[test]
fn what_comes_after_the_end_is_left_out() {
    let flight = LinkedCall::new(7, true);
    assert_eq!(flight.event(event(1), PLENTY, false), Arrived::More);
    flight.broken(false);
    assert_eq!(flight.event(end(2), PLENTY, false), Arrived::More);
    let state = flight.state.lock();
    assert_eq!(state.first.as_ref().map(|event| event.sequence), Some(1));
    assert!(state.more.is_empty());
}

#[test]
fn a_call_whose_reader_was_replaced_before_it_heard_anything_is_there() {
    let opened = |flight: &LinkedCall| flight.poll_opened(&mut Context::from_waker(Waker::noop()));
    for replaced in [true, false] {
        let flight = LinkedCall::new(7, false);
        flight.broken(replaced);
        assert!(matches!(opened(&flight), Poll::Ready(Ok(None))));
        assert_eq!(flight.is_replaced(), replaced);
    }
    let flight = LinkedCall::new(7, false);
    let reason = "unknown".to_owned();
    flight.refused(CallFailure::NotExecuted { reason });
    assert!(matches!(opened(&flight), Poll::Ready(Err(_))));
}

#[test]
fn more_than_was_granted_is_noticed() {
    let flight = LinkedCall::new(7, true);
    assert_eq!(flight.event(event(1), 200, false), Arrived::More);
    assert_eq!(flight.event(event(2), 200, false), Arrived::TooMuch);
}

#[test]
fn the_first_word_names_the_reader() {
    let flight = LinkedCall::new(7, false);
    assert_eq!(flight.name(), None);
    flight.accepted(3);
    flight.event(event(1), PLENTY, false);
    flight.broken(false);
    assert_eq!(flight.name(), Some(3));
}

#[test]
fn an_end_tells_the_fate_of_every_answer_and_a_break_of_none() {
    for ends in [true, false] {
        let flight = LinkedCall::new(7, true);
        let mut taken = flight.answers(AskId(1)).unwrap();
        let mut lost = flight.answers(AskId(2)).unwrap();
        flight.answer_taken(AskId(1), true);
        if ends {
            flight.event(end(1), PLENTY, false);
        } else {
            flight.broken(false);
        }
        assert_eq!(taken.try_recv(), Ok(true));
        let expected = match ends {
            true => Ok(false),
            false => Err(TryRecvError::Closed),
        };
        assert_eq!(lost.try_recv(), expected);
        assert_eq!(flight.answers(AskId(3)).is_none(), ends);
    }
}

#[test]
fn a_flight_is_over_when_nobody_holds_it() {
    let flight = LinkedCall::new(7, true);
    flight.accepted(1);
    assert_eq!(flight.leave(Holder::Reader), Left::Steered);
    assert_eq!(flight.leave(Holder::Steer), Left::Empty);
    let flight = LinkedCall::new(8, true);
    assert_eq!(flight.leave(Holder::Both), Left::Empty);
    let flight = LinkedCall::new(9, true);
    flight.event(end(1), PLENTY, false);
    assert_eq!(flight.leave(Holder::Both), Left::Held);
}
