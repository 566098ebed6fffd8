use super::{Message, check_text};
use crate::failure::Failure;

const RESULT: &str = r#"{"content":[{"type":"text","text":"a\"b"}],"isError":false}"#;

#[test]
fn the_right_text_passes() {
    check_text(RESULT, "a\"b").unwrap();
}

#[test]
fn other_results_do_not_pass() {
    for result in [
        r#"{"content":[{"type":"text","text":"other"}]}"#,
        r#"{"content":[{"type":"text","text":"x"}],"isError":true}"#,
        r#"{"content":[{"type":"text","text":"x"}],"resultType":"input_required"}"#,
        r#"{"content":[{"type":"text","text":"x"},{"type":"text","text":"x"}]}"#,
        r#"{"content":[]}"#,
        r#"{}"#,
    ] {
        assert!(
            matches!(check_text(result, "x"), Err(Failure::Wrong(_))),
            "{result}"
        );
    }
}

#[test]
fn a_response_to_another_request_is_wrong() {
    let text = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{RESULT}}}"#);
    let message = Message::parse(&text).unwrap();
    assert!(message.is_response());
    assert_eq!(message.result_of(7).unwrap(), RESULT);
    assert!(matches!(message.result_of(8), Err(Failure::Wrong(_))));
}

#[test]
fn an_error_response_is_a_wrong_answer() {
    let message = Message::parse(r#"{"id":1,"error":{"code":-32603,"message":"no"}}"#).unwrap();
    assert!(
        message
            .result_of(1)
            .unwrap_err()
            .to_string()
            .contains("-32603")
    );
}

#[test]
fn a_notification_is_not_a_response() {
    let message = Message::parse(r#"{"method":"notifications/progress","params":{}}"#).unwrap();
    assert!(!message.is_response());
}
