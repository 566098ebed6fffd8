use shoal_ports::SessionId;
use shoal_protocol::{Method, Outcome, RawJson, RequestId};
use tokio::sync::mpsc;

use super::{
    Association, Boarded, Flights, Landing, MAX_OWED, Message, Passenger, Quarantine, Question,
};

fn passenger(session: &str, askable: bool) -> (Passenger, mpsc::Receiver<Message>) {
    let (inbox, received) = mpsc::channel(16);
    let passenger = Passenger {
        inbox,
        progress_token: None,
        askable,
        wants_log: true,
        session: Some(SessionId::new(session)),
    };
    (passenger, received)
}

fn board(flights: &Flights, session: &str, written: bool) -> Boarded {
    let boarded = flights.board(Some(passenger(session, true).0)).unwrap();
    if written {
        assert!(boarded.stage.begin_writing());
    }
    boarded
}

fn ask(flights: &Flights, association: Association) -> bool {
    ask_method(flights, Method::Elicit, association)
}

fn ask_method(flights: &Flights, method: Method, association: Association) -> bool {
    let question = Question {
        id: RequestId::from_number(1),
        method,
        params: None,
    };
    flights.ask(question, association).is_ok()
}

#[test]
fn a_cancelled_call_is_owed_until_it_is_answered() {
    let flights = Flights::default();
    let queued = board(&flights, "x", false);
    assert!(
        !flights.abandon(queued.id),
        "it never reached the connection"
    );
    let written = board(&flights, "x", true);
    assert!(flights.abandon(written.id));
    assert_eq!(
        flights.quarantine(),
        Quarantine::AllBut(SessionId::new("x"))
    );
    let other = board(&flights, "y", true);
    assert!(flights.abandon(other.id));
    assert_eq!(flights.quarantine(), Quarantine::Everybody);
    for id in [written.id, other.id] {
        let late = Outcome::Result(RawJson::from_static("{}"));
        assert!(!flights.land(id, Landing::Answered(late)), "nobody waits");
    }
    assert_eq!(flights.quarantine(), Quarantine::None);
}

#[test]
fn what_is_owed_is_bounded() {
    let flights = Flights::default();
    for _ in 0..=MAX_OWED {
        let id = board(&flights, "x", true).id;
        flights.abandon(id);
    }
    assert_eq!(flights.quarantine(), Quarantine::Everybody);
}

#[test]
fn a_question_needs_one_call_that_may_be_asked() {
    let flights = Flights::default();
    assert!(!ask(&flights, Association::OnlyCall));
    let plain = flights.board(Some(passenger("x", false).0)).unwrap();
    assert!(!ask(&flights, Association::OnlyCall));
    flights.abandon(plain.id);
    let (first, mut received) = passenger("x", true);
    flights.board(Some(first)).unwrap();
    assert!(ask(&flights, Association::OnlyCall));
    assert!(matches!(received.try_recv(), Ok(Message::Ask(..))));
    let _second = flights.board(Some(passenger("y", false).0)).unwrap();
    assert!(!ask(&flights, Association::OnlyCall));
}

#[test]
fn an_early_question_waits_for_the_sessions_first_call_only() {
    let flights = Flights::default();
    assert!(ask(&flights, Association::NewestCall));
    let (first, mut received) = passenger("x", false);
    let first = flights.board(Some(first)).unwrap();
    assert!(matches!(received.try_recv(), Ok(Message::Ask(..))));
    flights.abandon(first.id);
    assert!(!ask(&flights, Association::NewestCall));
    let roots = ask_method(&flights, Method::RootsList, Association::NewestCall);
    assert!(roots, "roots are not about a call");
}

#[test]
fn the_end_tells_what_was_written_and_refuses_the_rest() {
    let flights = Flights::default();
    let mut queued = board(&flights, "x", false);
    let mut written = board(&flights, "x", true);
    flights.end("gone".into());
    flights.end("later".into());
    for (boarded, expected) in [(&mut queued, false), (&mut written, true)] {
        let Ok(Landing::Lost { written, reason }) = boarded.landing.try_recv() else {
            panic!()
        };
        assert_eq!((written, &*reason), (expected, "gone"));
    }
    assert!(flights.board(None).is_err_and(|reason| &*reason == "gone"));
}
