use super::{CallCheck, SeenIds};
use crate::mcp::violation::Violation;

const STEPS: usize = 4;

fn progress(step: impl std::fmt::Display) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":9,"progress":{step},"total":4}}}}"#
    )
}

fn answer() -> String {
    r#"{"jsonrpc":"2.0","id":9,"result":{"content":[{"type":"text","text":"done"}]}}"#.to_owned()
}

fn violations(messages: &[String]) -> Vec<Violation> {
    let mut check = CallCheck::new(9, STEPS, Some("done".to_owned()));
    for message in messages {
        check.message(message);
    }
    check
        .finish()
        .iter()
        .map(|finding| finding.violation)
        .collect()
}

fn whole() -> Vec<String> {
    let mut messages: Vec<String> = (1..=STEPS).map(progress).collect();
    messages.push(answer());
    messages
}

#[test]
fn a_whole_stream_has_no_findings() {
    assert_eq!(violations(&whole()), []);
}

#[test]
fn any_loss_is_found() {
    for lost in 0..STEPS {
        let mut messages = whole();
        messages.remove(lost);
        assert_eq!(
            violations(&messages),
            [Violation::Lost],
            "step {}",
            lost + 1
        );
    }
}

#[test]
fn any_repetition_is_found() {
    for repeated in 0..STEPS {
        let mut messages = whole();
        messages.insert(repeated + 1, messages[repeated].clone());
        assert_eq!(violations(&messages), [Violation::Duplicated]);
    }
}

#[test]
fn any_swap_is_found() {
    for swapped in 0..STEPS {
        let mut messages = whole();
        messages.swap(swapped, swapped + 1);
        assert_eq!(
            violations(&messages),
            [Violation::OutOfOrder],
            "at {swapped}"
        );
    }
}

#[test]
fn a_missing_answer_is_found() {
    let mut messages = whole();
    messages.pop();
    assert_eq!(violations(&messages), [Violation::MissingAnswer]);
}

#[test]
fn a_second_answer_is_found() {
    let mut messages = whole();
    messages.push(answer());
    assert_eq!(violations(&messages), [Violation::ExtraAnswer]);
}

#[test]
fn an_answer_to_another_request_or_with_another_text_is_found() {
    for wrong in [
        answer().replace(":9,", ":8,"),
        answer().replace("done", "gone"),
    ] {
        let mut messages = whole();
        *messages.last_mut().unwrap() = wrong;
        assert_eq!(violations(&messages), [Violation::WrongAnswer]);
    }
}

#[test]
fn what_belongs_to_another_call_is_found() {
    for stray in [
        progress(1).replace(":9,", ":8,"),
        progress(1).replace(":9,", r#":"9","#),
        progress(5),
        progress(0),
        progress(1.5),
        "not JSON".to_owned(),
    ] {
        let mut messages = whole();
        messages.insert(0, stray.clone());
        assert_eq!(violations(&messages), [Violation::Stray], "{stray}");
    }
}

#[test]
fn other_notifications_are_no_concern() {
    let mut messages = whole();
    messages.insert(
        1,
        r#"{"method":"notifications/message","params":{}}"#.to_owned(),
    );
    assert_eq!(violations(&messages), []);
}

#[test]
fn an_id_counts_as_new_once() {
    let mut ids = SeenIds::default();
    assert!(ids.insert("1/0") && ids.insert("2/0") && !ids.insert("1/0"));
}
