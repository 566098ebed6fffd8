use shoal_ports::{AskId, CallEventKind, CallOutcome};
use shoal_protocol::{Method, RawJson};

use super::{EventBuffer, KEPT_BYTES, KEPT_EVENTS};

const NOBODY: u64 = u64::MAX;

fn progress(bytes: usize) -> CallEventKind {
    CallEventKind::Notification {
        method: Method::Progress,
        params: Some(RawJson::of(&"x".repeat(bytes))),
    }
}

fn ask(ask: u64) -> CallEventKind {
    CallEventKind::Ask {
        ask: AskId(ask),
        method: Method::RootsList,
        params: None,
    }
}

fn sequences(buffer: &EventBuffer) -> Vec<u64> {
    let mut after = 0;
    std::iter::from_fn(|| {
        after = buffer.next_after(after)?.sequence;
        Some(after)
    })
    .collect()
}

#[test]
fn oldest_notifications_go_and_questions_stay() {
    let mut buffer = EventBuffer::default();
    buffer.push(progress(1), NOBODY);
    buffer.push(ask(1), NOBODY);
    for _ in 0..KEPT_EVENTS {
        buffer.push(progress(1), NOBODY);
    }
    buffer.end(CallOutcome::Result(RawJson::from_static("{}")));
    let kept = sequences(&buffer);
    assert_eq!(kept.first(), Some(&2), "the question");
    assert_eq!(kept.len(), KEPT_EVENTS + 1);
    assert_eq!(kept.last(), Some(&buffer.last()), "the end");
}

#[test]
fn closed_questions_are_forgotten() {
    let mut buffer = EventBuffer::default();
    for number in 1..=3 {
        buffer.push(ask(number), NOBODY);
    }
    let before = buffer.bytes();
    buffer.forget_ask(AskId(2));
    assert_eq!(sequences(&buffer), [1, 3]);
    assert!(buffer.bytes() < before);
}

#[test]
fn events_that_were_not_read_are_not_dropped() {
    let mut buffer = EventBuffer::default();
    buffer.push(progress(KEPT_BYTES), 0);
    assert!(!buffer.has_room(0));
    assert_eq!(sequences(&buffer), [1]);
    assert!(buffer.has_room(1), "what was read makes room");
}

#[test]
fn bytes_are_bounded_too() {
    let mut buffer = EventBuffer::default();
    for _ in 0..8 {
        buffer.push(progress(KEPT_BYTES / 4), NOBODY);
    }
    assert!(buffer.bytes() <= KEPT_BYTES);
    assert_eq!(sequences(&buffer), [6, 7, 8]);
}
