use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};

use shoal_ports::{AskId, CallEventKind};
use shoal_protocol::Method;

use super::CallRecord;
use crate::runtime::tests::script::call;

fn record() -> Arc<CallRecord> {
    CallRecord::new(&call(), Weak::new(), false)
}

fn ask(record: &CallRecord) -> AskId {
    let question = |ask| CallEventKind::Ask {
        ask,
        method: Method::RootsList,
        params: None,
    };
    record.open_ask(question, 1).expect("no other is open").0
}

fn read(record: &CallRecord, reader: u64) -> Option<CallEventKind> {
    match record.poll_read(reader, Waker::noop()) {
        Poll::Ready(event) => Some(event.expect("it reads").kind),
        Poll::Pending => None,
    }
}

#[test]
fn a_reader_hears_only_of_the_end_of_questions_that_it_has() {
    let record = record();
    let reader = record.attach(0);
    let unread = ask(&record);
    record.withdraw_ask(unread);
    assert!(read(&record, reader).is_none());
    let had = ask(&record);
    assert!(matches!(read(&record, reader), Some(CallEventKind::Ask { ask, .. }) if ask == had));
    record.withdraw_ask(had);
    assert!(matches!(read(&record, reader), Some(CallEventKind::Withdrawn { ask }) if ask == had));
}

/// The earlier reader may have passed the question to the client.
#[test]
fn a_later_reader_hears_of_the_end_of_an_earlier_ones_question() {
    for reads_on in [true, false] {
        let record = record();
        let reader = record.attach(0);
        let had = ask(&record);
        read(&record, reader);
        let later = record.attach(u64::from(reads_on));
        record.withdraw_ask(had);
        assert!(
            matches!(read(&record, later), Some(CallEventKind::Withdrawn { ask }) if ask == had)
        );
    }
}

#[test]
fn questions_that_are_given_up_take_no_room_before_a_reader_that_stalls() {
    let record = record();
    record.attach(0);
    for _ in 0..1000 {
        let given_up = ask(&record);
        record.withdraw_ask(given_up);
    }
    assert_eq!(record.state.lock().events.bytes(), 0);
}
